//! The CUDA backend, for CUDA 12.0 and newer: requires only NVIDIA's driver, opened at run time.
//!
//! `adapter` finds devices and queries their properties (`probe`), `device` opens one. `ffi` has
//! the driver's functions (`driver_api`), their types and errors, and counts calls in progress
//! (`calls`). It opens libraries (`library`): the driver, and on demand those of the `toolkit`;
//! `library_status` reports which of these are installed. `memory` allocates, with `pinned` for
//! pinned host memory.
//!
//! `compile` turns programs into kernels: WGSL through `translation`, `jit` and the disk cache; PTX
//! and CUDA C through `native`, CUDA C with `nvrtc`.
//!
//! `queue::submit` executes steps: `overlap` distributes them over the streams of `stream` and
//! decides which of them use programmatic dependent launch; `encode`, `params` and
//! `declared_params` encode them for the driver, and `issue` issues them. `cublas` computes matrix
//! products, `graph` makes CUDA graphs of recordings, with products from `capture`; `timeline`
//! orders all submissions, `timing` measures launches.

mod adapter;
mod compile;
mod device;
mod ffi;
mod memory;
mod probe;
mod queue;
#[cfg(test)]
mod tests;

use std::sync::{Arc, RwLock};
use std::time::Duration;

use self::device::Gpu;
use self::ffi::driver_api::Cuda;
pub(super) use self::ffi::library_status::libraries;
use self::memory::{Block, Heap};
use self::queue::cublas::LazyBlas;
use self::queue::encode::{Blocks, Kernels, Tables};
use self::queue::graph::Graph;
use self::queue::submit::Queue;
use super::Absence;
use super::shared::command_checks::{no_allocation, no_recording};
use super::shared::copy_kernel::copy_kernel;
use super::shared::locks::{lock, read, write};
use crate::api::error::Result;
use crate::api::info::DeviceInfo;
use crate::core::command::Step;
use crate::core::driver::{
    Adapter, Cancelled, CompileJob, CopyKernel, Driver, GridSource, KernelId, MemoryId, MemoryKind,
    NativeJob, RecordingId, RecordingMark, RoutineJob, SubmissionIndex, Work,
};
use crate::core::id::Slots;

/// Timeout for pending work when a device is dropped.
const DROP_TIMEOUT: Duration = Duration::from_secs(5);

/// Finds the CUDA devices.
pub(super) fn find() -> Result<Vec<Box<dyn Adapter>>, Absence> {
    let adapters = adapter::find(Cuda::shared()?)?;
    let boxed = adapters.into_iter().map(|adapter| Box::new(adapter) as _);
    Ok(boxed.collect())
}

/// An open device. Fields are dropped in declaration order: users before the objects they use.
struct CudaDriver {
    recordings: RwLock<Slots<RecordingMark, Graph>>,
    kernels: RwLock<Kernels>,
    blas: LazyBlas,
    queue: Queue,
    blocks: RwLock<Blocks>,
    heap: Arc<Heap>,
    gpu: Arc<Gpu>,
}

impl CudaDriver {
    fn new(gpu: Arc<Gpu>) -> Result<Self> {
        Ok(Self {
            recordings: RwLock::default(),
            kernels: RwLock::default(),
            blas: LazyBlas::default(),
            queue: Queue::new(&gpu)?,
            blocks: RwLock::default(),
            heap: Heap::new(&gpu)?,
            gpu,
        })
    }

    fn block(&self, call: &'static str, id: MemoryId) -> Result<Arc<Block>> {
        self.gpu.check_alive()?;
        let block = read(&self.blocks).get(id).cloned();
        block.ok_or_else(|| self.gpu.defect_error(call, no_allocation(id)))
    }

    /// Calls `work` with the tables read-locked.
    fn with_tables<R>(&self, work: impl FnOnce(Tables<'_>) -> R) -> R {
        let (blocks, kernels) = (read(&self.blocks), read(&self.kernels));
        work(Tables { blocks: &blocks, kernels: &kernels })
    }
}

impl Driver for CudaDriver {
    fn info(&self) -> &DeviceInfo {
        &self.gpu.info
    }

    fn allocate(&self, kind: MemoryKind, size: u64, label: &str) -> Result<MemoryId> {
        self.gpu.check_alive()?;
        let block = Arc::new(self.heap.allocate(kind, size, label)?);
        Ok(write(&self.blocks).insert(block))
    }

    fn free(&self, memory: MemoryId) {
        // The memory is leaked. In a forked child the lock may be held forever.
        if self.gpu.is_abandoned() {
            return;
        }
        // The lock is released first: dropping the block calls the driver.
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
        let kernel = compile::compile(&self.gpu, job)?;
        Ok(write(&self.kernels).insert(kernel))
    }

    fn compile_native(&self, job: &NativeJob<'_>) -> Result<KernelId> {
        self.gpu.check_alive()?;
        let kernel = compile::native::compile(&self.gpu, job)?;
        Ok(write(&self.kernels).insert(kernel))
    }

    fn load_routine(&self, job: &RoutineJob<'_>) -> Result<KernelId> {
        self.gpu.check_alive()?;
        let kernel = compile::native::load_routine(&self.gpu, &self.blas, job)?;
        Ok(write(&self.kernels).insert(kernel))
    }

    fn copy_kernel(&self) -> Option<&'static CopyKernel> {
        copy_kernel(&self.gpu.info)
    }

    fn indirect(&self) -> GridSource {
        GridSource::Counts
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
        let recording = self.with_tables(|tables| self.queue.record(tables, steps))?;
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
        let number = match work {
            Work::Once(steps) => self.with_tables(|tables| self.queue.submit(tables, steps, timed)),
            Work::Replay(id) => {
                let recordings = read(&self.recordings);
                let Some(recording) = recordings.get(id) else {
                    return Err(self.gpu.defect_error("cuGraphLaunch", no_recording(id)));
                };
                self.queue.replay(recording)
            }
            Work::Sequence(works) => {
                let recordings = read(&self.recordings);
                self.with_tables(|tables| self.queue.submit_all(tables, &recordings, works))
            }
        };
        number.map(SubmissionIndex)
    }

    fn wait(&self, submission: SubmissionIndex, timeout: Duration) -> Result<bool> {
        self.queue.wait(submission.0, timeout)
    }

    fn cancel(&self, submission: SubmissionIndex) -> Result<Option<Cancelled>> {
        let first = self.queue.cancel(submission.0)?;
        Ok(first.map(|first| Cancelled { first: SubmissionIndex(first), last: submission }))
    }

    fn timings(&self, submission: SubmissionIndex) -> Result<Vec<Duration>> {
        self.queue.timings(submission.0)
    }

    fn discard_timings(&self, submission: SubmissionIndex) {
        if !self.gpu.is_abandoned() {
            self.queue.discard_timings(submission.0);
        }
    }

    fn free_memory(&self) -> Result<Option<u64>> {
        self.gpu.memory().map(|(free, _)| Some(free))
    }

    fn abandon(&self) {
        self.queue.stop_all();
        self.gpu.abandon();
    }
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        if self.gpu.is_abandoned() {
            return;
        }
        match self.queue.wait(self.queue.last(), DROP_TIMEOUT) {
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
