//! Cancelled submissions, and the waits that report them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::api::error::Result;
use crate::core::driver::{Cancelled, Driver, SubmissionIndex};

/// Submissions that were cancelled together.
struct Cancellation {
    first: SubmissionIndex,
    last: SubmissionIndex,
    /// The exceeded time limit.
    limit: Duration,
}

/// Which cancelled submissions a wait reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancellationScope {
    /// Those cancelled during the wait.
    DuringWait,
    /// Also the awaited submission, no matter when it was cancelled.
    Any,
}

/// All cancelled submissions of a device.
#[derive(Default)]
pub(crate) struct Cancellations {
    list: Mutex<Vec<Cancellation>>,
    /// Number of cancellations started; if zero, readers skip the lock.
    started: AtomicUsize,
}

impl Cancellations {
    fn lock(&self) -> MutexGuard<'_, Vec<Cancellation>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of cancellations so far, for `limit_for`.
    pub(crate) fn count(&self) -> usize {
        if self.started.load(Ordering::Acquire) == 0 { 0 } else { self.lock().len() }
    }

    /// Cancels the submissions up to `submission`; returns false if the driver cannot. Records
    /// nothing if they have finished meanwhile, or if another thread has cancelled them.
    pub(crate) fn cancel(
        &self,
        driver: &dyn Driver,
        submission: SubmissionIndex,
        limit: Duration,
    ) -> Result<bool> {
        let mut list = self.lock();
        // Before any thread can observe the cancellation.
        self.started.fetch_add(1, Ordering::Release);
        let Some(Cancelled { first, last }) = driver.cancel(submission)? else {
            return Ok(false);
        };
        if first <= last {
            list.push(Cancellation { first, last, limit });
        }
        Ok(true)
    }

    /// Returns whether a finished submission was cancelled.
    pub(crate) fn contains(&self, submission: SubmissionIndex) -> bool {
        let was_cancelled = |it: &Cancellation| it.first <= submission && submission <= it.last;
        self.started.load(Ordering::Acquire) > 0 && self.lock().iter().any(was_cancelled)
    }

    /// Returns the exceeded time limit if a wait for `submission` that began after `count_before`
    /// cancellations must fail. All waits in progress report a cancellation up to their submission,
    /// since the work that they wait for may depend on the cancelled one.
    pub(crate) fn limit_for(
        &self,
        submission: SubmissionIndex,
        count_before: usize,
        scope: CancellationScope,
    ) -> Option<Duration> {
        if self.started.load(Ordering::Acquire) == 0 {
            return None;
        }
        let list = self.lock();
        let must_fail = |(index, it): &(usize, &Cancellation)| {
            let is_new = *index >= count_before;
            it.first <= submission
                && (is_new || scope == CancellationScope::Any && submission <= it.last)
        };
        list.iter().enumerate().find(must_fail).map(|(_, it)| it.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_cancelled_work_fail() {
        let limit = Duration::from_secs(1);
        let cancellations = Cancellations::default();
        let fails = |submission, count_before, scope| {
            cancellations.limit_for(SubmissionIndex(submission), count_before, scope).is_some()
        };
        assert!(!fails(4, 0, CancellationScope::Any));
        cancellations.started.fetch_add(1, Ordering::Relaxed);
        cancellations.lock().push(Cancellation {
            first: SubmissionIndex(3),
            last: SubmissionIndex(5),
            limit,
        });
        assert_eq!(cancellations.count(), 1);
        assert_eq!(
            [2, 3, 5, 6].map(|at| cancellations.contains(SubmissionIndex(at))),
            [false, true, true, false]
        );
        // Waits in progress, for the cancelled submissions or later ones.
        assert_eq!(
            [2, 3, 5, 6, 9].map(|at| fails(at, 0, CancellationScope::Any)),
            [false, true, true, true, true]
        );
        assert_eq!(
            [2, 3, 5, 6, 9].map(|at| fails(at, 0, CancellationScope::DuringWait)),
            [false, true, true, true, true]
        );
        // Waits that began later.
        assert_eq!(
            [2, 3, 5, 6, 9].map(|at| fails(at, 1, CancellationScope::Any)),
            [false, true, true, false, false]
        );
        assert_eq!(
            [2, 3, 5, 6, 9].map(|at| fails(at, 1, CancellationScope::DuringWait)),
            [false; 5]
        );
    }
}
