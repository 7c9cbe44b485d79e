//! The order of submissions: who executes them, how far they have come, and how they are ended.
//!
//! A thread executes submissions one after the other. If it has nothing to do and a submission is
//! small, the thread that submits executes it itself: to wake another one would take longer.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use scry_cpu::{Machine, Stop};

use super::encode::Operations;
use super::{lock, panic_text};
use crate::api::error::{DeviceLostError, DriverError, GpuError, Result};
use crate::api::info::DeviceInfo;

/// Longest work that the thread that submits does itself.
const SMALL: Duration = Duration::from_micros(30);

/// How long to poll before sleeping: about as long as it takes to be woken.
const SPIN: Duration = Duration::from_micros(10);

/// How long work that is to end may take to notice.
const PATIENCE: Duration = Duration::from_millis(500);

/// The submissions of a device.
pub(super) struct Queue {
    shared: Arc<Shared>,
}

struct Shared {
    device: String,
    machine: Machine,
    /// Requested for the submissions that are to end, by number.
    stop: Stop,
    state: Mutex<State>,
    /// There is something to do for the thread.
    work: Condvar,
    /// A submission is done.
    done: Condvar,
    /// All submissions up to this one are done.
    reached: AtomicU64,
    /// Why nothing is executed any more.
    failure: OnceLock<String>,
}

#[derive(Default)]
struct State {
    pending: VecDeque<Submission>,
    /// Somebody is executing a submission.
    busy: bool,
    /// The latest submission.
    last: u64,
    /// The first submission that was stopped since this was last asked for.
    first_stopped: Option<u64>,
    /// Threads that sleep until a submission is done.
    waiting: usize,
    timings: Vec<(u64, Vec<Duration>)>,
    thread: Option<JoinHandle<()>>,
    ended: bool,
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
                stop: Stop::default(),
                state: Mutex::default(),
                work: Condvar::new(),
                done: Condvar::new(),
                reached: AtomicU64::new(0),
                failure: OnceLock::new(),
            }),
        }
    }

    /// Submits work; gives its number.
    pub(super) fn submit(&self, operations: Arc<Operations>, timed: bool) -> Result<u64> {
        let shared = &self.shared;
        shared.check_alive()?;
        let is_small = operations.cost().is_some_and(|cost| cost <= SMALL);
        let mut state = shared.lock();
        let at_once = is_small && !state.busy && state.pending.is_empty();
        if !at_once && state.thread.is_none() {
            state.thread = Some(shared.start()?);
        }
        state.last += 1;
        let number = state.last;
        let submission = Submission { number, operations, timed };
        if at_once {
            state.busy = true;
            drop(state);
            drop(shared.execute(submission));
        } else {
            state.pending.push_back(submission);
            drop(state);
            shared.work.notify_one();
        }
        Ok(number)
    }

    /// Waits until a submission is done; false if that took longer than `timeout`.
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
        while start.elapsed() < timeout.min(SPIN) {
            if shared.has_reached(number) {
                return Ok(true);
            }
            std::hint::spin_loop();
        }
        shared.sleep(number, timeout.saturating_sub(start.elapsed()))
    }

    /// Ends the submissions up to a number; gives the first that ended early, or the number after
    /// them. None if they do not notice.
    pub(super) fn cancel(&self, number: u64) -> Result<Option<u64>> {
        self.shared.stop.at(number).request();
        if !self.wait(number, PATIENCE)? {
            return Ok(None);
        }
        let stopped = self.shared.lock().first_stopped.take();
        Ok(Some(stopped.unwrap_or(number + 1)))
    }

    /// The times of the launches of a submission that is done; once.
    pub(super) fn timings(&self, number: u64) -> Vec<Duration> {
        let timings = &mut self.shared.lock().timings;
        match timings.binary_search_by_key(&number, |(of, _)| *of) {
            Ok(at) => timings.remove(at).1,
            Err(_) => Vec::new(),
        }
    }

    /// Whether everything so far was done by those who submitted it.
    #[cfg(test)]
    pub(super) fn is_without_thread(&self) -> bool {
        self.shared.lock().thread.is_none()
    }

    /// What becomes of this when all threads have ended.
    #[cfg(test)]
    pub(super) fn watch(&self) -> impl Fn() -> bool + use<> {
        let shared = Arc::downgrade(&self.shared);
        move || shared.strong_count() == 0
    }

    /// Executes nothing any more.
    pub(super) fn give_up(&self) {
        self.shared.fail("it was given up".to_owned());
    }

    /// Ends everything, and the threads with it.
    pub(super) fn end(&self) {
        let shared = &self.shared;
        shared.stop.at(u64::MAX).request();
        let mut state = shared.lock();
        state.ended = true;
        let thread = state.thread.take();
        drop(state);
        shared.work.notify_all();
        let Some(thread) = thread else { return };
        let deadline = Instant::now() + 10 * PATIENCE;
        while !thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_micros(50));
        }
        if thread.is_finished() {
            // Its panics are caught, and there are no others.
            let _ = thread.join();
        } else {
            // It holds all that it needs, and ends when the kernel does.
            log::error!("{}: a kernel does not end as the device is dropped", shared.device);
        }
    }

    /// Forgets everything, with the threads: they are another process's.
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

    /// Stops everything, for good.
    fn fail(&self, reason: String) {
        // The first reason is the one that counts.
        let _ = self.failure.set(reason);
        self.stop.at(u64::MAX).request();
        let pending = std::mem::take(&mut self.lock().pending);
        drop(pending);
        self.done.notify_all();
    }

    fn start(self: &Arc<Self>) -> Result<JoinHandle<()>> {
        let shared = self.clone();
        let builder = Builder::new().name("scry-cpu queue".to_owned());
        builder.spawn(move || shared.serve()).map_err(|error| {
            let code = format!("no thread could be started: {error}");
            GpuError::Driver(DriverError::new(&self.device, "submit", code, "end other threads"))
        })
    }

    /// Executes what is submitted, until the end.
    fn serve(&self) {
        let mut state = self.lock();
        loop {
            if let Some(submission) = next(&mut state) {
                drop(state);
                state = self.execute(submission);
            } else if state.ended {
                return;
            } else {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Executes a submission, whose turn it is.
    fn execute(&self, submission: Submission) -> MutexGuard<'_, State> {
        let Submission { number, operations, timed } = submission;
        let stop = self.stop.at(number);
        let run = || operations.run(&self.machine, &stop, timed);
        let outcome = catch_unwind(AssertUnwindSafe(run));
        // What it held is let go before anybody is told that it is done.
        drop(operations);
        let outcome = outcome.map_err(|panic| {
            let why = panic_text(&*panic);
            self.fail(format!("the machine that runs kernels failed: {why}; please report it"));
        });
        let mut state = self.lock();
        state.busy = false;
        match outcome {
            Ok(Ok(times)) if timed => state.timings.push((number, times)),
            Ok(Err(_)) => drop(state.first_stopped.get_or_insert(number)),
            Ok(Ok(_)) => {}
            Err(()) => return state,
        }
        self.reached.store(number, Ordering::Release);
        if state.waiting > 0 {
            self.done.notify_all();
        }
        if !state.pending.is_empty() {
            self.work.notify_one();
        }
        state
    }

    /// Sleeps until a submission is done; false if that took longer than `timeout`.
    fn sleep(&self, number: u64, timeout: Duration) -> Result<bool> {
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.lock();
        while !self.has_reached(number) {
            self.check_alive()?;
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let left = left.unwrap_or(Duration::from_secs(1));
            if left.is_zero() {
                return Ok(false);
            }
            state.waiting += 1;
            let woken = self.done.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            state.waiting -= 1;
        }
        Ok(true)
    }
}

/// The submission whose turn it is, if nobody is at another one.
fn next(state: &mut State) -> Option<Submission> {
    if state.busy {
        return None;
    }
    let submission = state.pending.pop_front()?;
    state.busy = true;
    Some(submission)
}
