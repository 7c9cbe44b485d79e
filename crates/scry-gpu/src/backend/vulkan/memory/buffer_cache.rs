//! Large buffers that nobody uses at present, kept for those who ask next.
//!
//! Drivers take their time over large allocations: a gigabyte costs as much as copying a gigabyte
//! over the bus.

/// Smaller buffers share blocks of memory, and are cheap anyway.
const LEAST: u64 = 32 << 20;

/// Values of a size, of which those unused for longest go first when there are too many.
pub(crate) struct Idle<T> {
    entries: Vec<(u64, T)>,
    /// The most bytes to keep.
    limit: u64,
}

impl<T> Idle<T> {
    /// Keeps at most `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self { entries: Vec::new(), limit }
    }

    /// The smallest that has `size` bytes, unless it wastes more than an eighth.
    pub(crate) fn take(&mut self, size: u64) -> Option<(u64, T)> {
        let fits = |capacity: u64| capacity >= size && capacity - size <= size / 8;
        let candidates = self.entries.iter().map(|entry| entry.0).enumerate();
        let best = candidates.filter(|entry| fits(entry.1)).min_by_key(|entry| entry.1)?;
        Some(self.entries.remove(best.0))
    }

    /// Keeps a value of `size` bytes. Returns those that are not to be kept.
    pub(crate) fn keep(&mut self, size: u64, value: T) -> Vec<T> {
        if size < LEAST || size > self.limit {
            return vec![value];
        }
        self.entries.push((size, value));
        let mut dropped = Vec::new();
        while self.entries.iter().map(|entry| entry.0).sum::<u64>() > self.limit {
            dropped.push(self.entries.remove(0).1);
        }
        dropped
    }

    /// Takes out everything.
    pub(crate) fn empty(&mut self) -> Vec<T> {
        self.entries.drain(..).map(|entry| entry.1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_fit_is_taken_and_waste_is_refused() {
        let mut idle = Idle::new(LEAST * 100);
        for (size, name) in [(9, "nine"), (8, "eight"), (16, "sixteen")] {
            assert!(idle.keep(LEAST * size, name).is_empty());
        }
        assert_eq!(idle.take(LEAST * 8), Some((LEAST * 8, "eight")));
        assert_eq!(idle.take(LEAST * 8), Some((LEAST * 9, "nine")));
        assert_eq!(idle.take(LEAST * 8), None, "sixteen would be wasted on eight");
        assert_eq!(idle.take(LEAST * 16 + 1), None);
        assert_eq!(idle.empty(), ["sixteen"]);
    }

    #[test]
    fn small_ones_and_those_beyond_the_limit_are_not_kept() {
        let mut idle = Idle::new(LEAST * 3);
        assert_eq!(idle.keep(LEAST - 1, 'a'), ['a']);
        assert_eq!(idle.keep(LEAST * 4, 'b'), ['b']);
        assert!(idle.keep(LEAST * 2, 'c').is_empty());
        assert_eq!(idle.keep(LEAST * 2, 'd'), ['c']);
        assert_eq!(idle.empty(), ['d']);
    }
}
