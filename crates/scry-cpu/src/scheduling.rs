//! Chunked dynamic scheduling of workgroups: threads claim ranges from an atomic counter.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
#[cfg(not(target_arch = "wasm32"))]
use std::time::Instant;

/// Target nanoseconds of a chunk: long enough to amortise the claim and the setup of execution,
/// short enough to limit the wait for the last thread.
const CHUNK_NANOS: u64 = 100_000;

/// Durations below and above which the size of the next chunk changes.
const SHORT: Duration = Duration::from_nanos(CHUNK_NANOS / 2);
const LONG: Duration = Duration::from_nanos(CHUNK_NANOS * 2);

/// Minimum number of chunks per thread, if there are enough workgroups. With several chunks, all
/// threads finish at about the same time.
const MIN_CHUNKS_PER_THREAD: u64 = 8;

/// The unclaimed workgroups of a launch.
pub(crate) struct Chunks {
    next: AtomicU64,
    total: u64,
    /// Chunk sizes are multiples of this number of workgroups.
    unit: u64,
    /// Maximum number of workgroups of a chunk, before it is rounded up to a multiple of `unit`.
    max_count: u64,
}

impl Chunks {
    /// Divides `total` workgroups for `threads` threads, in chunks of multiples of `unit`.
    pub(crate) fn new(total: u64, unit: u64, threads: usize) -> Self {
        let share = total / (threads as u64 * MIN_CHUNKS_PER_THREAD).max(1);
        Self { next: AtomicU64::new(0), total, unit: unit.max(1), max_count: share.max(1) }
    }

    /// Returns the number of unclaimed workgroups.
    pub(crate) fn unclaimed(&self) -> u64 {
        self.total - self.next.load(Ordering::Relaxed)
    }

    /// Claims up to `count` workgroups, rounded up to a multiple of `unit`; `None` if all are
    /// claimed.
    fn claim(&self, count: u64) -> Option<Range<u64>> {
        let count = count.clamp(1, self.max_count);
        let count = count.checked_next_multiple_of(self.unit).unwrap_or(count);
        let end = |next: u64| Some(next.saturating_add(count).min(self.total));
        let new_next = |next| end(next).filter(|end| *end > next);
        let next = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, new_next).ok()?;
        Some(next..end(next)?)
    }
}

/// The adaptive chunk size of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkSize {
    count: u64,
}

impl ChunkSize {
    /// Returns the initial chunk size, from the estimated nanoseconds per workgroup if known.
    pub(crate) fn new(cost: Option<u64>) -> Self {
        Self { count: cost.map_or(1, |cost| (CHUNK_NANOS / cost.max(1)).max(1)) }
    }

    /// Claims the next chunk.
    pub(crate) fn claim(&self, chunks: &Chunks) -> Option<Range<u64>> {
        chunks.claim(self.count)
    }

    /// Adapts the size to the duration of a chunk that started at `start`.
    pub(crate) fn adapt(&mut self, start: ChunkStart) {
        let elapsed = start.elapsed();
        if elapsed < SHORT {
            self.count = self.count.saturating_mul(2);
        } else if elapsed > LONG {
            self.count = (self.count / 2).max(1);
        }
    }
}

/// The time at which a chunk started. WebAssembly has no clock and no other threads that the launch
/// would have to wait for, so that all chunks count as short there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkStart {
    #[cfg(not(target_arch = "wasm32"))]
    at: Instant,
}

impl ChunkStart {
    /// Returns the current time.
    pub(crate) fn now() -> Self {
        Self {
            #[cfg(not(target_arch = "wasm32"))]
            at: Instant::now(),
        }
    }

    fn elapsed(self) -> Duration {
        #[cfg(target_arch = "wasm32")]
        return Duration::ZERO;
        #[cfg(not(target_arch = "wasm32"))]
        self.at.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claims all workgroups in chunks of `count()`, and returns the chunks.
    fn claim_all(chunks: &Chunks, mut count: impl FnMut() -> u64) -> Vec<Range<u64>> {
        std::iter::from_fn(|| chunks.claim(count())).collect()
    }

    #[test]
    fn each_workgroup_is_claimed_once() {
        for total in [0, 1, 2, 7, 1000] {
            let chunks = Chunks::new(total, 1, 1);
            let mut count = 0;
            let ranges = claim_all(&chunks, || {
                count += 1;
                count
            });
            let all: Vec<u64> = ranges.into_iter().flatten().collect();
            assert_eq!(all, (0..total).collect::<Vec<_>>());
            assert_eq!(chunks.unclaimed(), 0);
        }
    }

    #[test]
    fn concurrent_claims_cover_all_workgroups() {
        let chunks = &Chunks::new(100_000, 1, 4);
        let mut all: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (1..=4).map(|n| scope.spawn(move || claim_all(chunks, move || n))).collect();
            let ranges = threads.into_iter().flat_map(|thread| thread.join().unwrap());
            ranges.flatten().collect()
        });
        all.sort_unstable();
        assert_eq!(all, (0..100_000).collect::<Vec<_>>());
    }

    #[test]
    fn largest_workgroup_count_does_not_wrap() {
        let chunks = Chunks::new(u64::MAX, 1, 1);
        assert_eq!(chunks.claim(u64::MAX), Some(0..u64::MAX / 8));
        let ranges = claim_all(&chunks, || u64::MAX);
        assert_eq!(ranges.last().map(|range| range.end), Some(u64::MAX));
        assert_eq!(chunks.unclaimed(), 0);
    }

    #[test]
    fn chunks_are_multiples_of_the_unit() {
        let chunks = Chunks::new(1003, 4, 2);
        let mut count = 0;
        let ranges = claim_all(&chunks, || {
            count += 1;
            count
        });
        assert!(ranges.iter().all(|range| range.start % 4 == 0), "{ranges:?}");
        assert_eq!(ranges.last().map(|range| range.end), Some(1003));
    }

    #[test]
    fn each_thread_claims_several_chunks() {
        for (total, threads) in [(8, 1), (1000, 2), (1 << 40, 16)] {
            let chunks = Chunks::new(total, 1, threads);
            let number = claim_all(&chunks, || u64::MAX).len();
            assert!(number >= 8 * threads, "{total}, {threads}: {number}");
        }
    }

    #[test]
    fn chunk_size_follows_chunk_duration() {
        let mut chunk_size = ChunkSize::new(None);
        assert_eq!(chunk_size.count, 1);
        for _ in 0..5 {
            chunk_size.adapt(ChunkStart::now());
        }
        assert_eq!(chunk_size.count, 32);
        let long_ago = ChunkStart { at: Instant::now() - Duration::from_millis(1) };
        chunk_size.adapt(long_ago);
        assert_eq!(chunk_size.count, 16);
        assert_eq!(ChunkSize::new(Some(1000)).count, 100);
        assert_eq!(ChunkSize::new(Some(u64::MAX)).count, 1);
        assert_eq!(ChunkSize::new(Some(0)).count, CHUNK_NANOS);
    }
}
