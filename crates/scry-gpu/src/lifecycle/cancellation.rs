//! Submissions that were ended early, and who has to be told.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::api::error::Result;
use crate::core::driver::{Driver, Point};

/// Submissions that were ended together.
struct Cut {
    first: Point,
    last: Point,
    /// The time limit that was the reason.
    limit: Duration,
}

/// Which submissions that were ended a wait is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// Those that are ended while it waits.
    New,
    /// The submission that it waits for as well, whenever that was ended.
    All,
}

/// All submissions of a device that were ended early.
#[derive(Default)]
pub(crate) struct Cuts {
    list: Mutex<Vec<Cut>>,
    /// Cuts that were begun, so that those who see no more than they know need not lock.
    begun: AtomicUsize,
}

impl Cuts {
    fn lock(&self) -> MutexGuard<'_, Vec<Cut>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there were, for [`Cuts::concerning`].
    pub(crate) fn count(&self) -> usize {
        if self.begun.load(Ordering::Acquire) == 0 { 0 } else { self.lock().len() }
    }

    /// Ends the submissions up to `point`; false if the driver cannot. They may be done by
    /// themselves, or ended by another thread, by the time that this comes to them.
    pub(crate) fn cut(&self, driver: &dyn Driver, point: Point, limit: Duration) -> Result<bool> {
        let mut list = self.lock();
        // Before anybody could notice the cut.
        self.begun.fetch_add(1, Ordering::Release);
        let Some(first) = driver.cancel(point)? else {
            return Ok(false);
        };
        if first <= point {
            list.push(Cut { first, last: point, limit });
        }
        Ok(true)
    }

    /// The time limit for which a wait for `point` that began after `known` cuts fails, if it does.
    /// All waits in progress are told of a cut up to their point, since what they wait for may have
    /// needed it.
    pub(crate) fn concerning(
        &self,
        point: Point,
        known: usize,
        notice: Notice,
    ) -> Option<Duration> {
        if self.begun.load(Ordering::Acquire) == 0 {
            return None;
        }
        let list = self.lock();
        let concerns = |(index, cut): &(usize, &Cut)| {
            let is_new = *index >= known;
            cut.first <= point && (is_new || notice == Notice::All && point <= cut.last)
        };
        list.iter().enumerate().find(concerns).map(|(_, cut)| cut.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_are_told_who_wait_for_what_was_ended_or_for_what_follows() {
        let limit = Duration::from_secs(1);
        let cuts = Cuts::default();
        let told = |point, known, notice| cuts.concerning(Point(point), known, notice).is_some();
        assert!(!told(4, 0, Notice::All));
        cuts.begun.fetch_add(1, Ordering::Relaxed);
        cuts.lock().push(Cut { first: Point(3), last: Point(5), limit });
        assert_eq!(cuts.count(), 1);
        // Those who waited when it happened, for the submissions themselves or for later ones.
        assert_eq!(
            [2, 3, 5, 6, 9].map(|at| told(at, 0, Notice::All)),
            [false, true, true, true, true]
        );
        assert_eq!(
            [2, 3, 5, 6, 9].map(|at| told(at, 0, Notice::New)),
            [false, true, true, true, true]
        );
        // Those who came later.
        assert_eq!(
            [2, 3, 5, 6, 9].map(|at| told(at, 1, Notice::All)),
            [false, true, true, false, false]
        );
        assert_eq!([2, 3, 5, 6, 9].map(|at| told(at, 1, Notice::New)), [false; 5]);
    }
}
