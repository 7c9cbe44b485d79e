//! The future of a submission: the async counterpart of a blocking wait.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use crate::api::error::{GpuError, InterruptedError, Result};
use crate::api::info::DeviceKind;
use crate::core::clock::Instant;
use crate::core::context::Context;
use crate::core::failures::FailureScope;
use crate::core::handles::{MemoryId, SubmissionIndex};
use crate::core::submission_queue::{ABANDONED_HELP, SubmissionQueue};
use crate::core::wakers::{FutureId, Wakers};
use crate::core::watcher;
use crate::lifecycle::cancellation::CancellationScope;

/// How long the first poll of a future may wait for the device, if no other future of the device
/// is pending: waking a task costs more than a small dispatch.
const BRIEF_WAIT: Duration = Duration::from_micros(50);

/// Completes when a submission is done, with the error that a blocking wait would return. Dropping
/// it cancels the wait, not the work.
pub(crate) struct Completion {
    context: Arc<Context>,
    submission: SubmissionIndex,
    cancellation_scope: CancellationScope,
    failure_scope: FailureScope,
    started: Option<WaitStart>,
    id: Option<FutureId>,
}

/// The time at which a wait started, and the device's counters at that time. Earlier interrupts do
/// not affect the wait; of earlier cancellations, only that of the awaited submission may
/// ([`CancellationScope`]).
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitStart {
    pub(crate) at: Instant,
    interrupts: u64,
    pub(crate) cancellations: usize,
}

impl WaitStart {
    /// Returns [`GpuError::Interrupted`] if the wait was interrupted.
    pub(crate) fn check_interrupts(&self, queue: &SubmissionQueue) -> Result<()> {
        if queue.interrupts() == self.interrupts {
            return Ok(());
        }
        let device = queue.info.name.clone();
        Err(GpuError::Interrupted(InterruptedError { function: None, device }))
    }
}

impl Completion {
    /// Completes when a submission is done.
    pub(crate) fn for_submission(context: &Arc<Context>, submission: SubmissionIndex) -> Self {
        Self::new(context, submission, CancellationScope::Any, FailureScope::Task(None))
    }

    /// Completes when a submission is done, in order to read its results from an allocation.
    pub(crate) fn for_reading(
        context: &Arc<Context>,
        submission: SubmissionIndex,
        memory: MemoryId,
    ) -> Self {
        Self::new(context, submission, CancellationScope::Any, FailureScope::Task(Some(memory)))
    }

    /// Completes when a submission is done, in order to reuse its memory. Failed launches are not
    /// reported.
    pub(crate) fn for_memory(context: &Arc<Context>, submission: SubmissionIndex) -> Self {
        Self::new(context, submission, CancellationScope::Any, FailureScope::None)
    }

    /// Completes when everything submitted so far is done; `None` if nothing was submitted.
    pub(crate) fn for_all_submitted(context: &Arc<Context>) -> Option<Self> {
        let last = context.last_submission()?;
        Some(Self::new(context, last, CancellationScope::DuringWait, FailureScope::New))
    }

    fn new(
        context: &Arc<Context>,
        submission: SubmissionIndex,
        cancellation_scope: CancellationScope,
        failure_scope: FailureScope,
    ) -> Self {
        Self {
            context: context.clone(),
            submission,
            cancellation_scope,
            failure_scope,
            started: None,
            id: None,
        }
    }

    /// Polls the device once; `None` while the work is unfinished.
    fn check(&self, started: &WaitStart) -> Option<Result<()>> {
        let queue: &SubmissionQueue = &self.context;
        let is_late = |limit: &Duration| started.at.elapsed() >= *limit;
        if let Err(error) = queue.check_alive() {
            // The watcher abandoned the device at its time limit: a future that has waited as long
            // returns the timeout, others the loss.
            let abandoned = queue.wakers_unless_forked().and_then(Wakers::abandoned_after);
            let late =
                abandoned.filter(is_late).map(|limit| queue.timeout_error(limit, ABANDONED_HELP));
            return Some(Err(late.unwrap_or(error)));
        }
        match queue.note_loss(queue.driver.poll(self.submission)) {
            Ok(true) => Some(queue.finish_wait(
                self.submission,
                started.cancellations,
                self.cancellation_scope,
                self.failure_scope,
            )),
            // Past the time limit the work is being cancelled: the future then returns the timeout.
            Ok(false) if queue.time_limit().is_some_and(|limit| is_late(&limit)) => None,
            Ok(false) => started.check_interrupts(queue).err().map(Err),
            Err(error) => Some(Err(error)),
        }
    }

    /// Registers the waker, to be woken once the submission is done or the future must poll again.
    fn register(&mut self, waker: &task::Waker, started: &WaitStart) -> Result<()> {
        let queue: &SubmissionQueue = &self.context;
        let wakers = &queue.wakers;
        let id = *self.id.get_or_insert_with(|| wakers.new_id());
        let deadline = queue.time_limit().and_then(|limit| started.at.checked_add(limit));
        if wakers.insert(self.submission, id, waker, deadline) {
            let notification = watcher::notification(queue.device_state(), self.submission);
            let notifies = queue.note_loss(queue.driver.notify(self.submission, &notification))?;
            if !notifies {
                wakers.request_polling();
            }
        }
        if wakers.need_watcher() {
            queue.start_watcher()?;
        }
        Ok(())
    }

    /// Waits for up to [`BRIEF_WAIT`]: by polling, or asleep if the device runs on host cores.
    fn wait_briefly(&self, started: &WaitStart) -> Option<Result<()>> {
        let queue: &SubmissionQueue = &self.context;
        if !queue.driver.can_block() {
            return None;
        }
        if queue.info.kind == DeviceKind::Software {
            return match queue.note_loss(queue.driver.wait(self.submission, BRIEF_WAIT)) {
                Ok(false) => None,
                // Done, or an error of the driver, which `check` returns again.
                _ => self.check(started),
            };
        }
        while started.at.elapsed() < BRIEF_WAIT {
            std::hint::spin_loop();
            if let Some(result) = self.check(started) {
                return Some(result);
            }
        }
        None
    }

    fn poll_device(&mut self, cx: &task::Context<'_>) -> Poll<Result<()>> {
        let is_first = self.started.is_none();
        let started = *self.started.get_or_insert_with(|| self.context.start_wait());
        if let Some(result) = self.check(&started) {
            return Poll::Ready(result);
        }
        if is_first
            && self.context.wakers.is_empty()
            && let Some(result) = self.wait_briefly(&started)
        {
            return Poll::Ready(result);
        }
        if let Err(error) = self.register(cx.waker(), &started) {
            return Poll::Ready(Err(error));
        }
        // Checked again: events before the waker was stored did not wake it.
        self.check(&started).map_or(Poll::Pending, Poll::Ready)
    }

    /// Removes the waker.
    fn unregister(&mut self) {
        if let Some(id) = self.id.take()
            && let Some(wakers) = self.context.wakers_unless_forked()
        {
            wakers.remove(self.submission, id);
        }
    }
}

impl Future for Completion {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Result<()>> {
        let result = self.poll_device(cx);
        if result.is_ready() {
            self.unregister();
        }
        result
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        self.unregister();
    }
}

impl SubmissionQueue {
    /// Returns the current counters; the wait compares later values with them.
    pub(crate) fn start_wait(&self) -> WaitStart {
        let cancellations = self.cancellations.count();
        WaitStart { at: Instant::now(), interrupts: self.interrupts(), cancellations }
    }

    fn start_watcher(&self) -> Result<()> {
        self.watcher.start(self.device_state(), &self.cancellations)
    }
}
