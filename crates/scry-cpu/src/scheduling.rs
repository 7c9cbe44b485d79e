//! Chunked dynamic scheduling of workgroups: threads claim ranges from an atomic counter.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Target nanoseconds of a chunk: long compared with the claim itself and the setup of execution,
/// short compared with the wait for the last thread.
const CLAIM: u64 = 100_000;

/// Durations below and above which the size of the next chunk changes.
const SHORT: Duration = Duration::from_nanos(CLAIM / 2);
const LONG: Duration = Duration::from_nanos(CLAIM * 2);

/// Minimum number of chunks per thread, if there are enough workgroups: then all threads finish at
/// about the same time.
const LEAST_CLAIMS: u64 = 8;

/// The unclaimed workgroups of a launch.
pub(crate) struct Claims {
    next: AtomicU64,
    total: u64,
    /// The chunk granularity in workgroups.
    unit: u64,
    /// Maximum workgroups of a chunk.
    most: u64,
}

impl Claims {
    /// Divides `total` workgroups for `threads` threads, in chunks of multiples of `unit`.
    pub(crate) fn new(total: u64, unit: u64, threads: usize) -> Self {
        let share = total / (threads as u64 * LEAST_CLAIMS).max(1);
        Self { next: AtomicU64::new(0), total, unit: unit.max(1), most: share.max(1) }
    }

    /// Returns the number of unclaimed workgroups.
    pub(crate) fn left(&self) -> u64 {
        self.total - self.next.load(Ordering::Relaxed)
    }

    /// Claims up to `count` workgroups; none if there are none left.
    fn claim(&self, count: u64) -> Option<Range<u64>> {
        let count = count.clamp(1, self.most);
        let count = count.checked_next_multiple_of(self.unit).unwrap_or(count);
        let end = |next: u64| Some(next.saturating_add(count).min(self.total));
        let claimed = |next| end(next).filter(|end| *end > next);
        let next = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claimed).ok()?;
        Some(next..end(next)?)
    }
}

/// The adaptive chunk size of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    count: u64,
}

impl Pace {
    /// Returns the initial chunk size, from the estimated nanoseconds per workgroup if known.
    pub(crate) fn new(cost: Option<u64>) -> Self {
        Self { count: cost.map_or(1, |cost| (CLAIM / cost.max(1)).max(1)) }
    }

    /// Claims the next chunk.
    pub(crate) fn claim(&self, claims: &Claims) -> Option<Range<u64>> {
        claims.claim(self.count)
    }

    /// Adapts the size to the duration of a chunk that started at `start`.
    pub(crate) fn learn(&mut self, start: Instant) {
        let took = start.elapsed();
        if took < SHORT {
            self.count = self.count.saturating_mul(2);
        } else if took > LONG {
            self.count = (self.count / 2).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all chunks that one thread claims.
    fn claimed(claims: &Claims, mut count: impl FnMut() -> u64) -> Vec<Range<u64>> {
        std::iter::from_fn(|| claims.claim(count())).collect()
    }

    #[test]
    fn each_workgroup_is_claimed_once() {
        for total in [0, 1, 2, 7, 1000] {
            let claims = Claims::new(total, 1, 1);
            let mut count = 0;
            let ranges = claimed(&claims, || {
                count += 1;
                count
            });
            let all: Vec<u64> = ranges.into_iter().flatten().collect();
            assert_eq!(all, (0..total).collect::<Vec<_>>());
            assert_eq!(claims.left(), 0);
        }
    }

    #[test]
    fn threads_at_once_share_without_gap_or_overlap() {
        let claims = &Claims::new(100_000, 1, 4);
        let mut all: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (1..=4).map(|n| scope.spawn(move || claimed(claims, move || n))).collect();
            let ranges = threads.into_iter().flat_map(|thread| thread.join().unwrap());
            ranges.flatten().collect()
        });
        all.sort_unstable();
        assert_eq!(all, (0..100_000).collect::<Vec<_>>());
    }

    #[test]
    fn numbers_up_to_the_largest_do_not_wrap() {
        let claims = Claims::new(u64::MAX, 1, 1);
        assert_eq!(claims.claim(u64::MAX), Some(0..u64::MAX / 8));
        let rest = claimed(&claims, || u64::MAX);
        assert_eq!(rest.last().map(|range| range.end), Some(u64::MAX));
        assert_eq!(claims.left(), 0);
    }

    #[test]
    fn workgroups_that_are_best_run_together_are_claimed_together() {
        let claims = Claims::new(1003, 4, 2);
        let mut count = 0;
        let ranges = claimed(&claims, || {
            count += 1;
            count
        });
        assert!(ranges.iter().all(|range| range.start % 4 == 0), "{ranges:?}");
        assert_eq!(ranges.last().map(|range| range.end), Some(1003));
    }

    #[test]
    fn a_thread_makes_several_claims_however_cheap_they_are() {
        for (total, threads) in [(8, 1), (1000, 2), (1 << 40, 16)] {
            let claims = Claims::new(total, 1, threads);
            let number = claimed(&claims, || u64::MAX).len();
            assert!(number >= 8 * threads, "{total}, {threads}: {number}");
        }
    }

    #[test]
    fn the_pace_follows_the_time_that_claims_take() {
        let mut pace = Pace::new(None);
        assert_eq!(pace.count, 1);
        for _ in 0..5 {
            pace.learn(Instant::now());
        }
        assert_eq!(pace.count, 32);
        let long_ago = Instant::now() - Duration::from_millis(1);
        pace.learn(long_ago);
        assert_eq!(pace.count, 16);
        assert_eq!(Pace::new(Some(1000)).count, 100);
        assert_eq!(Pace::new(Some(u64::MAX)).count, 1);
        assert_eq!(Pace::new(Some(0)).count, CLAIM);
    }
}
