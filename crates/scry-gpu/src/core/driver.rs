//! The waist between the core and the backends: what a driver must be able to do.
//!
//! A driver executes; it does not judge. By the time a call arrives here arguments are checked,
//! barriers are placed, and everything named in a submission is kept alive until it is done. A
//! driver has no policy of its own: it does only what it is called for.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

pub(crate) use scry_ir::GridSource;
use scry_ir::Program;

use crate::DeviceInfo;
use crate::api::error::Result;
use crate::api::native::{self, NativeInterface, NativeSpec};
use crate::cache::{DiskCache, KernelKey};
use crate::core::command::Step;
pub(crate) use crate::core::handles::{
    KernelId, KernelMark, MemoryId, MemoryKind, MemoryMark, RecordingId, RecordingMark,
    SubmissionIndex,
};

/// What it means if a launch of a kernel has set its word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailureReport {
    /// What happened to the launch.
    pub problem: String,
    /// The limit of the driver that was the reason.
    pub limit: String,
    /// What to do.
    pub help: String,
}

/// A kernel to be compiled.
#[cfg_attr(
    not(any(feature = "cuda", feature = "vulkan")),
    expect(dead_code, reason = "only GPUs' drivers keep kernels on disk")
)]
pub(crate) struct CompileJob<'a> {
    /// The kernel.
    pub program: &'a Program,
    /// Which variant to compile. One for folded grids has their parameters in one more uniform
    /// buffer, bound after the others.
    pub grid: GridSource,
    /// Whether accesses and loops are checked.
    pub checked: bool,
    /// Identity of the kernel in caches, and the cache to use, if any.
    pub key: &'a KernelKey,
    pub cache: Option<&'a DiskCache>,
}

/// A kernel that is not WGSL, to be compiled.
pub(crate) struct NativeJob<'a> {
    /// The source, without zero bytes.
    pub source: &'a str,
    /// Name of the kernel in it.
    pub entry: &'a str,
    /// Language and interface.
    pub spec: &'a NativeSpec,
    /// Identity of the kernel in caches, and the cache to use, if any.
    pub key: &'a KernelKey,
    pub cache: Option<&'a DiskCache>,
}

/// A routine of a vendor's library, which is launched like a kernel.
pub(crate) struct RoutineJob<'a> {
    /// Its name, unique in the crate.
    pub name: &'static str,
    /// The library, as errors name it.
    pub library: &'static str,
    /// Buffers and immediates of a launch.
    pub interface: &'a NativeInterface,
}

/// A kernel in WGSL that makes large copies faster than the driver's copy command. Binding 0 is the
/// source, binding 1 the destination, both arrays of `vec4<u32>`, of which each invocation copies
/// one; workgroups are numbered row by row.
#[derive(Debug)]
pub(crate) struct CopyKernel {
    /// The source.
    pub source: &'static str,
    /// Invocations of a workgroup.
    pub invocations: u64,
    /// Bytes of the smallest copy that is worth a launch.
    pub min_size: u64,
}

/// Work to be submitted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work<'a> {
    /// Steps, executed once.
    Once(&'a [Step]),
    /// Steps recorded before.
    Replay(RecordingId),
}

/// A device, driven by one backend.
///
/// All methods may be called from any thread. Errors that mean the loss of the device are
/// [`GpuError::DeviceLost`](crate::GpuError::DeviceLost); after one the core makes no more calls
/// but `free`, `release`, `forget`, `abandon` and the drop.
pub(crate) trait Driver: Send + Sync {
    /// What the device is and can do.
    fn info(&self) -> &DeviceInfo;

    /// Allocates `size` > 0 bytes of undefined content. `label` names the allocation in tools.
    fn allocate(&self, kind: MemoryKind, size: u64, label: &str) -> Result<MemoryId>;

    /// Frees an allocation that no unfinished submission uses.
    fn free(&self, memory: MemoryId);

    /// Copies bytes into an `Upload` allocation. The range is not in use by the device.
    fn write(&self, memory: MemoryId, offset: u64, data: &[u8]) -> Result<()>;

    /// Copies bytes out of a `Readback` allocation, after the copy into it, made visible to
    /// [`Stages::HOST`](crate::core::command::Stages::HOST) by a barrier, is done.
    fn read(&self, memory: MemoryId, offset: u64, out: &mut [u8]) -> Result<()>;

    /// Compiles a kernel.
    fn compile(&self, job: &CompileJob<'_>) -> Result<KernelId>;

    /// Compiles a kernel that is not WGSL. Its launches are never folded; the immediate block of
    /// each is as long as the interface says.
    fn compile_native(&self, job: &NativeJob<'_>) -> Result<KernelId> {
        Err(native::refusal(job.entry, job.spec.language, &self.info().title()))
    }

    /// Loads a routine of a library. Its launches are as those of native kernels.
    fn load_routine(&self, job: &RoutineJob<'_>) -> Result<KernelId> {
        Err(native::no_library(job.library, &self.info().title()))
    }

    /// The kernel to use for large copies within device memory; `None` if the copy command is best.
    fn copy_kernel(&self) -> Option<&'static CopyKernel> {
        None
    }

    /// Which variant of a kernel indirect launches run. It says what reads the workgroup counts,
    /// and obeys [`scry_ir::runnable_workgroups`]: with `Native` the driver, when it executes the
    /// launch; with `Counts` the kernel; with `Linearised` a launch that the core puts before this
    /// one, which computes the fold parameters and the native grid. Then
    /// [`Groups::Indirect`](crate::core::command::Groups) names the native grid, which is within
    /// the device's limits and may be empty.
    fn indirect(&self) -> GridSource;

    /// What it means if a launch of a kernel sets the first of the words that are bound after all
    /// other buffers; `None` if the kernel has no such binding.
    fn report(&self, kernel: KernelId) -> Option<Arc<FailureReport>> {
        let _ = kernel;
        None
    }

    /// Lets go of a kernel that no unfinished submission or recording uses.
    fn release(&self, kernel: KernelId);

    /// Prepares steps for repeated execution. A replay may be submitted while an earlier one is
    /// still executing: the core puts a barrier first.
    fn record(&self, steps: &[Step]) -> Result<RecordingId>;

    /// Lets go of a recording that no unfinished submission uses.
    fn forget(&self, recording: RecordingId);

    /// Submits work, without waiting. With `timed`, the device time of each dispatch can be asked
    /// for with [`Driver::timings`] once the submission is done (not for replays).
    fn submit(&self, work: Work<'_>, timed: bool) -> Result<SubmissionIndex>;

    /// Waits until `submission` is done, at most `timeout`; true if it is.
    fn wait(&self, submission: SubmissionIndex, timeout: Duration) -> Result<bool>;

    /// Returns whether `submission` is done. Never blocks.
    fn poll(&self, submission: SubmissionIndex) -> Result<bool> {
        self.wait(submission, Duration::ZERO)
    }

    /// Wakes `waker` once `submission` is done, or nothing is executed any more. Returns false if
    /// the driver cannot do that; then the core polls.
    fn notify(&self, submission: SubmissionIndex, waker: &Waker) -> Result<bool> {
        let _ = (submission, waker);
        Ok(false)
    }

    /// Ends the submissions up to `submission` that are not done, and returns when they have ended.
    /// Gives the first of them, which is beyond `submission` if all were done by themselves; `None`
    /// if running work cannot be ended. The device works on. Launches are left out, transfers are
    /// not.
    fn cancel(&self, submission: SubmissionIndex) -> Result<Option<SubmissionIndex>> {
        let _ = submission;
        Ok(None)
    }

    /// The device time of each dispatch of a timed submission that is done, in order. Empty if the
    /// device has no timestamps. Can be asked for once.
    fn timings(&self, submission: SubmissionIndex) -> Result<Vec<Duration>>;

    /// Free device memory in bytes, over all processes; `None` where the backend does not
    /// report it.
    fn free_memory(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Gives the device up: it hangs or is lost. From now on nothing waits for it, and what it may
    /// still be using is leaked rather than freed under it.
    fn abandon(&self);
}

/// A device that was found and can be opened.
pub(crate) trait Adapter: Send + Sync {
    /// What the device is and can do, as far as is known without opening it.
    fn info(&self) -> &DeviceInfo;

    /// Opens the device.
    fn open(&self) -> Result<Box<dyn Driver>>;
}
