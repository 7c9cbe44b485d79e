//! The Vulkan backend, for Vulkan 1.2 and newer: the loader is opened at run time.
//!
//! `ffi::instance` opens the loader, `adapter` enumerates the devices with their properties
//! (`probe`), `device` opens one; the rest of `ffi` queries features and matrix products, and
//! reports errors and messages of the validation layer. `memory` suballocates device memory
//! (`allocator`, `free_ranges`) and keeps large buffers (`buffer_cache`). `compile` creates
//! pipelines from the SPIR-V of `compile::writer`. `queue::submit` executes steps: `queue::encode`
//! records them in `queue::command_buffers`, `queue::timeline` polls and waits for the timeline
//! semaphore that orders all submissions, `queue::timing` measures launches. `workarounds` lists
//! driver defects.

mod adapter;
mod compile;
mod device;
mod ffi;
mod memory;
mod probe;
mod queue;
#[cfg(test)]
mod tests;
mod workarounds;

use std::sync::{Arc, OnceLock, RwLock};
use std::time::Duration;

use ash::vk;
use scry_ir::{Features, Interface, SpirvOptions};

pub use self::compile::SpirvWriter;
use self::device::Gpu;
use self::ffi::instance::Instance;
use self::memory::{Block, Heap};
use self::queue::command_buffers::Commands;
use self::queue::encode::{Blocks, Kernels, Tables};
use self::queue::submit::Queue;
use self::queue::timeline::Timeline;
use super::Absence;
use super::shared::command_checks::{no_allocation, no_recording};
use super::shared::copy_kernel::copy_kernel;
use super::shared::locks::{lock, read, write};
use super::shared::matrix_self_test;
use crate::DeviceInfo;
use crate::api::error::{GpuError, KernelError, Result};
use crate::core::command::Step;
use crate::core::driver::{
    Adapter, Cancelled, CompileJob, CopyKernel, Driver, FailureReport, GridSource, KernelId,
    MemoryId, MemoryKind, RecordingId, RecordingMark, SubmissionIndex, Work,
};
use crate::core::id::Slots;

/// Timeout for pending work when a device is dropped, or when a submission failed halfway.
const DROP_TIMEOUT: Duration = Duration::from_secs(5);

/// Enumerates the Vulkan devices.
pub(super) fn find() -> Result<Vec<Box<dyn Adapter>>, Absence> {
    let adapters = adapter::find(&Instance::shared()?)?;
    let boxed = adapters.into_iter().map(|adapter| Box::new(adapter) as _);
    Ok(boxed.collect())
}

/// An open device. Fields are dropped in declaration order: users before the objects they use.
struct VulkanDriver {
    queue: Queue,
    recordings: RwLock<Slots<RecordingMark, Commands>>,
    kernels: RwLock<Kernels>,
    /// The stop word, allocated with the first kernel that polls it. Nonzero while submissions are
    /// being cancelled.
    stop: OnceLock<Block>,
    /// The result of the self-test of cooperative matrices: what is wrong, or `None` if it passed.
    /// It runs before the first kernel with such matrices is compiled.
    matrix_defect: OnceLock<Option<String>>,
    blocks: RwLock<Blocks>,
    heap: Arc<Heap>,
    timeline: Timeline,
    gpu: Arc<Gpu>,
}

impl VulkanDriver {
    fn new(gpu: Arc<Gpu>) -> Result<Self> {
        Ok(Self {
            queue: Queue::new(&gpu),
            recordings: RwLock::default(),
            kernels: RwLock::default(),
            stop: OnceLock::new(),
            matrix_defect: OnceLock::new(),
            blocks: RwLock::default(),
            heap: Heap::new(&gpu),
            timeline: Timeline::new(&gpu)?,
            gpu,
        })
    }

    fn block(&self, call: &'static str, id: MemoryId) -> Result<Arc<Block>> {
        let block = read(&self.blocks).get(id).cloned();
        block.ok_or_else(|| self.gpu.defect_error(call, no_allocation(id)))
    }

    /// Calls `work` with the tables, which stay unchanged during the call.
    fn with_tables<R>(&self, work: impl FnOnce(Tables<'_>) -> R) -> R {
        let (blocks, kernels) = (read(&self.blocks), read(&self.kernels));
        let stop = self.stop.get().map_or(vk::Buffer::null(), |stop| stop.buffer);
        work(Tables { blocks: &blocks, kernels: &kernels, stop })
    }

    fn compile_kernel(&self, job: &CompileJob<'_>) -> Result<KernelId> {
        let kernel = compile::compile(&self.gpu, job)?;
        if kernel.polls {
            self.make_stop_word()?;
        }
        Ok(write(&self.kernels).insert(kernel))
    }

    /// Rejects a kernel with cooperative matrices if the driver failed their self-test. Runs the
    /// self-test at the first such kernel of the device.
    fn check_matrices(&self, interface: &Interface) -> Result<()> {
        let defect = match self.matrix_defect.get() {
            Some(defect) => defect,
            None => {
                let compile = |job: &CompileJob<'_>| self.compile_kernel(job);
                let result = matrix_self_test::run(self, &compile, self.gpu.info.matrix_products)?;
                self.matrix_defect.get_or_init(|| result)
            }
        };
        let Some(defect) = defect else { return Ok(()) };
        Err(GpuError::Kernel(KernelError {
            label: None,
            kernel: interface.entry_point.clone(),
            device: self.gpu.info.name.clone(),
            driver: self.gpu.info.driver.clone(),
            problem: format!(
                "has cooperative matrices, and this driver failed their self-test: {defect}"
            ),
            limit: None,
            help: "update the driver, or use a CUDA or CPU device".to_owned(),
        }))
    }

    /// Allocates the stop word, unless there is one.
    fn make_stop_word(&self) -> Result<()> {
        if self.stop.get().is_none() {
            let size = SpirvOptions::STOP_SIZE.into();
            let stop = self.heap.allocate(MemoryKind::Upload, size, "stop word")?;
            stop.signal(0)?;
            // Another thread may have set it meanwhile: then this one is freed.
            drop(self.stop.set(stop));
        }
        Ok(())
    }
}

impl Driver for VulkanDriver {
    fn info(&self) -> &DeviceInfo {
        &self.gpu.info
    }

    fn allocate(&self, kind: MemoryKind, size: u64, label: &str) -> Result<MemoryId> {
        self.gpu.check_alive()?;
        let block = Arc::new(self.heap.allocate(kind, size, label)?);
        Ok(write(&self.blocks).insert(block))
    }

    fn free(&self, memory: MemoryId) {
        // The memory is leaked; in a forked child the lock may be held forever.
        if self.gpu.is_abandoned() {
            return;
        }
        let block = write(&self.blocks).remove(memory);
        debug_assert!(block.is_some(), "allocation {memory:?} is freed twice");
    }

    fn write(&self, memory: MemoryId, offset: u64, data: &[u8]) -> Result<()> {
        self.block("write", memory)?.write(offset, data)
    }

    fn read(&self, memory: MemoryId, offset: u64, out: &mut [u8]) -> Result<()> {
        self.block("read", memory)?.read(offset, out)
    }

    fn compile(&self, job: &CompileJob<'_>) -> Result<KernelId> {
        self.gpu.check_alive()?;
        let interface = job.program.interface();
        if interface.features.contains(Features::COOPERATIVE_MATRIX) {
            self.check_matrices(interface)?;
        }
        self.compile_kernel(job)
    }

    fn copy_kernel(&self) -> Option<&'static CopyKernel> {
        copy_kernel(&self.gpu.info)
    }

    fn indirect(&self) -> GridSource {
        GridSource::Linearised
    }

    fn report(&self, kernel: KernelId) -> Option<Arc<FailureReport>> {
        read(&self.kernels).get(kernel)?.report.clone()
    }

    fn free_kernel(&self, kernel: KernelId) {
        if self.gpu.is_abandoned() {
            return;
        }
        let removed = write(&self.kernels).remove(kernel);
        debug_assert!(removed.is_some(), "kernel {kernel:?} is freed twice");
    }

    fn record(&self, steps: &[Step]) -> Result<RecordingId> {
        self.gpu.check_alive()?;
        let recording =
            self.with_tables(|tables| queue::submit::record(&self.gpu, tables, steps))?;
        Ok(write(&self.recordings).insert(recording))
    }

    fn free_recording(&self, recording: RecordingId) {
        if self.gpu.is_abandoned() {
            return;
        }
        let removed = write(&self.recordings).remove(recording);
        debug_assert!(removed.is_some(), "recording {recording:?} is freed twice");
    }

    fn submit(&self, work: Work<'_>, timed: bool) -> Result<SubmissionIndex> {
        self.gpu.check_alive()?;
        let value = match work {
            Work::Once(steps) => {
                self.with_tables(|tables| self.queue.submit(&self.timeline, tables, steps, timed))
            }
            Work::Replay(id) => {
                let recordings = read(&self.recordings);
                let Some(recording) = recordings.get(id) else {
                    return Err(self.gpu.defect_error("vkQueueSubmit", no_recording(id)));
                };
                self.queue.replay(&self.timeline, recording.buffer)
            }
            Work::Sequence(works) => {
                let recordings = read(&self.recordings);
                self.with_tables(|tables| {
                    self.queue.submit_all(&self.timeline, tables, &recordings, works)
                })
            }
        };
        value.map(SubmissionIndex)
    }

    fn wait(&self, submission: SubmissionIndex, timeout: Duration) -> Result<bool> {
        self.timeline.wait(submission.0, timeout)
    }

    fn cancel(&self, submission: SubmissionIndex) -> Result<Option<Cancelled>> {
        self.gpu.check_alive()?;
        self.queue.cancel(&self.timeline, submission, self.stop.get())
    }

    fn timings(&self, submission: SubmissionIndex) -> Result<Vec<Duration>> {
        self.queue.timings(&self.timeline, submission.0)
    }

    fn discard_timings(&self, submission: SubmissionIndex) {
        if !self.gpu.is_abandoned() {
            self.queue.discard_timings(&self.timeline, submission.0);
        }
    }

    fn abandon(&self) {
        self.gpu.abandon();
    }
}

impl Drop for VulkanDriver {
    fn drop(&mut self) {
        if self.gpu.is_abandoned() {
            return;
        }
        match self.timeline.wait(self.queue.last(), DROP_TIMEOUT) {
            Ok(true) => {}
            outcome => {
                log::error!(
                    "{}: work is not done as the device is dropped ({outcome:?}): what it uses is \
                     leaked",
                    self.gpu.info.name
                );
                self.gpu.abandon();
            }
        }
    }
}
