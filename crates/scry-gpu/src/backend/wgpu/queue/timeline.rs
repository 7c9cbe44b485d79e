//! Completion of submissions: wgpu's callbacks, which polling calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use wgpu::{CommandBuffer, PollError, PollType, SubmissionIndex};

use crate::api::error::Result;
use crate::backend::shared::locks::{lock, try_lock};
use crate::backend::wgpu::device::Gpu;

/// The progress of a device.
pub(super) struct Timeline {
    pub(super) shared: Arc<Shared>,
    /// The last submission to wgpu. Locked during each call of wgpu that submits, or that processes
    /// finished work: wgpu 30 panics if another thread's call processes the work that a blocking
    /// call waits for while that times out.
    submitted: Mutex<Option<SubmissionIndex>>,
    gpu: Arc<Gpu>,
}

/// The part that callbacks use.
#[derive(Default)]
pub(super) struct Shared {
    /// The number of the last finished submission.
    reached: AtomicU64,
    /// The unfinished submissions.
    pending: Mutex<BTreeMap<u64, Pending>>,
}

/// An unfinished submission.
struct Pending {
    /// Callbacks that it waits for. A browser calls them for a lost device too.
    callbacks: usize,
    /// Woken when it is done.
    wakers: Vec<Waker>,
}

impl Shared {
    /// Adds a submission that is done after a number of callbacks.
    pub(super) fn begin(&self, number: u64, callbacks: usize) {
        lock(&self.pending).insert(number, Pending { callbacks, wakers: Vec::new() });
    }

    /// Removes the last submission, which failed.
    pub(super) fn retract(&self, number: u64) {
        lock(&self.pending).remove(&number);
    }

    /// Counts a callback of a submission.
    pub(super) fn finish_part(&self, number: u64) {
        let (mut pending, mut wakers) = (lock(&self.pending), Vec::new());
        if let Some(submission) = pending.get_mut(&number) {
            submission.callbacks -= 1;
        }
        // Submissions are done in order.
        while let Some(first) = pending.first_entry()
            && first.get().callbacks == 0
        {
            self.reached.store(*first.key(), Ordering::Release);
            wakers.extend(first.remove().wakers);
        }
        drop(pending);
        // Without the lock: a waker may submit work.
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Wakes `waker` once a submission is done, which may be now.
    pub(super) fn notify(&self, number: u64, waker: &Waker) {
        if let Some(submission) = lock(&self.pending).get_mut(&number) {
            submission.wakers.push(waker.clone());
            return;
        }
        waker.wake_by_ref();
    }
}

impl Timeline {
    pub(super) fn new(gpu: &Arc<Gpu>) -> Self {
        Self { shared: Arc::default(), submitted: Mutex::default(), gpu: Arc::clone(gpu) }
    }

    /// Returns the number of the last submission that is known to be done.
    pub(super) fn last_seen(&self) -> u64 {
        self.shared.reached.load(Ordering::Acquire)
    }

    /// Submits a command buffer to wgpu, and runs `then` before any of its callbacks.
    pub(super) fn submit(&self, commands: CommandBuffer, then: impl FnOnce()) -> Result<()> {
        let mut submitted = lock(&self.submitted);
        let submit = || self.gpu.queue.submit([commands]);
        *submitted = Some(self.gpu.call("Queue::submit", submit)?);
        then();
        Ok(())
    }

    /// Calls the callbacks of work that is done, unless another thread does; returns the last
    /// finished submission.
    pub(super) fn poll(&self) -> Result<u64> {
        self.gpu.check_alive()?;
        if let Some(_submitted) = try_lock(&self.submitted) {
            self.process(PollType::Poll)?;
        }
        let reached = self.last_seen();
        self.gpu.check_alive()?;
        Ok(reached)
    }

    /// Blocks until the work that was submitted to wgpu is done, for at most `timeout`, and calls
    /// its callbacks. Returns false, at once, if another thread is in such a call.
    pub(super) fn block(&self, timeout: Duration) -> Result<bool> {
        let Some(submitted) = try_lock(&self.submitted) else { return Ok(false) };
        let submission_index = submitted.clone();
        self.process(PollType::Wait { submission_index, timeout: Some(timeout) })?;
        Ok(true)
    }

    /// Lets wgpu process finished work; the caller has the lock of `submitted`.
    fn process(&self, poll: PollType) -> Result<()> {
        match self.gpu.device.poll(poll) {
            Ok(_) | Err(PollError::Timeout) => Ok(()),
            Err(error) => Err(self.gpu.mark_lost(format!("Device::poll failed: {error}"))),
        }
    }
}
