//! The interface between the core and the backends.
//!
//! The core checks arguments, places barriers, and keeps everything that a submission uses alive
//! until it is done. Drivers only execute: they validate nothing and make no policy decisions.

use std::future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

pub(crate) use scry_ir::GridSource;
use scry_ir::Program;

use crate::DeviceInfo;
use crate::api::error::Result;
use crate::api::native::{self, HostFunction, NativeInterface, NativeSpec};
use crate::cache::{DiskCache, KernelKey};
use crate::core::command::Step;
use crate::core::dump::Dump;
pub(crate) use crate::core::handles::{
    KernelId, KernelMark, MemoryId, MemoryKind, MemoryMark, RecordingId, RecordingMark,
    SubmissionIndex,
};

/// Submissions that were ended early, from `first` to `last`, both included; none if `first` is
/// greater than `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cancelled {
    pub(crate) first: SubmissionIndex,
    pub(crate) last: SubmissionIndex,
}

/// Describes the failure that a launch of a kernel may report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailureReport {
    /// The problem, as the predicate of a sentence about the launch.
    pub problem: String,
    /// The limit of the driver that caused the failure.
    pub limit: String,
    /// The help text.
    pub help: String,
}

/// A kernel in WGSL or the kernel IR to compile.
#[cfg_attr(
    not(any(cuda, vulkan)),
    expect(dead_code, reason = "only GPU drivers cache kernels on disk")
)]
pub(crate) struct CompileJob<'a> {
    /// The kernel.
    pub program: &'a Program,
    /// The variant to compile. The linearised variant has its grid parameters in one more uniform
    /// buffer, bound after the others.
    pub grid: GridSource,
    /// Whether bounds checks and loop bounds are compiled in.
    pub checked: bool,
    /// The kernel's key in caches, and the disk cache, if enabled.
    pub key: &'a KernelKey,
    pub cache: Option<&'a DiskCache>,
    /// The output of generated code for debugging, if the kernel is selected.
    pub dump: Option<&'a Dump>,
}

/// A native (not WGSL) kernel to compile.
pub(crate) struct NativeJob<'a> {
    /// The source, without NUL bytes.
    pub source: &'a str,
    /// The kernel's name in the source.
    pub entry: &'a str,
    /// Language and interface.
    pub spec: &'a NativeSpec,
    /// The kernel's key in caches, and the disk cache, if enabled.
    pub key: &'a KernelKey,
    pub cache: Option<&'a DiskCache>,
}

/// A routine of a vendor library, launched like a kernel.
pub(crate) struct RoutineJob<'a> {
    /// Its name, unique in the crate.
    pub name: &'static str,
    /// The library's name in errors.
    pub library: &'static str,
    /// Buffers and immediates of a launch.
    pub interface: &'a NativeInterface,
}

/// A function of the host, launched like a kernel.
pub(crate) struct HostJob<'a> {
    /// Its name in errors.
    pub name: &'a str,
    /// Buffers and immediates of a launch.
    pub interface: &'a NativeInterface,
    /// Called once for each launch.
    #[cfg_attr(
        not(feature = "cpu"),
        expect(dead_code, reason = "only the CPU runs functions of the host")
    )]
    pub function: &'a HostFunction,
}

/// A WGSL kernel for large copies that is faster than the driver's copy command. Binding 0 is the
/// source, binding 1 the destination, both arrays of `vec4<u32>`; each invocation copies one
/// element, and workgroups are numbered row by row.
#[derive(Debug)]
pub(crate) struct CopyKernel {
    /// The source.
    pub source: &'static str,
    /// Invocations of a workgroup.
    pub invocations: u64,
    /// Bytes of the smallest copy that the kernel is used for.
    pub min_size: u64,
}

/// Work to be submitted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work<'a> {
    /// Steps, executed once.
    Once(&'a [Step]),
    /// A recording.
    Replay(RecordingId),
    /// Several of the above, in order, as one submission. Recordings begin with a barrier that
    /// orders everything before them. Never timed.
    Sequence(&'a [Work<'a>]),
}

/// An open device of a backend.
///
/// All methods may be called from any thread. If a call returns
/// [`GpuError::DeviceLost`](crate::GpuError::DeviceLost), the core calls nothing after it but
/// `info`, `free`, `free_kernel`, `free_recording`, `discard_timings`, `abandon` and the drop.
pub(crate) trait Driver: Send + Sync {
    /// Returns the properties and limits of the device.
    fn info(&self) -> &DeviceInfo;

    /// Allocates `size` > 0 uninitialised bytes. `label` names the allocation in debugging tools.
    fn allocate(&self, kind: MemoryKind, size: u64, label: &str) -> Result<MemoryId>;

    /// Frees an allocation that no unfinished submission uses.
    fn free(&self, memory: MemoryId);

    /// Copies bytes into an `Upload` allocation. The device does not use the range during the call.
    fn write(&self, memory: MemoryId, offset: u64, data: &[u8]) -> Result<()>;

    /// Copies bytes out of a `Readback` allocation, once the copy into it is done and a barrier has
    /// made it visible to [`Stages::HOST`](crate::core::command::Stages::HOST).
    fn read(&self, memory: MemoryId, offset: u64, out: &mut [u8]) -> Result<()>;

    /// Compiles a kernel in WGSL or the kernel IR.
    fn compile(&self, job: &CompileJob<'_>) -> Result<KernelId>;

    /// Returns the driver's verdict on a kernel, once it is known; until then `waker` is kept. Only
    /// browsers report errors after [`Driver::compile`] has returned.
    fn poll_compiled(&self, kernel: KernelId, waker: &Waker) -> Poll<Result<()>> {
        let _ = (kernel, waker);
        Poll::Ready(Ok(()))
    }

    /// Compiles a native kernel. Its grids are never linearised; the immediate block of each launch
    /// has the interface's size.
    fn compile_native(&self, job: &NativeJob<'_>) -> Result<KernelId> {
        Err(native::language_error(Some(job.entry), job.spec.language, &self.info().title()))
    }

    /// Loads a routine of a vendor library. Its launches are like those of native kernels.
    fn load_routine(&self, job: &RoutineJob<'_>) -> Result<KernelId> {
        Err(native::library_error(job.library, &self.info().title()))
    }

    /// Loads a function of the host as a kernel. Its launches are like those of native kernels.
    fn load_host_function(&self, job: &HostJob<'_>) -> Result<KernelId> {
        Err(native::host_function_error(job.name, &self.info().title()))
    }

    /// Returns the kernel for large copies within device memory; `None` if the copy command is
    /// faster.
    fn copy_kernel(&self) -> Option<&'static CopyKernel> {
        None
    }

    /// Returns the variant of a kernel that indirect launches run. It determines what reads the
    /// workgroup counts and applies [`scry_ir::runnable_workgroups`] to them. `Native`: the driver,
    /// when it executes the launch. `Counts`: the kernel. `Linearised`: a launch that the core
    /// inserts before the indirect one, and that computes the grid parameters and the native grid.
    /// [`Groups::Indirect`](crate::core::command::Groups) is then the native grid: within the
    /// device's limits, and possibly empty.
    fn indirect(&self) -> GridSource;

    /// Describes the failure that launches of a kernel may report, in a buffer bound after all
    /// others ([`report`](crate::core::report)); `None` if the kernel has no such binding.
    fn report(&self, kernel: KernelId) -> Option<Arc<FailureReport>> {
        let _ = kernel;
        None
    }

    /// Frees a kernel that no unfinished submission and no recording uses.
    fn free_kernel(&self, kernel: KernelId);

    /// Prepares steps for repeated execution. A replay may be submitted while an earlier one is
    /// still executing: the core inserts a barrier first.
    fn record(&self, steps: &[Step]) -> Result<RecordingId>;

    /// Frees a recording that no unfinished submission uses.
    fn free_recording(&self, recording: RecordingId);

    /// Submits work without waiting. With `timed`, [`Driver::timings`] returns the device time of
    /// each dispatch once the submission is done (not for replays).
    fn submit(&self, work: Work<'_>, timed: bool) -> Result<SubmissionIndex>;

    /// Returns whether a thread may wait for the device. False if it must return to an event loop,
    /// as in a browser: the core then calls [`Driver::wait`] only with a timeout of zero.
    fn can_block(&self) -> bool {
        true
    }

    /// Waits until `submission` is done, for at most `timeout`; returns whether it is.
    fn wait(&self, submission: SubmissionIndex, timeout: Duration) -> Result<bool>;

    /// Returns whether `submission` is done. Never blocks.
    fn poll(&self, submission: SubmissionIndex) -> Result<bool> {
        self.wait(submission, Duration::ZERO)
    }

    /// Wakes `waker` once `submission` is done, or execution has stopped. Returns false if the
    /// driver does not support that; the core polls then.
    fn notify(&self, submission: SubmissionIndex, waker: &Waker) -> Result<bool> {
        let _ = (submission, waker);
        Ok(false)
    }

    /// Ends the unfinished submissions up to `submission`, and returns when they have ended; later
    /// submissions may be ended too. Returns which were ended; `None` if running work cannot be
    /// ended. The device remains usable. Launches are skipped, transfers are not.
    fn cancel(&self, submission: SubmissionIndex) -> Result<Option<Cancelled>> {
        let _ = submission;
        Ok(None)
    }

    /// Returns the device time of each dispatch of a timed, completed submission, in order. Empty
    /// if the device has no timestamps. The times are returned once: a second call for the same
    /// submission is an error.
    fn timings(&self, submission: SubmissionIndex) -> Result<Vec<Duration>>;

    /// Frees the times of a timed submission, done or not, that nothing will read. No effect if
    /// they were read.
    fn discard_timings(&self, submission: SubmissionIndex);

    /// Returns the free device memory in bytes, over all processes; `None` if the backend does not
    /// report it.
    fn free_memory(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Abandons a device that hangs or is lost. Later calls do not wait for the device, and memory
    /// that it may still be using is leaked rather than freed.
    fn abandon(&self);
}

/// A device that was found and can be opened.
pub(crate) trait Adapter: Send + Sync {
    /// Returns the properties and limits that are known without opening the device.
    fn info(&self) -> &DeviceInfo;

    /// Opens the device.
    fn open(&self) -> Result<Box<dyn Driver>>;

    /// Opens the device without blocking: needed only where [`Adapter::open`] cannot open it.
    fn open_async(&self) -> LocalFuture<'_, Result<Box<dyn Driver>>> {
        Box::pin(future::ready(self.open()))
    }
}

/// A future that stays on its thread, since objects of browsers cannot be sent to others.
pub(crate) type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;
