//! The order of a device's submissions: hazards, what they keep alive, waiting and back-pressure.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::api::error::{GpuError, InterruptedError, Result};
use crate::cache::DiskCache;
use crate::core::command::{Barrier, BufferRange, Command, Stages, Step};
use crate::core::command_list::{CommandList, Retained};
use crate::core::device_state::DeviceState;
use crate::core::driver::{Driver, Work};
use crate::core::failures::{FailureScope, Failures, ReportReadback};
use crate::core::handles::{MemoryId, MemoryKind, RecordingId, SubmissionIndex};
use crate::core::hazard::Hazards;
use crate::core::logging;
use crate::core::memory::Memory;
use crate::core::watcher::Watcher;
use crate::lifecycle::cancellation::{Cancellations, Reported};

/// Longest uninterrupted wait inside a driver: an interrupt or a time limit is noticed this soon.
const WAIT_SLICE: Duration = Duration::from_millis(50);

/// Submissions that may be unfinished at once. The host waits for the oldest beyond that, so that
/// a loop of launches never runs away with memory, and never comes to wait inside a driver, where
/// no time limit applies: NVIDIA's queue holds about a thousand operations; a submission is three.
pub(crate) const MAX_IN_FLIGHT: usize = 256;

/// How long the drop of a device waits for unfinished work before it abandons the device.
const DROP_PATIENCE: Duration = Duration::from_secs(5);

/// The submissions of a device.
pub(crate) struct SubmissionQueue {
    device: Arc<DeviceState>,
    /// Launches handed to the driver so far.
    pub launches: AtomicU64,
    order: Mutex<QueueState>,
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

/// The order of submissions.
#[derive(Default)]
struct QueueState {
    hazards: Hazards,
    /// A submission failed after its barriers were counted on: the next one orders everything.
    order_all_next: bool,
    in_flight: VecDeque<InFlight>,
    last: Option<SubmissionIndex>,
}

/// A submission that may be unfinished.
struct InFlight {
    submission: SubmissionIndex,
    /// Held for its drop alone.
    _retained: Vec<Retained>,
    _memories: Vec<Arc<Memory>>,
    /// What its launches report.
    watch: Option<ReportReadback>,
}

impl InFlight {
    /// A submission of a recording, or on behalf of one.
    fn of(submission: SubmissionIndex, recorded: &Arc<Recorded>) -> Self {
        let _retained: Vec<Retained> = vec![recorded.clone()];
        Self { submission, _retained, _memories: Vec::new(), watch: None }
    }

    fn watched(&self) -> Option<(SubmissionIndex, &ReportReadback)> {
        self.watch.as_ref().map(|watch| (self.submission, watch))
    }
}

/// Steps prepared by a driver for repeated execution.
pub(crate) struct Recorded {
    driver: Arc<dyn Driver>,
    id: RecordingId,
    list: CommandList,
    /// Launches of a replay that the caller asked for.
    launches: u64,
    /// The accesses that what follows a replay may have to wait for.
    hazards: Hazards,
    defined: OnceLock<()>,
    /// Ranges that were written before replays, known to be read by the commands.
    inputs: Mutex<Vec<BufferRange>>,
}

/// Ranges of inputs that a recording remembers.
const MOST_INPUTS: usize = 64;

impl Recorded {
    pub(crate) fn list(&self) -> &CommandList {
        &self.list
    }

    /// Whether the range is one of those remembered.
    pub(crate) fn is_known_input(&self, span: BufferRange) -> bool {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).contains(&span)
    }

    /// Remembers a range that is read by the commands.
    pub(crate) fn remember_input(&self, span: BufferRange) {
        let mut inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        if inputs.len() < MOST_INPUTS && !inputs.contains(&span) {
            inputs.push(span);
        }
    }
}

impl Recorded {
    /// How many steps the batch had.
    pub(crate) fn steps(&self) -> usize {
        self.list.commands.len()
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.driver.forget(self.id);
    }
}

impl SubmissionQueue {
    /// Wraps a freshly opened driver.
    pub(super) fn new(driver: Arc<dyn Driver>, disk: Option<DiskCache>) -> Self {
        Self {
            device: Arc::new(DeviceState::new(driver, disk)),
            launches: AtomicU64::new(0),
            order: Mutex::default(),
            cancellations: Arc::default(),
            failures: Failures::default(),
            watcher: Watcher::default(),
        }
    }

    /// Allocates memory; when there is none left, once more after all work is done and what it
    /// kept alive is freed.
    pub(crate) fn allocate(&self, kind: MemoryKind, size: u64, label: &str) -> Result<Arc<Memory>> {
        match self.try_allocate(kind, size, label) {
            Err(GpuError::OutOfMemory(_)) if self.has_unfinished_work() => {
                self.wait_for_all(FailureScope::None)?;
                self.try_allocate(kind, size, label)
            }
            other => other,
        }
    }

    /// Allocates memory, if there is any left now.
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

    /// Submits commands without a ticket.
    pub(crate) fn submit_unless_empty(&self, list: CommandList) -> Result<()> {
        self.submit_list(list, false).map(|_| ())
    }

    /// Submits commands, if there are any.
    pub(crate) fn submit_list(
        &self,
        list: CommandList,
        timed: bool,
    ) -> Result<Option<SubmissionIndex>> {
        match list.commands.is_empty() {
            true => self.check_alive().map(|()| None),
            false => self.submit(list, timed).map(Some),
        }
    }

    /// Submits commands: zeroes what needs zeroing, places barriers, keeps everything alive.
    pub(crate) fn submit(&self, list: CommandList, timed: bool) -> Result<SubmissionIndex> {
        self.make_room_in_flight()?;
        self.submit_now(list, timed)
    }

    /// Submits commands, however many submissions are unfinished.
    pub(super) fn submit_now(&self, list: CommandList, timed: bool) -> Result<SubmissionIndex> {
        let watch = ReportReadback::of(self, &list)?;
        let mut order = self.lock();
        let mut fills = list.zero_fills();
        fills.extend(list.reports.fills());
        let launches = list.launches();
        let CommandList { mut commands, memories, retained, read_by_host, .. } = list;
        commands.extend(watch.iter().flat_map(ReportReadback::copies));
        let mut steps = order.schedule(fills.into_iter().chain(commands));
        if read_by_host || watch.is_some() {
            steps.push(Step::Barrier(TO_HOST));
        }
        let submission = self.submit_once(&mut order, &steps, timed)?;
        logging::submitted(&self.info, submission, launches, steps.len());
        self.launches.fetch_add(launches, Ordering::Relaxed);
        memories.iter().for_each(|memory| memory.set_defined());
        order.push(InFlight { submission, _retained: retained, _memories: memories, watch });
        Ok(submission)
    }

    /// Prepares commands for repeated execution.
    pub(crate) fn record(&self, mut list: CommandList) -> Result<Arc<Recorded>> {
        self.check_alive()?;
        let mut hazards = Hazards::default();
        let mut steps = vec![Step::Barrier(hazards.order_all())];
        steps.extend(hazards.schedule(list.commands.iter().cloned()));
        if std::mem::take(&mut list.read_by_host) {
            steps.push(Step::Barrier(TO_HOST));
        }
        let id = self.note_loss(self.driver.record(&steps))?;
        let driver = self.driver.clone();
        let (defined, inputs) = (OnceLock::new(), Mutex::default());
        let launches = list.launches();
        Ok(Arc::new(Recorded { driver, id, list, launches, hazards, defined, inputs }))
    }

    /// Submits a recording once more, after commands that write what it reads.
    pub(crate) fn replay(
        &self,
        recorded: &Arc<Recorded>,
        inputs: CommandList,
    ) -> Result<SubmissionIndex> {
        self.make_room_in_flight()?;
        let watch = ReportReadback::of(self, &recorded.list)?;
        let mut order = self.lock();
        let fills = recorded.list.reports.fills().collect();
        self.submit_ahead(&mut order, recorded, fills, Vec::new())?;
        if recorded.defined.get().is_none() {
            self.submit_ahead(&mut order, recorded, recorded.list.zero_fills(), Vec::new())?;
        }
        self.submit_ahead(&mut order, recorded, inputs.commands, inputs.memories)?;
        let submission = self.note_loss(self.driver.submit(Work::Replay(recorded.id), false))?;
        logging::replayed(&self.info, submission, recorded.launches, recorded.steps());
        // Not before: what the recording itself overwrites stays undefined if it is not submitted.
        if recorded.defined.set(()).is_ok() {
            recorded.list.set_defined();
        }
        self.launches.fetch_add(recorded.launches, Ordering::Relaxed);
        // The recording begins by ordering all that came before it.
        order.hazards = recorded.hazards.clone();
        order.order_all_next = false;
        order.push(InFlight::of(submission, recorded));
        let Some(watch) = watch else { return Ok(submission) };
        // Of each replay by itself: the next one may begin before anybody has looked.
        let mut steps = order.schedule(watch.copies());
        steps.push(Step::Barrier(TO_HOST));
        match self.submit_once(&mut order, &steps, false) {
            Ok(submission) => {
                order.push(InFlight { watch: Some(watch), ..InFlight::of(submission, recorded) });
                Ok(submission)
            }
            Err(error) => {
                // The recording runs, but the caller is told that it does not, and may take its
                // memory for quiet.
                drop(order);
                self.wait_for_memory(submission)?;
                Err(error)
            }
        }
    }

    /// Waits until `submission` is done, for as long as the device's time limit allows.
    pub(crate) fn wait(&self, submission: SubmissionIndex) -> Result<()> {
        self.wait_until(submission, None).map(|_| ())
    }

    /// Waits until `submission` is done, at most `timeout`; true if it is. A `timeout` that
    /// passes is no error and does the device no harm, unlike the device's time limit.
    pub(crate) fn wait_until(
        &self,
        submission: SubmissionIndex,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        self.wait_noticing(submission, timeout, Reported::Any, FailureScope::Reader(None))
    }

    /// Waits until `submission` is done, in order to read from an allocation.
    pub(crate) fn wait_for_reading(
        &self,
        submission: SubmissionIndex,
        memory: MemoryId,
    ) -> Result<()> {
        self.wait_noticing(submission, None, Reported::Any, FailureScope::Reader(Some(memory)))
            .map(|_| ())
    }

    /// Waits until `submission` is done for the sake of its memory: launches that failed are told
    /// to whoever waits for their results.
    pub(crate) fn wait_for_memory(&self, submission: SubmissionIndex) -> Result<()> {
        self.wait_noticing(submission, None, Reported::Any, FailureScope::None).map(|_| ())
    }

    /// [`SubmissionQueue::wait_until`], told of work that was ended early or failed.
    fn wait_noticing(
        &self,
        submission: SubmissionIndex,
        timeout: Option<Duration>,
        reported: Reported,
        told: FailureScope,
    ) -> Result<bool> {
        let start = Instant::now();
        let interrupts = self.interrupts();
        let known = self.cancellations.count();
        loop {
            self.check_alive()?;
            let elapsed = start.elapsed();
            let limit = self.time_limit();
            let remaining = |limit: Option<Duration>| limit.map(|l| l.saturating_sub(elapsed));
            let slice = [remaining(timeout), remaining(limit)].into_iter().flatten();
            let slice = slice.fold(WAIT_SLICE, Duration::min);
            if self.note_loss(self.driver.wait(submission, slice))? {
                return self.outcome(submission, known, reported, told).map(|()| true);
            }
            if timeout.is_some_and(|timeout| start.elapsed() >= timeout) {
                return Ok(false);
            }
            if let Some(limit) = limit.filter(|limit| start.elapsed() >= *limit) {
                self.end_work(submission, limit)?;
                continue;
            }
            if self.interrupts() != interrupts {
                return Err(GpuError::Interrupted(InterruptedError {
                    function: None,
                    device: self.info.name.clone(),
                }));
            }
        }
    }

    /// Releases the memory of a submission that is done and those before it. An error if it was
    /// cancelled or a launch failed; `known` is the number of cancellations as the wait started.
    pub(super) fn outcome(
        &self,
        submission: SubmissionIndex,
        known: usize,
        reported: Reported,
        told: FailureScope,
    ) -> Result<()> {
        self.reap(submission);
        if let Some(limit) = self.cancellations.limit_for(submission, known, reported) {
            return Err(self.timed_out(limit, ENDED));
        }
        let last = self.lock().last.unwrap_or(submission);
        self.failures.concerning(submission, told, last).map_or(Ok(()), Err)
    }

    /// The latest submission, if there is one.
    pub(super) fn last_submission(&self) -> Option<SubmissionIndex> {
        self.lock().last
    }

    /// Returns the oldest unfinished submission if there are as many as may be in flight. Does not
    /// wait.
    pub(super) fn oldest_if_full(&self) -> Option<SubmissionIndex> {
        let order = self.lock();
        let oldest = order.in_flight.front().filter(|_| order.in_flight.len() >= MAX_IN_FLIGHT);
        oldest.map(|entry| entry.submission)
    }

    /// The device's state, which futures and the watcher share.
    pub(super) fn state(&self) -> &Arc<DeviceState> {
        &self.device
    }

    /// Waits until everything submitted is done.
    pub(crate) fn wait_idle(&self) -> Result<()> {
        self.wait_for_all(FailureScope::New)
    }

    fn wait_for_all(&self, told: FailureScope) -> Result<()> {
        let Some(last) = self.lock().last else { return Ok(()) };
        self.wait_noticing(last, None, Reported::DuringWait, told).map(|_| ())
    }

    /// Submits commands that a replay needs before it, if there are any; they hold `memories`.
    fn submit_ahead(
        &self,
        order: &mut QueueState,
        recorded: &Arc<Recorded>,
        commands: Vec<Command>,
        memories: Vec<Arc<Memory>>,
    ) -> Result<()> {
        if commands.is_empty() {
            return Ok(());
        }
        let steps = order.schedule(commands);
        let submission = self.submit_once(order, &steps, false)?;
        order.push(InFlight { _memories: memories, ..InFlight::of(submission, recorded) });
        Ok(())
    }

    fn submit_once(
        &self,
        order: &mut QueueState,
        steps: &[Step],
        timed: bool,
    ) -> Result<SubmissionIndex> {
        let submitted = self.note_loss(self.driver.submit(Work::Once(steps), timed));
        order.order_all_next = submitted.is_err();
        submitted
    }

    /// Ends work up to `submission` that did not finish within the time limit; gives the device up
    /// if that cannot be done.
    fn end_work(&self, submission: SubmissionIndex, limit: Duration) -> Result<()> {
        if self.note_loss(self.cancellations.cancel(&*self.driver, submission, limit))? {
            return Ok(());
        }
        self.give_up(limit);
        Err(self.timed_out(limit, GIVEN_UP))
    }

    fn has_unfinished_work(&self) -> bool {
        !self.lock().in_flight.is_empty()
    }

    // A panic under the lock cannot leave the order half-changed in a way that matters: all changes
    // follow the driver's success. So poison is ignored, and no panic elsewhere stops a device.
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of what submissions up to `submission` kept alive.
    fn reap(&self, submission: SubmissionIndex) {
        let drain = || {
            let mut order = self.lock();
            let count = order.in_flight.partition_point(|entry| entry.submission <= submission);
            order.in_flight.drain(..count).collect()
        };
        let done: Vec<InFlight> = self.failures.collect(self, drain, InFlight::watched);
        // Freed outside the lock.
        drop(done);
    }

    /// Bounds the work in flight. Called before a submission, so that a wait that fails is a
    /// submission that was not made, and never one that was made but is said to have failed.
    fn make_room_in_flight(&self) -> Result<()> {
        self.check_alive()?;
        let (count, oldest) = {
            let order = self.lock();
            let oldest = order.in_flight.front().map(|entry| entry.submission);
            (order.in_flight.len(), oldest)
        };
        // Looking is cheap, but not free: an eighth full is soon enough.
        let look = count > MAX_IN_FLIGHT / 8;
        match oldest {
            Some(submission) if count >= MAX_IN_FLIGHT => self.wait_for_memory(submission),
            Some(submission)
                if look && self.driver.wait(submission, Duration::ZERO).unwrap_or(false) =>
            {
                self.reap(submission);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// What to do about work that was ended.
const ENDED: &str = "look for an endless loop, or raise Device::set_time_limit; the work was \
                     ended, what it was to write is incomplete, and the device goes on";

/// What to do about work that could not be ended.
pub(super) const GIVEN_UP: &str = "look for an endless loop, or raise Device::set_time_limit; the \
                                   device is given up, open a new one";

/// Makes what copies wrote visible to the host.
const TO_HOST: Barrier = Barrier { before: Stages::TRANSFER, after: Stages::HOST };

impl QueueState {
    fn schedule(&mut self, commands: impl IntoIterator<Item = Command>) -> Vec<Step> {
        if !self.order_all_next {
            return self.hazards.schedule(commands);
        }
        let mut steps = vec![Step::Barrier(self.hazards.order_all())];
        steps.extend(self.hazards.schedule(commands));
        steps
    }

    fn push(&mut self, entry: InFlight) {
        self.last = Some(entry.submission);
        self.in_flight.push_back(entry);
    }
}

impl Drop for SubmissionQueue {
    fn drop(&mut self) {
        self.watcher.end(&self.device);
        if self.device.has_forked() {
            self.device.driver.abandon();
            return;
        }
        if self.device.is_lost() {
            return;
        }
        let order = self.order.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = order.last else { return };
        // No handle is left that could read its results.
        if matches!(self.device.driver.cancel(last), Ok(Some(_))) {
            return;
        }
        if !matches!(self.device.driver.wait(last, DROP_PATIENCE), Ok(true)) {
            self.device.driver.abandon();
        }
    }
}
