//! A thread pool: idle threads poll for a short time, then sleep.

use std::any::Any;
use std::hint;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long a thread polls before it sleeps. The launches of a submission follow each other within
/// microseconds; waking a thread takes longer, on a virtual machine up to 50 us.
const SPIN: Duration = Duration::from_micros(50);

/// The function that each participating thread calls once.
type Work<'a> = &'a (dyn Fn() + Sync + 'a);

/// The payload of a panic.
type Panic = Box<dyn Any + Send>;

/// A pool of helper threads.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Signals an offer, or the end of the pool.
    wake: Condvar,
    /// Signals that the last helper is done.
    done: Condvar,
    /// Incremented by each offer, and by the end of the pool; idle threads poll it.
    offers: AtomicU64,
    /// Number of helpers that execute the work; the caller polls it. Changed under the lock.
    helping: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// The work that is offered, or still being executed.
    work: Option<Work<'static>>,
    /// Number of threads that may still accept the offer.
    wanted: usize,
    /// Number of threads that sleep until there is work.
    sleeping: usize,
    /// Whether the caller sleeps until the helpers are done.
    caller_sleeps: bool,
    /// The first panic of a helper.
    panic: Option<Panic>,
    ended: bool,
}

/// Polls a condition for up to [`SPIN`]; returns whether it became true.
fn poll(condition: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..64 {
            if condition() {
                return true;
            }
            hint::spin_loop();
        }
        if start.elapsed() > SPIN {
            return false;
        }
        // Yields the core to a thread that has work.
        thread::yield_now();
    }
}

impl Shared {
    // No code panics while holding the lock, so poisoning can be ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offers work to up to `helpers` threads. Returns false if the pool has work of another
    /// caller.
    fn offer(&self, work: Work<'static>, helpers: usize) -> bool {
        let mut state = self.lock();
        if state.work.is_some() {
            return false;
        }
        state.work = Some(work);
        state.wanted = helpers;
        self.offers.fetch_add(1, Ordering::Release);
        let asleep = state.sleeping;
        drop(state);
        match (asleep, helpers) {
            (0, _) => {}
            (_, 1) => self.wake.notify_one(),
            _ => self.wake.notify_all(),
        }
        true
    }

    /// Withdraws the offer, and waits for the threads that accepted it. Returns the first panic.
    fn settle(&self) -> Option<Panic> {
        let is_done = || self.helping.load(Ordering::Acquire) == 0;
        self.lock().wanted = 0;
        poll(is_done);
        let mut state = self.lock();
        while !is_done() {
            state.caller_sleeps = true;
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.caller_sleeps = false;
        }
        state.work = None;
        state.panic.take()
    }

    /// Executes offers until the pool ends.
    fn help(&self) {
        let mut state = self.lock();
        while !state.ended {
            let Some(work) = state.work.filter(|_| state.wanted > 0) else {
                state = self.idle(state);
                continue;
            };
            state.wanted -= 1;
            self.helping.fetch_add(1, Ordering::Relaxed);
            drop(state);
            let outcome = catch_unwind(AssertUnwindSafe(work));
            state = self.lock();
            if let Err(panic) = outcome {
                state.panic.get_or_insert(panic);
            }
            if self.helping.fetch_sub(1, Ordering::Release) == 1 && state.caller_sleeps {
                self.done.notify_all();
            }
        }
    }

    /// Waits for the next offer or the end of the pool: polls first, then sleeps.
    fn idle<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let offers_before = self.offers.load(Ordering::Relaxed);
        let is_new = || self.offers.load(Ordering::Acquire) != offers_before;
        drop(state);
        poll(is_new);
        let mut state = self.lock();
        if !is_new() {
            state.sleeping += 1;
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.sleeping -= 1;
        }
        state
    }

    /// Ends the threads.
    fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        // Under the lock: between its check of `offers` and its sleep, a thread holds it too.
        self.offers.fetch_add(1, Ordering::Release);
        drop(state);
        self.wake.notify_all();
    }
}

impl Pool {
    /// Starts up to `threads` threads: as many as the system allows.
    pub(crate) fn new(threads: usize) -> Self {
        let shared = Arc::<Shared>::default();
        let start = |number| {
            let shared = shared.clone();
            let builder = Builder::new().name(format!("scry-cpu {number}"));
            builder.spawn(move || shared.help()).ok()
        };
        let threads = (1..=threads).map_while(start).collect();
        Self { shared, threads }
    }

    /// Number of threads.
    pub(crate) fn len(&self) -> usize {
        self.threads.len()
    }

    /// Calls `help` on up to `helpers` threads while the caller executes `work`. Returns when all
    /// are done. A thread does not call `help` if it wakes up only after the caller is done. No
    /// thread calls it if the pool works for another caller.
    ///
    /// # Panics
    /// If `help` or `work` panics, after all threads are done.
    pub(crate) fn with_help<R>(
        &self,
        helpers: usize,
        help: Work<'_>,
        work: impl FnOnce() -> R,
    ) -> R {
        let helpers = helpers.min(self.len());
        // SAFETY: the pool stores the work only if `offer` returns true, until `settle` returns.
        // That is called below before the lifetime ends, even after a panic.
        let static_help = unsafe { std::mem::transmute::<Work<'_>, Work<'static>>(help) };
        if helpers == 0 || !self.shared.offer(static_help, helpers) {
            return work();
        }
        let outcome = catch_unwind(AssertUnwindSafe(work));
        let panic = self.shared.settle();
        match (outcome, panic) {
            (Ok(result), None) => result,
            (Err(panic), _) | (Ok(_), Some(panic)) => resume_unwind(panic),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.end();
        for thread in self.threads.drain(..) {
            // Panics of the work are caught, and there are no others.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn all_requested_helpers_run() {
        let pool = Pool::new(3);
        for _ in 0..50 {
            // All four threads must arrive.
            let barrier = Barrier::new(4);
            let wait = || {
                barrier.wait();
            };
            pool.with_help(3, &wait, wait);
        }
    }

    #[test]
    fn sleeping_helpers_wake_up() {
        let pool = Pool::new(2);
        for _ in 0..5 {
            let asleep = || pool.shared.lock().sleeping == 2;
            while !asleep() {
                thread::sleep(SPIN);
            }
            let barrier = Barrier::new(3);
            let help = || {
                barrier.wait();
            };
            pool.with_help(2, &help, help);
        }
    }

    #[test]
    fn caller_waits_for_slow_helpers() {
        let pool = Pool::new(1);
        let (barrier, ended) = (Barrier::new(2), AtomicUsize::new(0));
        let help = || {
            barrier.wait();
            while !pool.shared.lock().caller_sleeps {
                thread::yield_now();
            }
            ended.fetch_add(1, Relaxed);
        };
        pool.with_help(1, &help, || {
            barrier.wait();
        });
        assert_eq!(ended.into_inner(), 1);
    }

    #[test]
    fn end_is_signalled_under_the_lock() {
        for _ in 0..500 {
            let shared = Shared::default();
            // Several threads: one that sleeps for the lock makes unlocking it slow.
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        loop {
                            let state = shared.lock();
                            let signals = shared.offers.load(Relaxed);
                            if state.ended {
                                // A helper that sees no signal would sleep forever.
                                break assert_eq!(signals, 1);
                            }
                        }
                    });
                }
                thread::sleep(SPIN);
                shared.end();
            });
        }
    }

    #[test]
    fn only_requested_helpers_run() {
        let pool = Pool::new(3);
        for _ in 0..200 {
            let helpers = AtomicUsize::new(0);
            let help = || {
                helpers.fetch_add(1, Relaxed);
            };
            pool.with_help(2, &help, || ());
            assert!(helpers.load(Relaxed) <= 2);
            pool.with_help(0, &help, || helpers.store(9, Relaxed));
            assert_eq!(helpers.load(Relaxed), 9);
        }
    }

    #[test]
    fn concurrent_and_nested_callers_finish() {
        let pool = Pool::new(2);
        let sum = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        pool.with_help(2, &|| (), || {
                            let inner = pool.with_help(1, &|| (), || 1);
                            sum.fetch_add(inner, Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(sum.load(Relaxed), 400);
    }

    #[test]
    fn pool_propagates_panics_and_survives() {
        let pool = Pool::new(2);
        for round in 0..10 {
            let barrier = Barrier::new(3);
            let help = || {
                barrier.wait();
                panic!("of a helper");
            };
            let caught = catch_unwind(AssertUnwindSafe(|| {
                pool.with_help(2, &help, || {
                    barrier.wait();
                });
            }));
            let panic = caught.unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"of a helper"), "{round}");
            let caught = catch_unwind(AssertUnwindSafe(|| {
                pool.with_help(2, &|| (), || panic!("of the caller"));
            }));
            assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"of the caller"));
        }
    }

    #[test]
    fn miri_helpers_borrow_from_caller() {
        let pool = Pool::new(2);
        for round in 0..3 {
            let barrier = Barrier::new(3);
            let sum = AtomicUsize::new(round);
            let help = || {
                sum.fetch_add(1, Relaxed);
                barrier.wait();
            };
            pool.with_help(2, &help, help);
            assert_eq!(sum.into_inner(), round + 3);
        }
    }

    #[test]
    fn pool_without_threads_runs_work() {
        assert_eq!(Pool::new(0).with_help(8, &|| (), || 5), 5);
    }
}
