//! The timers of timed submissions, kept until their times are read or discarded.

use std::collections::BTreeMap;

/// Timers by the number of their submission.
pub(crate) struct Timers<T> {
    kept: BTreeMap<u64, Kept<T>>,
}

struct Kept<T> {
    timer: T,
    /// Whether nothing will read the times; an unfinished submission still uses the timer.
    is_discarded: bool,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self { kept: BTreeMap::new() }
    }
}

impl<T> Timers<T> {
    /// Adds the timer of a submission.
    pub(crate) fn insert(&mut self, number: u64, timer: T) {
        self.kept.insert(number, Kept { timer, is_discarded: false });
    }

    /// Removes the timer of a finished submission; `None` if it was removed or discarded before.
    pub(crate) fn take(&mut self, number: u64) -> Option<T> {
        let entry = self.kept.get(&number).filter(|kept| !kept.is_discarded);
        entry.is_some().then(|| self.kept.remove(&number)).flatten().map(|kept| kept.timer)
    }

    /// Marks a timer as discarded, if it was not removed. Removes and returns all discarded timers
    /// of submissions up to `reached`, which are done.
    pub(crate) fn discard(&mut self, number: u64, reached: u64) -> Vec<T> {
        if let Some(kept) = self.kept.get_mut(&number) {
            kept.is_discarded = true;
        }
        let finished = self.kept.range(..=reached).filter(|(_, kept)| kept.is_discarded);
        let done: Vec<u64> = finished.map(|(number, _)| *number).collect();
        let removed = done.iter().filter_map(|number| self.kept.remove(number));
        removed.map(|kept| kept.timer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_kept_until_read() {
        let mut timers = Timers::default();
        (1..=1000).for_each(|number| timers.insert(number, number));
        assert_eq!(
            [1, 1000, 500, 1].map(|number| timers.take(number)),
            [Some(1), Some(1000), Some(500), None]
        );
    }

    #[test]
    fn discarded_timers_wait_for_their_submission() {
        let mut timers = Timers::default();
        (1..=4).for_each(|number| timers.insert(number, number));
        assert!(timers.discard(3, 2).is_empty(), "3 is unfinished");
        assert_eq!(timers.take(3), None);
        assert_eq!(timers.discard(1, 2), [1]);
        assert_eq!(timers.take(2), Some(2));
        assert_eq!(timers.discard(2, 3), [3], "2 was read");
        assert_eq!(timers.take(4), Some(4));
        assert!(timers.kept.is_empty());
    }
}
