//! The CPU backend: kernels run on threads of this process, without any installation.
//!
//! `info` queries the CPU's properties. `compile` and `memory` compile kernels and allocate memory.
//! `encode` resolves steps to operations, and `submit` executes them in order. Commands run one
//! after the other, so barriers are ignored.

mod compile;
mod encode;
mod host_function;
mod info;
mod memory;
mod panics;
mod submit;
#[cfg(test)]
mod tests;

use std::sync::{Arc, RwLock};
use std::task::Waker;
use std::time::Duration;

use scry_cpu::{Machine, MemoryRange};

use self::compile::Kernel;
use self::encode::{Operations, Tables};
use self::memory::{Block, Heap};
use self::submit::Queue;
use super::shared::locks::{lock, read, write};
use super::{Absence, no_times};
use crate::api::error::{DEFECT, DriverError, GpuError, Result};
use crate::api::info::DeviceInfo;
use crate::core::command::Step;
use crate::core::driver::{
    Adapter, Cancelled, CompileJob, Driver, GridSource, HostJob, KernelId, KernelMark, MemoryId,
    MemoryKind, MemoryMark, RecordingId, RecordingMark, SubmissionIndex, Work,
};
use crate::core::id::Slots;
use crate::lifecycle::fork_guard::Process;

/// Returns the CPU, which is always available.
pub(super) fn find() -> Result<Vec<Box<dyn Adapter>>, Absence> {
    Ok(vec![Box::new(CpuAdapter(info::info()))])
}

/// The CPU, not yet opened.
struct CpuAdapter(DeviceInfo);

impl Adapter for CpuAdapter {
    fn info(&self) -> &DeviceInfo {
        &self.0
    }

    fn open(&self) -> Result<Box<dyn Driver>> {
        Ok(Box::new(CpuDriver::new(self.0.clone(), Machine::new(info::threads()))))
    }
}

/// The CPU, opened. Threads are started on demand.
struct CpuDriver {
    info: DeviceInfo,
    heap: Arc<Heap>,
    blocks: RwLock<Slots<MemoryMark, Arc<Block>>>,
    kernels: RwLock<Slots<KernelMark, Arc<Kernel>>>,
    recordings: RwLock<Slots<RecordingMark, Arc<Operations>>>,
    queue: Queue,
    /// The process that opened it: a forked child has no threads, and locks may be held forever.
    process: Process,
}

impl CpuDriver {
    fn new(info: DeviceInfo, machine: Machine) -> Self {
        Self {
            heap: Heap::new(&info),
            blocks: RwLock::default(),
            kernels: RwLock::default(),
            recordings: RwLock::default(),
            queue: Queue::new(machine, &info),
            process: Process::current(),
            info,
        }
    }

    /// Returns the error for a call that violates a rule of the core: a defect of this crate, which
    /// no program should be able to cause.
    fn defect_error(&self, call: &'static str, why: String) -> GpuError {
        GpuError::Driver(DriverError::new(&self.info.name, call, why, DEFECT))
    }

    /// Returns a range of an allocation and a reference that keeps it alive.
    fn range(
        &self,
        call: &'static str,
        (memory, offset, size): (MemoryId, u64, usize),
    ) -> Result<(Arc<Block>, MemoryRange)> {
        let block = read(&self.blocks).get(memory).cloned();
        let found = block.and_then(|block| {
            let bytes = block.range(offset, size as u64)?;
            Some((block, bytes))
        });
        found.ok_or_else(|| {
            let why =
                format!("{size} bytes at {offset} are out of bounds of allocation {memory:?}");
            self.defect_error(call, why)
        })
    }

    /// Resolves the resource ids of steps.
    fn resolve(&self, call: &'static str, steps: &[Step]) -> Result<Operations> {
        let (blocks, kernels) = (read(&self.blocks), read(&self.kernels));
        let tables = Tables { blocks: &blocks, kernels: &kernels };
        encode::resolve(tables, steps).map_err(|why| self.defect_error(call, why))
    }

    fn recorded(&self, id: RecordingId) -> Result<Arc<Operations>> {
        let recorded = read(&self.recordings).get(id).cloned();
        recorded.ok_or_else(|| self.defect_error("submit", format!("no recording {id:?}")))
    }

    /// Resolves a sequence of works.
    fn sequence(&self, works: &[Work<'_>]) -> Result<Operations> {
        let mut operations = Operations::empty();
        for work in works {
            match *work {
                Work::Once(steps) => operations.append(self.resolve("submit", steps)?),
                Work::Replay(id) => operations.append_recorded(self.recorded(id)?),
                Work::Sequence(works) => operations.append(self.sequence(works)?),
            }
        }
        Ok(operations)
    }
}

impl Driver for CpuDriver {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, _: MemoryKind, size: u64, label: &str) -> Result<MemoryId> {
        let block = self.heap.allocate(&self.info, size, label)?;
        Ok(write(&self.blocks).insert(Arc::new(block)))
    }

    fn free(&self, memory: MemoryId) {
        if self.process.has_forked() {
            return;
        }
        // The lock is released first: dropping the block may take long.
        let block = write(&self.blocks).remove(memory);
        debug_assert!(block.is_some(), "allocation {memory:?} is freed twice");
    }

    fn write(&self, memory: MemoryId, offset: u64, data: &[u8]) -> Result<()> {
        let (block, bytes) = self.range("write", (memory, offset, data.len()))?;
        block.touch();
        // SAFETY: `block` keeps the memory alive, and the caller guarantees that the range is not
        // in use.
        unsafe { bytes.write(data) };
        Ok(())
    }

    fn read(&self, memory: MemoryId, offset: u64, out: &mut [u8]) -> Result<()> {
        let (_block, bytes) = self.range("read", (memory, offset, out.len()))?;
        // SAFETY: `_block` keeps the memory alive, and the caller guarantees that the copy into the
        // range has finished.
        unsafe { bytes.read(out) };
        Ok(())
    }

    fn compile(&self, job: &CompileJob<'_>) -> Result<KernelId> {
        let kernel = compile::compile(&self.info, job)?;
        Ok(write(&self.kernels).insert(Arc::new(kernel)))
    }

    fn load_host_function(&self, job: &HostJob<'_>) -> Result<KernelId> {
        Ok(write(&self.kernels).insert(Arc::new(compile::host_function(job))))
    }

    fn indirect(&self) -> GridSource {
        GridSource::Native
    }

    fn free_kernel(&self, kernel: KernelId) {
        if self.process.has_forked() {
            return;
        }
        let removed = write(&self.kernels).remove(kernel);
        debug_assert!(removed.is_some(), "kernel {kernel:?} is freed twice");
    }

    fn record(&self, steps: &[Step]) -> Result<RecordingId> {
        let operations = self.resolve("record", steps)?;
        Ok(write(&self.recordings).insert(Arc::new(operations)))
    }

    fn free_recording(&self, recording: RecordingId) {
        if self.process.has_forked() {
            return;
        }
        let removed = write(&self.recordings).remove(recording);
        debug_assert!(removed.is_some(), "recording {recording:?} is freed twice");
    }

    fn submit(&self, work: Work<'_>, timed: bool) -> Result<SubmissionIndex> {
        let operations = match work {
            Work::Once(steps) => Arc::new(self.resolve("submit", steps)?),
            Work::Replay(id) => self.recorded(id)?,
            Work::Sequence(works) => Arc::new(self.sequence(works)?),
        };
        self.queue.submit(operations, timed).map(SubmissionIndex)
    }

    /// False in WebAssembly, where submitting work executes it.
    fn can_block(&self) -> bool {
        !cfg!(target_arch = "wasm32")
    }

    fn wait(&self, submission: SubmissionIndex, timeout: Duration) -> Result<bool> {
        self.queue.wait(submission.0, timeout)
    }

    fn notify(&self, submission: SubmissionIndex, waker: &Waker) -> Result<bool> {
        self.queue.notify(submission.0, waker);
        Ok(true)
    }

    fn cancel(&self, submission: SubmissionIndex) -> Result<Option<Cancelled>> {
        let first = self.queue.cancel(submission.0)?;
        Ok(first.map(|first| Cancelled { first: SubmissionIndex(first), last: submission }))
    }

    fn timings(&self, submission: SubmissionIndex) -> Result<Vec<Duration>> {
        let times = self.queue.timings(submission.0);
        times.ok_or_else(|| self.defect_error("timings", no_times(submission.0)))
    }

    fn discard_timings(&self, submission: SubmissionIndex) {
        if !self.process.has_forked() {
            self.queue.discard_timings(submission.0);
        }
    }

    fn abandon(&self) {
        if !self.process.has_forked() {
            self.queue.abandon();
        }
    }
}

impl Drop for CpuDriver {
    fn drop(&mut self) {
        if self.process.has_forked() {
            self.queue.leak();
        } else {
            self.queue.shut_down();
        }
    }
}
