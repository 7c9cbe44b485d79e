//! The wakers of a device's pending futures, in the order of the submissions that they wait for.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crate::core::clock::Instant;
use crate::core::handles::SubmissionIndex;

/// How long the watcher polls for a submission without pauses, if only one future is pending.
const SPIN_TIME: Duration = Duration::from_micros(80);

/// Minimum pause between two polls of the watcher. A pause is 1/16 of the time for which the
/// watcher has polled for the submission, which bounds the relative delay of a wake-up.
const MIN_PAUSE: Duration = Duration::from_micros(20);

/// Maximum pause between two polls of the watcher.
const MAX_PAUSE: Duration = Duration::from_millis(16);

/// Identifies a pending future; unique within a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FutureId(u64);

/// The pending futures of a device.
#[derive(Default)]
pub(crate) struct Wakers {
    state: Mutex<State>,
    /// Wakes the watcher after changes of the state.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// One waker per pending future; an entry is removed when it is woken.
    entries: BTreeMap<(SubmissionIndex, FutureId), Entry>,
    /// The deadline by the device's time limit, for each future that has one.
    deadlines: BTreeSet<(Instant, SubmissionIndex, FutureId)>,
    /// Submissions for which a notification was requested from the driver.
    requested: BTreeSet<SubmissionIndex>,
    next_id: u64,
    /// Whether the watcher polls, because the driver does not support notifications.
    is_polled: bool,
    /// The submission that the watcher polls, and the time when it started.
    polled: Option<(SubmissionIndex, Instant)>,
    /// The time limit because of which the device was abandoned.
    abandoned_after: Option<Duration>,
    has_ended: bool,
}

struct Entry {
    waker: Waker,
    deadline: Option<Instant>,
}

/// The next task of the watcher.
pub(crate) enum Duty {
    /// Poll the driver for a submission; on a software device, wait in the driver for at most this
    /// long instead.
    Poll(SubmissionIndex, Duration),
    /// A future that waits for this submission exceeded the time limit.
    Expired(SubmissionIndex),
}

impl Wakers {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an id for a future.
    pub(crate) fn new_id(&self) -> FutureId {
        let mut state = self.lock();
        state.next_id += 1;
        FutureId(state.next_id)
    }

    /// Stores the waker of a future until it is woken; replaces the future's previous one. Returns
    /// whether the caller must request a notification of this submission from the driver.
    pub(crate) fn insert(
        &self,
        submission: SubmissionIndex,
        id: FutureId,
        waker: &Waker,
        deadline: Option<Instant>,
    ) -> bool {
        let mut state = self.lock();
        let before = (state.first_submission(), state.deadlines.first().map(|(at, ..)| *at));
        let replaced = match state.entries.get_mut(&(submission, id)) {
            Some(entry) if entry.deadline == deadline => match entry.waker.will_wake(waker) {
                true => return false,
                false => Some(std::mem::replace(&mut entry.waker, waker.clone())),
            },
            Some(_) => state.remove(submission, id),
            None => None,
        };
        let entry = Entry { waker: waker.clone(), deadline };
        state.entries.entry((submission, id)).or_insert(entry);
        state.deadlines.extend(deadline.map(|at| (at, submission, id)));
        let after = (state.first_submission(), state.deadlines.first().map(|(at, ..)| *at));
        let is_first_request = !state.is_polled && state.requested.insert(submission);
        drop(state);
        if before != after {
            self.changed.notify_one();
        }
        // Dropped outside the lock: the drop of a waker may drop a task.
        drop(replaced);
        is_first_request
    }

    /// Removes the waker of a future that was dropped or has completed.
    pub(crate) fn remove(&self, submission: SubmissionIndex, id: FutureId) {
        let removed = self.lock().remove(submission, id);
        drop(removed);
    }

    /// Makes the watcher poll the driver, which does not support notifications.
    pub(crate) fn request_polling(&self) {
        let mut state = self.lock();
        state.is_polled = true;
        state.requested.clear();
        drop(state);
        self.changed.notify_one();
    }

    /// Returns whether the watcher has work.
    pub(crate) fn need_watcher(&self) -> bool {
        let state = self.lock();
        state.is_polled || !state.deadlines.is_empty()
    }

    /// Returns whether no future of the device is pending.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().entries.is_empty()
    }

    /// Wakes the futures that wait for submissions up to `submission`.
    pub(crate) fn wake_up_to(&self, submission: SubmissionIndex) {
        let mut state = self.lock();
        let later = state
            .entries
            .split_off(&(SubmissionIndex(submission.0.saturating_add(1)), FutureId(0)));
        let reached = std::mem::replace(&mut state.entries, later);
        state.remove_deadlines(&reached);
        state.requested =
            state.requested.split_off(&SubmissionIndex(submission.0.saturating_add(1)));
        drop(state);
        wake(reached);
    }

    /// Wakes every pending future, because the device is lost, waits are interrupted, or the time
    /// limit has changed.
    pub(crate) fn wake_all(&self) {
        let mut state = self.lock();
        let all = std::mem::take(&mut state.entries);
        state.deadlines.clear();
        drop(state);
        wake(all);
    }

    /// Records that the device is abandoned because of the time limit.
    pub(crate) fn set_abandoned_after(&self, limit: Duration) {
        self.lock().abandoned_after.get_or_insert(limit);
    }

    /// Returns the time limit because of which the device was abandoned, if it was.
    pub(crate) fn abandoned_after(&self) -> Option<Duration> {
        self.lock().abandoned_after
    }

    /// Ends the watcher.
    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_one();
    }

    /// Waits until the watcher has something to do; `None` once it must end. With `may_spin`, the
    /// driver is polled without pauses at first, and this function makes the later pauses. Without,
    /// the caller waits in the driver instead.
    pub(crate) fn next_duty(&self, may_spin: bool) -> Option<Duty> {
        let mut state = self.lock();
        let mut has_paused = false;
        loop {
            if state.has_ended {
                return None;
            }
            let now = Instant::now();
            let deadline = state.deadlines.first().copied();
            if let Some((_, submission, _)) = deadline.filter(|(at, ..)| *at <= now) {
                return Some(Duty::Expired(submission));
            }
            let remaining = deadline.map(|(at, ..)| at - now);
            let pause = match state.first_submission().filter(|_| state.is_polled) {
                None => remaining,
                Some(submission) => {
                    let is_new = state.polled.is_none_or(|(polled, _)| polled != submission);
                    if is_new {
                        state.polled = Some((submission, now));
                    }
                    let polling_time = state.polled.map_or(Duration::ZERO, |(_, at)| now - at);
                    let pause = (polling_time / 16).clamp(MIN_PAUSE, MAX_PAUSE);
                    let pause = remaining.map_or(pause, |remaining| pause.min(remaining));
                    let spins = may_spin && polling_time < SPIN_TIME && state.entries.len() == 1;
                    if is_new || has_paused || spins || !may_spin {
                        return Some(Duty::Poll(submission, pause));
                    }
                    Some(pause)
                }
            };
            has_paused = pause.is_some();
            state = match pause {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(pause) => {
                    let woken = self.changed.wait_timeout(state, pause);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl State {
    fn first_submission(&self) -> Option<SubmissionIndex> {
        self.entries.first_key_value().map(|((submission, _), _)| *submission)
    }

    fn remove(&mut self, submission: SubmissionIndex, id: FutureId) -> Option<Waker> {
        let entry = self.entries.remove(&(submission, id))?;
        if let Some(at) = entry.deadline {
            self.deadlines.remove(&(at, submission, id));
        }
        Some(entry.waker)
    }

    /// Removes the deadlines of removed entries.
    fn remove_deadlines(&mut self, removed: &BTreeMap<(SubmissionIndex, FutureId), Entry>) {
        for ((submission, id), entry) in removed {
            if let Some(at) = entry.deadline {
                self.deadlines.remove(&(at, *submission, *id));
            }
        }
    }
}

/// Wakes futures, outside any lock: a waker may run or drop a task. If one panics, the others are
/// still woken.
fn wake(entries: BTreeMap<(SubmissionIndex, FutureId), Entry>) {
    for (_, entry) in entries {
        if catch_unwind(AssertUnwindSafe(|| entry.waker.wake())).is_err() {
            log::error!("the waker of a task panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counting_waker() -> (Arc<Count>, Waker) {
        let count = Arc::new(Count::default());
        (count.clone(), Waker::from(count))
    }

    fn wake_count(count: &Arc<Count>) -> usize {
        count.0.load(Ordering::Relaxed)
    }

    #[test]
    fn reached_submissions_wake_their_futures_once() {
        let wakers = Wakers::default();
        let (early, early_waker) = counting_waker();
        let (late, late_waker) = counting_waker();
        assert!(wakers.insert(SubmissionIndex(3), wakers.new_id(), &early_waker, None));
        assert!(
            !wakers.insert(SubmissionIndex(3), wakers.new_id(), &early_waker, None),
            "requested already"
        );
        assert!(wakers.insert(SubmissionIndex(4), wakers.new_id(), &late_waker, None));
        wakers.wake_up_to(SubmissionIndex(2));
        assert_eq!((wake_count(&early), wake_count(&late)), (0, 0));
        wakers.wake_up_to(SubmissionIndex(3));
        wakers.wake_up_to(SubmissionIndex(3));
        assert_eq!((wake_count(&early), wake_count(&late)), (2, 0));
        wakers.wake_up_to(SubmissionIndex(u64::MAX));
        assert!(wake_count(&late) == 1 && wakers.is_empty());
    }

    #[test]
    fn latest_waker_is_woken() {
        let wakers = Wakers::default();
        let (first, first_waker) = counting_waker();
        let (second, second_waker) = counting_waker();
        let id = wakers.new_id();
        wakers.insert(SubmissionIndex(1), id, &first_waker, None);
        wakers.insert(SubmissionIndex(1), id, &first_waker.clone(), None);
        assert_eq!(Arc::strong_count(&first), 3, "a waker that would wake the same is not stored");
        wakers.insert(SubmissionIndex(1), id, &second_waker, None);
        assert_eq!(Arc::strong_count(&first), 2, "replaced");
        wakers.wake_all();
        assert_eq!((wake_count(&first), wake_count(&second)), (0, 1));
    }

    #[test]
    fn removed_futures_leave_no_entries() {
        let wakers = Wakers::default();
        let (count, waker) = counting_waker();
        let id = wakers.new_id();
        wakers.insert(SubmissionIndex(1), id, &waker, Some(Instant::now()));
        assert!(wakers.need_watcher());
        wakers.remove(SubmissionIndex(1), id);
        assert!(wakers.is_empty() && !wakers.need_watcher());
        wakers.wake_all();
        assert_eq!((wake_count(&count), Arc::strong_count(&count)), (0, 2));
    }

    #[test]
    fn watcher_polls_the_smallest_submission() {
        let wakers = Wakers::default();
        let (_count, waker) = counting_waker();
        wakers.insert(SubmissionIndex(9), wakers.new_id(), &waker, None);
        wakers.request_polling();
        assert!(matches!(wakers.next_duty(false), Some(Duty::Poll(SubmissionIndex(9), _))));
        wakers.insert(SubmissionIndex(5), wakers.new_id(), &waker, None);
        assert!(matches!(wakers.next_duty(true), Some(Duty::Poll(SubmissionIndex(5), _))));
        wakers.insert(SubmissionIndex(7), wakers.new_id(), &waker, Some(Instant::now()));
        assert!(matches!(wakers.next_duty(true), Some(Duty::Expired(SubmissionIndex(7)))));
        wakers.end();
        assert!(wakers.next_duty(true).is_none());
    }
}
