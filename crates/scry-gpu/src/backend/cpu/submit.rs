//! The submission queue: execution, progress and cancellation.
//!
//! A worker thread executes submissions one after the other. If it is idle and a submission is
//! small, the submitting thread executes it itself: waking the worker would take longer. In
//! WebAssembly, which has one thread, it executes everything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::thread::{self, Builder, JoinHandle};
use std::time::Duration;

use scry_cpu::{CancelToken, Cancelled, Machine};

use super::encode::Operations;
use super::lock;
use super::panics::{panic_of_function, panic_text};
use crate::api::error::{DeviceLostError, DriverError, GpuError, Result};
use crate::api::info::DeviceInfo;
use crate::core::clock::Instant;

/// Maximum estimated time of a submission that the submitting thread executes itself.
const MAX_INLINE_TIME: Duration = Duration::from_micros(30);

/// How long a wait, and a worker without work, poll before they sleep: about the latency of a
/// wake-up in a virtual machine.
const POLL_TIME: Duration = Duration::from_micros(50);

/// Whether there can be a worker thread.
const HAS_THREADS: bool = !cfg!(target_arch = "wasm32");

/// Timeout for cancelled work to stop.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(500);

/// The submissions of a device.
pub(super) struct Queue {
    shared: Arc<Shared>,
}

struct Shared {
    device: String,
    machine: Machine,
    /// Makes the machine stop submissions, by their number.
    stop: CancelToken,
    state: Mutex<State>,
    /// Signals pending work to the worker.
    work: Condvar,
    /// Signals the end of a submission.
    done: Condvar,
    /// The number of the latest submission.
    last: AtomicU64,
    /// The number of the last finished submission.
    reached: AtomicU64,
    /// The reason of the device loss, once it happened.
    failure: OnceLock<String>,
}

#[derive(Default)]
struct State {
    pending: VecDeque<Submission>,
    /// Whether a thread is executing a submission.
    busy: bool,
    /// The number of the latest submission.
    last: u64,
    /// The first submission that was stopped since the last cancellation returned.
    first_stopped: Option<u64>,
    /// Number of threads that sleep until a submission is done.
    waiting: usize,
    /// The wakers of unfinished submissions.
    wakers: BTreeMap<u64, Vec<Waker>>,
    /// Number and launch durations of timed submissions that were not read yet, in order.
    timings: Vec<(u64, Vec<Duration>)>,
    /// The unfinished timed submissions whose times nothing will read.
    discarded: BTreeSet<u64>,
    thread: Option<JoinHandle<()>>,
    closed: bool,
}

struct Submission {
    number: u64,
    operations: Arc<Operations>,
    timed: bool,
}

impl Queue {
    pub(super) fn new(machine: Machine, info: &DeviceInfo) -> Self {
        Self {
            shared: Arc::new(Shared {
                device: info.name.clone(),
                machine,
                stop: CancelToken::default(),
                state: Mutex::default(),
                work: Condvar::new(),
                done: Condvar::new(),
                last: AtomicU64::new(0),
                reached: AtomicU64::new(0),
                failure: OnceLock::new(),
            }),
        }
    }

    /// Submits work; returns its number.
    pub(super) fn submit(&self, operations: Arc<Operations>, timed: bool) -> Result<u64> {
        let shared = &self.shared;
        shared.check_alive()?;
        let is_small = operations.cost().is_some_and(|cost| cost <= MAX_INLINE_TIME);
        let mut state = shared.lock();
        let inline = (is_small || !HAS_THREADS) && !state.busy && state.pending.is_empty();
        if !inline && HAS_THREADS && state.thread.is_none() {
            state.thread = Some(shared.start_worker()?);
        }
        state.last += 1;
        let number = state.last;
        shared.last.store(number, Ordering::Release);
        let submission = Submission { number, operations, timed };
        if inline {
            state.busy = true;
            drop(state);
            let mut state = shared.execute(submission);
            // What a function of the host submitted meanwhile.
            while !HAS_THREADS && let Some(submission) = take_next(&mut state) {
                drop(state);
                state = shared.execute(submission);
            }
        } else {
            state.pending.push_back(submission);
            drop(state);
            shared.work.notify_one();
        }
        Ok(number)
    }

    /// Waits until a submission is done; false after `timeout`.
    pub(super) fn wait(&self, number: u64, timeout: Duration) -> Result<bool> {
        let shared = &self.shared;
        if shared.has_reached(number) {
            return Ok(true);
        }
        shared.check_alive()?;
        if timeout.is_zero() {
            return Ok(false);
        }
        let start = Instant::now();
        if poll(timeout.min(POLL_TIME), || shared.has_reached(number)) {
            return Ok(true);
        }
        shared.wait_blocking(number, timeout.saturating_sub(start.elapsed()))
    }

    /// Wakes `waker` once a submission is done, or the device is lost.
    pub(super) fn notify(&self, number: u64, waker: &Waker) {
        let shared = &self.shared;
        let mut state = shared.lock();
        if !shared.has_reached(number) && shared.failure.get().is_none() {
            state.wakers.entry(number).or_default().push(waker.clone());
            return;
        }
        drop(state);
        waker.wake_by_ref();
    }

    /// Cancels the submissions up to `number`. Returns the first one that was stopped, or the one
    /// after `number` if all had finished; `None` if they do not stop in time.
    pub(super) fn cancel(&self, number: u64) -> Result<Option<u64>> {
        self.shared.stop.at(number).request();
        if !self.wait(number, CANCEL_TIMEOUT)? {
            return Ok(None);
        }
        let stopped = self.shared.lock().first_stopped.take();
        Ok(Some(stopped.unwrap_or(number.saturating_add(1))))
    }

    /// Returns the durations of the launches of a finished submission; `None` if it was not timed,
    /// or they were read already.
    pub(super) fn timings(&self, number: u64) -> Option<Vec<Duration>> {
        let timings = &mut self.shared.lock().timings;
        let index = timings.binary_search_by_key(&number, |(timed, _)| *timed).ok()?;
        Some(timings.remove(index).1)
    }

    /// Frees the durations of a timed submission, done or not.
    pub(super) fn discard_timings(&self, number: u64) {
        let shared = &self.shared;
        let mut state = shared.lock();
        match state.timings.binary_search_by_key(&number, |(timed, _)| *timed) {
            Ok(index) => _ = state.timings.remove(index),
            Err(_) if shared.has_reached(number) => {}
            Err(_) => _ = state.discarded.insert(number),
        }
    }

    /// Returns whether all submissions so far were executed by the submitting thread.
    #[cfg(test)]
    pub(super) fn has_no_worker(&self) -> bool {
        self.shared.lock().thread.is_none()
    }

    /// Returns a check for whether the queue was dropped and its worker has exited.
    #[cfg(test)]
    pub(super) fn exit_check(&self) -> impl Fn() -> bool + use<> {
        let shared = Arc::downgrade(&self.shared);
        move || shared.strong_count() == 0
    }

    /// Stops all execution and marks the device as lost.
    pub(super) fn abandon(&self) {
        self.shared.fail("it was abandoned".to_owned());
    }

    /// Cancels all submissions, and joins the worker.
    pub(super) fn shut_down(&self) {
        let shared = &self.shared;
        shared.stop.at(u64::MAX).request();
        let mut state = shared.lock();
        state.closed = true;
        let thread = state.thread.take();
        drop(state);
        shared.work.notify_all();
        let Some(thread) = thread else { return };
        if thread.thread().id() == thread::current().id() {
            // This is the worker: a waker that it called dropped the last handle of the device. The
            // worker exits after the waker has returned.
            return;
        }
        // 5 s, as the drop of a GPU waits.
        let deadline = Instant::now() + 10 * CANCEL_TIMEOUT;
        while !thread.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_micros(50));
        }
        if thread.is_finished() {
            // An error would be a panic of the thread, which catches those of submissions.
            let _ = thread.join();
        } else {
            // The thread keeps alive everything that it uses, and exits when the kernel ends.
            log::error!("{}: a kernel does not end while the device is dropped", shared.device);
        }
    }

    /// Leaks the queue in a forked child: its threads exist only in the parent process.
    pub(super) fn leak(&self) {
        std::mem::forget(self.shared.clone());
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn has_reached(&self, number: u64) -> bool {
        self.reached.load(Ordering::Acquire) >= number
    }

    fn check_alive(&self) -> Result<()> {
        match self.failure.get() {
            None => Ok(()),
            Some(reason) => {
                let (device, reason) = (self.device.clone(), reason.clone());
                Err(GpuError::DeviceLost(DeviceLostError { function: None, device, reason }))
            }
        }
    }

    /// Stops all execution and marks the device as lost.
    fn fail(&self, reason: String) {
        // An earlier reason is not replaced.
        let _ = self.failure.set(reason);
        self.stop.at(u64::MAX).request();
        let mut state = self.lock();
        let (pending, wakers) = (take(&mut state.pending), take(&mut state.wakers));
        drop(state);
        drop(pending);
        self.done.notify_all();
        wake(wakers);
    }

    fn start_worker(self: &Arc<Self>) -> Result<JoinHandle<()>> {
        let shared = self.clone();
        let builder = Builder::new().name("scry-cpu queue".to_owned());
        builder.spawn(move || shared.run_worker()).map_err(|error| {
            let code = format!("a thread could not be started: {error}");
            GpuError::Driver(DriverError::new(&self.device, "submit", code, "end other threads"))
        })
    }

    /// Executes submissions until the queue is closed.
    fn run_worker(&self) {
        let mut state = self.lock();
        loop {
            if let Some(submission) = take_next(&mut state) {
                drop(state);
                state = self.execute(submission);
            } else if state.closed {
                return;
            } else {
                state = self.wait_for_work(state);
            }
        }
    }

    /// Waits until there may be work: polls, then sleeps.
    fn wait_for_work<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let last = state.last;
        drop(state);
        poll(POLL_TIME, || self.last.load(Ordering::Acquire) != last);
        let state = self.lock();
        let is_ready = !state.busy && !state.pending.is_empty();
        if state.last != last || is_ready || state.closed {
            return state;
        }
        self.work.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Executes a submission; returns the locked state after it.
    fn execute(&self, submission: Submission) -> MutexGuard<'_, State> {
        let Submission { number, operations, timed } = submission;
        let stop = self.stop.at(number);
        let run = || operations.run(&self.machine, &stop, timed);
        let outcome = catch_unwind(AssertUnwindSafe(run));
        // Releases the resources of the submission before waiting threads are woken.
        drop(operations);
        let outcome = outcome.map_err(|panic| {
            self.fail(panic_of_function(&*panic).unwrap_or_else(|| {
                let why = panic_text(&*panic);
                format!("the lockstep machine panicked: {why}; please report it")
            }));
        });
        let mut state = self.lock();
        state.busy = false;
        match outcome {
            // The loss of the device stopped it: it is never done.
            Ok(Err(Cancelled)) if self.failure.get().is_some() => return state,
            Ok(result) => {
                if result.is_err() {
                    state.first_stopped.get_or_insert(number);
                }
                if timed && !state.discarded.remove(&number) {
                    state.timings.push((number, result.unwrap_or_default()));
                }
            }
            Err(()) => return state,
        }
        self.reached.store(number, Ordering::Release);
        if state.waiting > 0 {
            self.done.notify_all();
        }
        if !state.pending.is_empty() {
            self.work.notify_one();
        }
        let wakers = state.take_wakers(number);
        if wakers.is_empty() {
            return state;
        }
        // Wakes without the lock: a waker may submit work.
        drop(state);
        wake(wakers);
        self.lock()
    }

    /// Sleeps until a submission is done; false after `timeout`.
    fn wait_blocking(&self, number: u64, timeout: Duration) -> Result<bool> {
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.lock();
        let worker = state.thread.as_ref().map(|thread| thread.thread().id());
        while !self.has_reached(number) {
            self.check_alive()?;
            if worker == Some(thread::current().id()) {
                // A waker called by the worker waits for work that only the worker can execute.
                return Ok(false);
            }
            let remaining =
                deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            // If the deadline overflowed, the thread sleeps again after any time.
            let remaining = remaining.unwrap_or(Duration::from_secs(1));
            if remaining.is_zero() {
                return Ok(false);
            }
            state.waiting += 1;
            let woken = self.done.wait_timeout(state, remaining);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            state.waiting -= 1;
        }
        Ok(true)
    }
}

impl State {
    /// Removes the wakers of submissions up to a number.
    fn take_wakers(&mut self, number: u64) -> BTreeMap<u64, Vec<Waker>> {
        let later = self.wakers.split_off(&number.saturating_add(1));
        std::mem::replace(&mut self.wakers, later)
    }
}

/// Calls wakers. A panic of one must not end the thread: it is logged, and the others are called.
fn wake(wakers: BTreeMap<u64, Vec<Waker>>) {
    for waker in wakers.into_values().flatten() {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            log::error!("a waker panicked: {}", panic_text(&*panic));
        }
    }
}

/// Polls until a condition holds; false after `timeout`. Other threads may have the core meanwhile.
fn poll(timeout: Duration, condition: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < timeout {
        if condition() {
            return true;
        }
        thread::yield_now();
    }
    false
}

/// Removes the next submission, unless another one is being executed.
fn take_next(state: &mut State) -> Option<Submission> {
    if state.busy {
        return None;
    }
    let submission = state.pending.pop_front()?;
    state.busy = true;
    Some(submission)
}
