//! The submissions of a device: ordering, retention of resources, waiting and back-pressure.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::api::error::{GpuError, Result, WouldBlockError};
use crate::cache::DiskCache;
use crate::core::command::{Barrier, Command, Stages, Step};
use crate::core::command_list::CommandList;
use crate::core::device_state::DeviceState;
use crate::core::driver::{Driver, Work};
use crate::core::driver_recording::{DriverRecording, Part};
use crate::core::failures::{FailedSubmission, FailureScope, Failures, ReportReadback};
use crate::core::handles::{MemoryId, MemoryKind, SubmissionIndex};
use crate::core::hazard::Hazards;
use crate::core::logging;
use crate::core::memory::Memory;
use crate::core::observer::{observed, settled};
use crate::core::queue_state::{InFlight, MAX_IN_FLIGHT, QueueState};
use crate::core::watcher::Watcher;
use crate::lifecycle::cancellation::{CancellationScope, Cancellations};

/// Longest uninterrupted wait inside a driver, which bounds the delay of interrupts and time
/// limits.
const WAIT_SLICE: Duration = Duration::from_millis(50);

/// Maximum number of submissions of one call, a replay: fills of reports, zero fills, inputs, the
/// recorded commands, and copies of reports.
const MAX_PER_CALL: usize = 5;

/// How long the drop of a device waits for unfinished work before it abandons the device.
const DROP_TIMEOUT: Duration = Duration::from_secs(5);

/// The submissions of a device.
pub(crate) struct SubmissionQueue {
    device: Arc<DeviceState>,
    /// Launches submitted so far.
    pub launches: AtomicU64,
    state: Mutex<QueueState>,
    pub(super) cancellations: Arc<Cancellations>,
    failures: Failures,
    pub(super) watcher: Watcher,
}

impl Deref for SubmissionQueue {
    type Target = DeviceState;

    fn deref(&self) -> &DeviceState {
        &self.device
    }
}

impl SubmissionQueue {
    /// Wraps a newly opened driver.
    pub(super) fn new(driver: Arc<dyn Driver>, disk: Option<DiskCache>) -> Self {
        Self {
            device: Arc::new(DeviceState::new(driver, disk)),
            launches: AtomicU64::new(0),
            state: Mutex::default(),
            cancellations: Arc::default(),
            failures: Failures::default(),
            watcher: Watcher::default(),
        }
    }

    /// Allocates memory. If the device is out of memory, retries once after all submitted work is
    /// done and its memory is freed.
    pub(crate) fn allocate(&self, kind: MemoryKind, size: u64, label: &str) -> Result<Arc<Memory>> {
        match self.try_allocate(kind, size, label) {
            Err(GpuError::OutOfMemory(_))
                if self.driver.can_block() && self.has_unfinished_work() =>
            {
                self.wait_for_all(FailureScope::None)?;
                self.try_allocate(kind, size, label)
            }
            other => other,
        }
    }

    /// Allocates memory without waiting.
    pub(super) fn try_allocate(
        &self,
        kind: MemoryKind,
        size: u64,
        label: &str,
    ) -> Result<Arc<Memory>> {
        self.check_alive()?;
        let memory = Memory::allocate(&self.driver, &self.account, kind, size, label);
        let memory = self.note_loss(memory)?;
        logging::allocated(&self.info, kind, size, label);
        Ok(memory)
    }

    /// Submits commands, if there are any, without a ticket.
    pub(crate) fn submit_unless_empty(&self, list: CommandList) -> Result<()> {
        self.submit_list(list, false).map(|_| ())
    }

    /// Submits commands, if there are any.
    pub(crate) fn submit_list(
        &self,
        list: CommandList,
        timed: bool,
    ) -> Result<Option<SubmissionIndex>> {
        match list.is_empty() {
            true => self.check_alive().map(|()| None),
            false => self.submit(list, timed).map(Some),
        }
    }

    /// Submits commands: zeroes uninitialised memory, inserts barriers, keeps resources alive.
    pub(crate) fn submit(&self, list: CommandList, timed: bool) -> Result<SubmissionIndex> {
        self.make_room_in_flight()?;
        self.submit_now(list, timed)
    }

    /// Submits commands without limiting the number of unfinished submissions. Timed commands
    /// contain no replays.
    pub(super) fn submit_now(&self, list: CommandList, timed: bool) -> Result<SubmissionIndex> {
        if list.observers.is_empty() {
            return self.submit_prepared(list, timed);
        }
        list.prepare()?;
        let observers = list.observers.clone();
        settled(&observers, self.submit_prepared(list, timed))
    }

    fn submit_prepared(&self, list: CommandList, timed: bool) -> Result<SubmissionIndex> {
        let readback = ReportReadback::for_list(self, &list)?;
        let written = (!list.observers.is_empty()).then(|| list.written());
        let mut state = self.lock();
        let mut fills = list.zero_fills();
        fills.extend(list.reports.fills());
        let launches = list.launch_count();
        let CommandList {
            mut commands, memories, retained, read_by_host, replays, observers, ..
        } = list;
        let fill_count = fills.len();
        commands.extend(readback.iter().flat_map(ReportReadback::copies));
        let (submission, steps) = if replays.is_empty() {
            let mut steps = state.schedule(fills.into_iter().chain(commands));
            if read_by_host || readback.is_some() {
                steps.push(Step::Barrier(TO_HOST));
            }
            let submit = || self.submit_steps(&mut state, &steps, timed);
            (observed(&observers, written.as_ref(), submit)?, steps.len())
        } else {
            let commands = fills.into_iter().chain(commands);
            let mut parts = state.schedule_with_replays(commands, fill_count, &replays);
            if read_by_host || readback.is_some() {
                parts.push(Part::Steps(vec![Step::Barrier(TO_HOST)]));
            }
            let submit = || self.submit_parts(&mut state, &parts);
            let steps = parts.iter().map(Part::step_count).sum();
            (observed(&observers, written.as_ref(), submit)?, steps)
        };
        logging::submitted(&self.info, submission, launches, steps);
        self.launches.fetch_add(launches, Ordering::Relaxed);
        memories.iter().for_each(|memory| memory.mark_initialised());
        replays.iter().for_each(|replay| replay.recorded.mark_initialised());
        state.push(InFlight { submission, _retained: retained, _memories: memories, readback });
        Ok(submission)
    }

    /// Prepares commands for repeated execution.
    pub(crate) fn record(&self, mut list: CommandList) -> Result<Arc<DriverRecording>> {
        self.check_alive()?;
        list.prepare()?;
        list.expand_replays();
        let mut hazards = Hazards::default();
        let mut steps = vec![Step::Barrier(hazards.order_all())];
        steps.extend(hazards.schedule(list.commands.iter().cloned()));
        let read_by_host = std::mem::take(&mut list.read_by_host);
        if read_by_host {
            steps.push(Step::Barrier(TO_HOST));
        }
        let id = self.note_loss(self.driver.record(&steps))?;
        Ok(Arc::new(DriverRecording::new(&self.driver, id, list, hazards, read_by_host)))
    }

    /// Replays a recording, after commands that write its inputs.
    pub(crate) fn replay(
        &self,
        recorded: &Arc<DriverRecording>,
        inputs: CommandList,
    ) -> Result<SubmissionIndex> {
        self.make_room_in_flight()?;
        recorded.list().prepare()?;
        settled(&recorded.list().observers, self.replay_now(recorded, inputs))
    }

    /// Replays a recording without limiting the number of unfinished submissions.
    fn replay_now(
        &self,
        recorded: &Arc<DriverRecording>,
        inputs: CommandList,
    ) -> Result<SubmissionIndex> {
        let readback = ReportReadback::for_list(self, recorded.list())?;
        let mut state = self.lock();
        let fills = recorded.list().reports.fills().collect();
        self.submit_before_replay(&mut state, recorded, fills, Vec::new())?;
        if !recorded.is_initialised() {
            self.submit_before_replay(
                &mut state,
                recorded,
                recorded.list().zero_fills(),
                Vec::new(),
            )?;
        }
        self.submit_before_replay(&mut state, recorded, inputs.commands, inputs.memories)?;
        // Until it succeeds: the hazards are those before the recording, which may be executing.
        state.order_all_next = true;
        let submit = || self.note_loss(self.driver.submit(Work::Replay(recorded.id()), false));
        let submission = observed(&recorded.list().observers, recorded.written(), submit)?;
        logging::replayed(&self.info, submission, recorded.launches(), recorded.command_count());
        // Only after the submission: if it fails, memory that the recording overwrites stays
        // uninitialised.
        recorded.mark_initialised();
        self.launches.fetch_add(recorded.launches(), Ordering::Relaxed);
        // A recording begins with a barrier after all earlier work.
        state.hazards.copy_from(recorded.hazards());
        state.order_all_next = false;
        state.push(InFlight::for_replay(submission, recorded));
        let Some(readback) = readback else { return Ok(submission) };
        // The reports of each replay are copied separately: the next replay may begin before they
        // are read.
        let mut steps = state.schedule(readback.copies());
        steps.push(Step::Barrier(TO_HOST));
        match self.submit_steps(&mut state, &steps, false) {
            Ok(submission) => {
                state.push(InFlight {
                    readback: Some(readback),
                    ..InFlight::for_replay(submission, recorded)
                });
                Ok(submission)
            }
            Err(error) => {
                // The recording is executing, but the caller gets an error and may assume that its
                // memory is idle.
                drop(state);
                self.wait_for_memory(submission)?;
                Err(error)
            }
        }
    }

    /// Waits until `submission` is done, subject to the device's time limit.
    pub(crate) fn wait(&self, submission: SubmissionIndex) -> Result<()> {
        self.wait_until(submission, None).map(|_| ())
    }

    /// Waits until `submission` is done, for at most `timeout`; returns whether it is. An elapsed
    /// `timeout` is not an error and does not affect the device, unlike the device's time limit.
    pub(crate) fn wait_until(
        &self,
        submission: SubmissionIndex,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        self.wait_reporting(submission, timeout, CancellationScope::Any, FailureScope::Reader(None))
    }

    /// Waits until `submission` is done, in order to read from an allocation.
    pub(crate) fn wait_for_reading(
        &self,
        submission: SubmissionIndex,
        memory: MemoryId,
    ) -> Result<()> {
        self.wait_reporting(
            submission,
            None,
            CancellationScope::Any,
            FailureScope::Reader(Some(memory)),
        )
        .map(|_| ())
    }

    /// Waits until `submission` is done, in order to reuse its memory. Failed launches are not
    /// reported here, but by waits for their results.
    pub(crate) fn wait_for_memory(&self, submission: SubmissionIndex) -> Result<()> {
        self.wait_reporting(submission, None, CancellationScope::Any, FailureScope::None)
            .map(|_| ())
    }

    /// [`SubmissionQueue::wait_until`] with a choice of the cancellations and failures to report.
    fn wait_reporting(
        &self,
        submission: SubmissionIndex,
        timeout: Option<Duration>,
        cancellation_scope: CancellationScope,
        failure_scope: FailureScope,
    ) -> Result<bool> {
        if !self.driver.can_block() {
            return self.poll_once(submission, timeout, cancellation_scope, failure_scope);
        }
        let start = self.start_wait();
        loop {
            self.check_alive()?;
            let elapsed = start.at.elapsed();
            let limit = self.time_limit();
            let remaining = |limit: Option<Duration>| limit.map(|l| l.saturating_sub(elapsed));
            let slice = [remaining(timeout), remaining(limit)].into_iter().flatten();
            let slice = slice.fold(WAIT_SLICE, Duration::min);
            if self.note_loss(self.driver.wait(submission, slice))? {
                return self
                    .finish_wait(submission, start.cancellations, cancellation_scope, failure_scope)
                    .map(|()| true);
            }
            if timeout.is_some_and(|timeout| start.at.elapsed() >= timeout) {
                return Ok(false);
            }
            if let Some(limit) = limit.filter(|limit| start.at.elapsed() >= *limit) {
                self.cancel_or_abandon(submission, limit)?;
                continue;
            }
            start.check_interrupts(self)?;
        }
    }

    /// Polls once, on a thread that must not block. An unfinished submission is an error, unless
    /// `timeout` is zero.
    fn poll_once(
        &self,
        submission: SubmissionIndex,
        timeout: Option<Duration>,
        cancellation_scope: CancellationScope,
        failure_scope: FailureScope,
    ) -> Result<bool> {
        self.check_alive()?;
        if self.note_loss(self.driver.poll(submission))? {
            let cancellations_before = self.cancellations.count();
            return self
                .finish_wait(submission, cancellations_before, cancellation_scope, failure_scope)
                .map(|()| true);
        }
        match timeout {
            Some(Duration::ZERO) => Ok(false),
            _ => Err(self.would_block_error()),
        }
    }

    /// Returns the error of a call that would wait on a thread that must not block.
    pub(super) fn would_block_error(&self) -> GpuError {
        let device = self.info.name.clone();
        GpuError::WouldBlock(WouldBlockError { function: None, device })
    }

    /// Releases the memory of completed submissions up to `submission`. Returns an error if it was
    /// cancelled or a launch failed; `cancellations_before` is the number of cancellations when the
    /// wait started.
    pub(super) fn finish_wait(
        &self,
        submission: SubmissionIndex,
        cancellations_before: usize,
        cancellation_scope: CancellationScope,
        failure_scope: FailureScope,
    ) -> Result<()> {
        self.reap(submission);
        if let Some(limit) =
            self.cancellations.limit_for(submission, cancellations_before, cancellation_scope)
        {
            return Err(self.timeout_error(limit, CANCELLED_HELP));
        }
        let last = self.lock().last.unwrap_or(submission);
        self.failures.failure_for_wait(submission, failure_scope, last).map_or(Ok(()), Err)
    }

    /// Makes waits for these submissions, and for work that may depend on them, fail.
    #[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "WebAssembly has no groups"))]
    pub(crate) fn fail(&self, submissions: Vec<FailedSubmission>, error: &GpuError) {
        self.failures.add(submissions, error);
    }

    /// Stops reporting the failures of finished work to readers of an allocation.
    pub(crate) fn forget_failures(&self, memory: MemoryId) {
        self.failures.forget(memory);
    }

    /// Returns the latest submission, if there is one.
    pub(super) fn last_submission(&self) -> Option<SubmissionIndex> {
        self.lock().last
    }

    /// Returns the submission at whose end fewer than the maximum are in flight; `None` if fewer
    /// are already. Does not wait.
    pub(super) fn excess_in_flight(&self) -> Option<SubmissionIndex> {
        self.lock().excess_in_flight()
    }

    /// Returns the device's state, shared with futures and the watcher.
    pub(super) fn device_state(&self) -> &Arc<DeviceState> {
        &self.device
    }

    /// Waits until everything submitted is done.
    pub(crate) fn wait_idle(&self) -> Result<()> {
        self.wait_for_all(FailureScope::New)
    }

    fn wait_for_all(&self, failure_scope: FailureScope) -> Result<()> {
        let Some(last) = self.lock().last else { return Ok(()) };
        self.wait_reporting(last, None, CancellationScope::DuringWait, failure_scope).map(|_| ())
    }

    /// Submits commands that must precede a replay, if there are any; keeps `memories` alive.
    fn submit_before_replay(
        &self,
        state: &mut QueueState,
        recorded: &Arc<DriverRecording>,
        commands: Vec<Command>,
        memories: Vec<Arc<Memory>>,
    ) -> Result<()> {
        if commands.is_empty() {
            return Ok(());
        }
        let steps = state.schedule(commands);
        let submission = self.submit_steps(state, &steps, false)?;
        state.push(InFlight { _memories: memories, ..InFlight::for_replay(submission, recorded) });
        Ok(())
    }

    /// Submits steps of [`QueueState::schedule`]. Unless it succeeds, the next submission orders
    /// everything.
    fn submit_steps(
        &self,
        state: &mut QueueState,
        steps: &[Step],
        timed: bool,
    ) -> Result<SubmissionIndex> {
        let submitted = self.note_loss(self.driver.submit(Work::Once(steps), timed));
        state.order_all_next = submitted.is_err();
        submitted
    }

    /// Submits parts of [`QueueState::schedule_with_replays`], as [`Self::submit_steps`] does.
    fn submit_parts(&self, state: &mut QueueState, parts: &[Part]) -> Result<SubmissionIndex> {
        let works: Vec<Work<'_>> = parts.iter().map(Part::work).collect();
        let submitted = self.note_loss(self.driver.submit(Work::Sequence(&works), false));
        state.order_all_next = submitted.is_err();
        submitted
    }

    /// Cancels work up to `submission` that exceeded the time limit; abandons the device if that is
    /// not possible.
    fn cancel_or_abandon(&self, submission: SubmissionIndex, limit: Duration) -> Result<()> {
        if self.note_loss(self.cancellations.cancel(&*self.driver, submission, limit))? {
            return Ok(());
        }
        self.abandon(limit);
        Err(self.timeout_error(limit, ABANDONED_HELP))
    }

    /// Releases the resources of finished submissions, without waiting.
    pub(crate) fn release_finished(&self) -> Result<()> {
        self.check_alive()?;
        let submissions: Vec<SubmissionIndex> =
            self.lock().in_flight.iter().map(|entry| entry.submission).collect();
        let is_done = |it: &SubmissionIndex| self.driver.poll(*it).unwrap_or(false);
        let done = submissions.partition_point(is_done);
        submissions[..done].last().into_iter().for_each(|last| self.reap(*last));
        Ok(())
    }

    fn has_unfinished_work(&self) -> bool {
        !self.lock().in_flight.is_empty()
    }

    // Poison is ignored: if the driver panics under the lock, the next submission orders
    // everything, and nothing else changes before the driver has succeeded.
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the resources of submissions up to `submission`, which are done.
    fn reap(&self, submission: SubmissionIndex) {
        let drain = || {
            let mut state = self.lock();
            let count = state.in_flight.partition_point(|entry| entry.submission <= submission);
            state.in_flight.drain(..count).collect()
        };
        let done: Vec<InFlight> = self.failures.collect(self, drain, InFlight::readback);
        // Freed outside the lock.
        drop(done);
    }

    /// Limits the submissions in flight. Must be called before the submission: if this wait fails,
    /// the caller's work was not submitted.
    fn make_room_in_flight(&self) -> Result<()> {
        self.check_alive()?;
        let (excess, polled) = {
            let state = self.lock();
            // A poll of the driver costs time, so it starts only at an eighth of the maximum. Each
            // frees as many submissions as a call can add.
            let may_poll = state.in_flight.len() > MAX_IN_FLIGHT / 8;
            let polled = state.in_flight.get(MAX_PER_CALL - 1).filter(|_| may_poll);
            (state.excess_in_flight(), polled.map(|entry| entry.submission))
        };
        match (excess, polled) {
            (Some(submission), _) => self.wait_for_memory(submission),
            (None, Some(submission))
                if self.driver.wait(submission, Duration::ZERO).unwrap_or(false) =>
            {
                self.reap(submission);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The help text for cancelled work.
const CANCELLED_HELP: &str = "look for an endless loop, or raise Device::set_time_limit; the work \
                              was cancelled, its results are incomplete, and the device remains \
                              usable";

/// The help text for work that could not be cancelled.
pub(super) const ABANDONED_HELP: &str = "look for an endless loop, or raise \
                                         Device::set_time_limit; the device was abandoned, open a \
                                         new one";

/// Makes the results of copies visible to the host.
const TO_HOST: Barrier = Barrier { before: Stages::TRANSFER, after: Stages::HOST };

impl Drop for SubmissionQueue {
    fn drop(&mut self) {
        self.watcher.end(&self.device);
        if self.device.has_forked() {
            self.device.driver.abandon();
            return;
        }
        if self.device.is_lost() || !self.device.driver.can_block() {
            return;
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = state.last else { return };
        // No handle exists that could read the results.
        if matches!(self.device.driver.cancel(last), Ok(Some(_))) {
            return;
        }
        if !matches!(self.device.driver.wait(last, DROP_TIMEOUT), Ok(true)) {
            self.device.driver.abandon();
        }
    }
}
