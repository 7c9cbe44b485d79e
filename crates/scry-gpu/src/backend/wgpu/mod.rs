//! The wgpu backend: Metal, Direct3D 12 and Vulkan through the crate `wgpu`.
//!
//! `adapter` enumerates the devices, checks their limits and opens them. `device` is an open
//! device: its errors, and whether it is lost. `memory` allocates buffers. `compile` creates
//! pipelines from the WGSL that scry-ir writes; wgpu's bounds checks are off, since that WGSL
//! contains its own. `verdict` awaits whether a browser accepts them. `queue::encode` resolves
//! steps to operations that WebGPU has: it copies whole words only, never within a buffer, and
//! forbids launches that read and write one buffer through different bindings (`queue::launch`,
//! `queue::word_kernels`). `queue::submit` submits what `queue::execute` encodes, `queue::timeline`
//! polls for completion, `queue::readback` copies results to host memory, and `queue::timing`
//! measures launches. wgpu orders commands itself, so barriers are ignored.

mod adapter;
mod compile;
mod device;
mod limits;
mod memory;
mod queue;
#[cfg(test)]
mod tests;
mod verdict;

use std::sync::{Arc, RwLock};
use std::task::{Poll, Waker};
use std::time::Duration;

pub(super) use self::adapter::{FIND_ASYNC, find};
use self::compile::Kernel;
use self::device::Gpu;
use self::memory::Block;
use self::queue::encode::{Operation, Tables};
use self::queue::submit::Queue;
use super::shared::cancellation::CANCEL_TIMEOUT;
use super::shared::command_checks::{no_allocation, no_recording};
use super::shared::locks::{read, write};
use crate::DeviceInfo;
use crate::api::error::Result;
use crate::core::command::Step;
use crate::core::driver::{
    Cancelled, CompileJob, Driver, FailureReport, GridSource, KernelId, KernelMark, MemoryId,
    MemoryKind, MemoryMark, RecordingId, RecordingMark, SubmissionIndex, Work,
};
use crate::core::id::Slots;

/// Timeout for pending work when a device is dropped.
const DROP_TIMEOUT: Duration = Duration::from_secs(5);

/// An open device.
struct WgpuDriver(Arc<State>);

struct State {
    recordings: RwLock<Slots<RecordingMark, Arc<Vec<Operation>>>>,
    kernels: RwLock<Slots<KernelMark, Arc<Kernel>>>,
    blocks: RwLock<Slots<MemoryMark, Arc<Block>>>,
    queue: Queue,
    gpu: Arc<Gpu>,
}

impl WgpuDriver {
    fn new(gpu: Gpu) -> Self {
        let gpu = Arc::new(gpu);
        Self(Arc::new(State {
            recordings: RwLock::default(),
            kernels: RwLock::default(),
            blocks: RwLock::default(),
            queue: Queue::new(&gpu),
            gpu,
        }))
    }
}

impl State {
    fn block(&self, call: &'static str, id: MemoryId) -> Result<Arc<Block>> {
        let block = read(&self.blocks).get(id).cloned();
        block.ok_or_else(|| self.gpu.defect_error(call, no_allocation(id)))
    }

    /// Resolves the resource ids of steps.
    fn resolve(&self, steps: &[Step]) -> Result<Vec<Operation>> {
        let (blocks, kernels) = (read(&self.blocks), read(&self.kernels));
        let tables = Tables { blocks: &blocks, kernels: &kernels };
        queue::encode::resolve(&self.gpu, self.queue.word_kernels()?, tables, steps)
    }

    /// Returns the operations of one work of a sequence.
    fn operations(&self, work: Work<'_>) -> Result<Arc<Vec<Operation>>> {
        match work {
            Work::Once(steps) => self.resolve(steps).map(Arc::new),
            Work::Replay(id) => {
                let recorded = read(&self.recordings).get(id).cloned();
                recorded.ok_or_else(|| self.gpu.defect_error("submit", no_recording(id)))
            }
            Work::Sequence(_) => {
                let why = "a sequence contains a sequence".to_owned();
                Err(self.gpu.defect_error("submit", why))
            }
        }
    }
}

impl Driver for WgpuDriver {
    fn info(&self) -> &DeviceInfo {
        &self.0.gpu.info
    }

    fn allocate(&self, kind: MemoryKind, size: u64, label: &str) -> Result<MemoryId> {
        let state = &self.0;
        state.gpu.check_alive()?;
        let block = Block::new(&state.gpu, kind, size, label)?;
        Ok(write(&state.blocks).insert(Arc::new(block)))
    }

    fn free(&self, memory: MemoryId) {
        // The memory is leaked; in a forked child the lock may be held forever.
        if self.0.gpu.is_abandoned() {
            return;
        }
        let block = write(&self.0.blocks).remove(memory);
        debug_assert!(block.is_some(), "allocation {memory:?} is freed twice");
    }

    fn write(&self, memory: MemoryId, offset: u64, data: &[u8]) -> Result<()> {
        let state = &self.0;
        state.gpu.check_alive()?;
        state.block("write", memory)?.write(&state.gpu, offset, data)
    }

    fn read(&self, memory: MemoryId, offset: u64, out: &mut [u8]) -> Result<()> {
        self.0.block("read", memory)?.read(&self.0.gpu, offset, out)
    }

    fn compile(&self, job: &CompileJob<'_>) -> Result<KernelId> {
        self.0.gpu.check_alive()?;
        let kernel = compile::compile(&self.0.gpu, job)?;
        Ok(write(&self.0.kernels).insert(Arc::new(kernel)))
    }

    fn poll_compiled(&self, kernel: KernelId, waker: &Waker) -> Poll<Result<()>> {
        match read(&self.0.kernels).get(kernel) {
            Some(kernel) => match kernel.verdict.poll(waker) {
                // A browser reports no errors of a device that is lost.
                Poll::Ready(Ok(())) => Poll::Ready(self.0.gpu.check_alive()),
                verdict => verdict.map_err(|why| self.0.gpu.rejected(why)),
            },
            None => Poll::Ready(Ok(())),
        }
    }

    fn indirect(&self) -> GridSource {
        GridSource::Linearised
    }

    fn report(&self, kernel: KernelId) -> Option<Arc<FailureReport>> {
        read(&self.0.kernels).get(kernel)?.report.clone()
    }

    fn free_kernel(&self, kernel: KernelId) {
        if self.0.gpu.is_abandoned() {
            return;
        }
        let removed = write(&self.0.kernels).remove(kernel);
        debug_assert!(removed.is_some(), "kernel {kernel:?} is freed twice");
    }

    fn record(&self, steps: &[Step]) -> Result<RecordingId> {
        self.0.gpu.check_alive()?;
        let operations = self.0.resolve(steps)?;
        Ok(write(&self.0.recordings).insert(Arc::new(operations)))
    }

    fn free_recording(&self, recording: RecordingId) {
        if self.0.gpu.is_abandoned() {
            return;
        }
        let removed = write(&self.0.recordings).remove(recording);
        debug_assert!(removed.is_some(), "recording {recording:?} is freed twice");
    }

    fn submit(&self, work: Work<'_>, timed: bool) -> Result<SubmissionIndex> {
        let state = &self.0;
        state.gpu.check_alive()?;
        let number = match work {
            Work::Once(_) | Work::Replay(_) => {
                state.queue.submit(&[&state.operations(work)?], timed)?
            }
            Work::Sequence(works) => {
                let works: Result<Vec<_>> = works.iter().map(|it| state.operations(*it)).collect();
                let works = works?;
                let lists: Vec<&[Operation]> = works.iter().map(|it| it.as_slice()).collect();
                state.queue.submit(&lists, timed)?
            }
        };
        Ok(SubmissionIndex(number))
    }

    /// False in browsers, which call back once the program has returned to their event loop.
    fn can_block(&self) -> bool {
        !cfg!(target_arch = "wasm32")
    }

    fn wait(&self, submission: SubmissionIndex, timeout: Duration) -> Result<bool> {
        self.0.queue.wait(submission.0, timeout)
    }

    /// Only browsers notify: elsewhere wgpu calls back when it is polled.
    fn notify(&self, submission: SubmissionIndex, waker: &Waker) -> Result<bool> {
        if self.can_block() {
            return Ok(false);
        }
        self.0.gpu.check_alive()?;
        self.0.queue.notify(submission.0, waker);
        Ok(true)
    }

    /// Only waits: wgpu has no memory that the host writes while the device reads it, so that no
    /// kernel can poll for a cancellation.
    fn cancel(&self, submission: SubmissionIndex) -> Result<Option<Cancelled>> {
        self.0.gpu.check_alive()?;
        let has_ended = self.0.queue.wait(submission.0, CANCEL_TIMEOUT)?;
        let none = Cancelled { first: SubmissionIndex(submission.0 + 1), last: submission };
        Ok(has_ended.then_some(none))
    }

    fn timings(&self, submission: SubmissionIndex) -> Result<Vec<Duration>> {
        self.0.queue.timings(submission.0)
    }

    fn discard_timings(&self, submission: SubmissionIndex) {
        if !self.0.gpu.is_abandoned() {
            self.0.queue.discard_timings(submission.0);
        }
    }

    fn abandon(&self) {
        self.0.gpu.abandon();
    }
}

impl Drop for WgpuDriver {
    fn drop(&mut self) {
        let state = &self.0;
        if !self.can_block() {
            // The browser keeps what its queue uses.
            return;
        }
        if !state.gpu.is_abandoned() {
            match state.queue.wait(state.queue.last(), DROP_TIMEOUT) {
                Ok(true) => return,
                outcome => log::error!(
                    "{}: work is not done as the device is dropped ({outcome:?}): what it uses is \
                     leaked",
                    state.gpu.info.name
                ),
            }
        }
        // wgpu waits for the device when it is dropped, and in a forked child for locks.
        std::mem::forget(Arc::clone(state));
    }
}
