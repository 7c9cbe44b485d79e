//! Completion of submissions: wgpu's callbacks, which polling calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use wgpu::PollType;

use crate::api::error::Result;
use crate::backend::shared::locks::lock;
use crate::backend::wgpu::device::Gpu;

/// The progress of a device.
pub(super) struct Timeline {
    pub(super) shared: Arc<Shared>,
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
        Self { shared: Arc::default(), gpu: Arc::clone(gpu) }
    }

    /// Returns the number of the last submission that is known to be done.
    pub(super) fn last_seen(&self) -> u64 {
        self.shared.reached.load(Ordering::Acquire)
    }

    /// Calls the callbacks of work that is done; returns the last finished submission.
    pub(super) fn poll(&self) -> Result<u64> {
        self.gpu.check_alive()?;
        if let Err(error) = self.gpu.device.poll(PollType::Poll) {
            return Err(self.gpu.mark_lost(format!("Device::poll failed: {error}")));
        }
        let reached = self.last_seen();
        self.gpu.check_alive()?;
        Ok(reached)
    }
}
