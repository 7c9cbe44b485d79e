//! Cache of unused large buffers.
//!
//! Drivers allocate large buffers slowly: a gigabyte takes as long as a copy of a gigabyte over the
//! bus.

/// Minimum size in bytes of a cached buffer. Smaller ones share blocks of memory, and are cheap to
/// allocate.
const MIN_SIZE: u64 = 32 << 20;

/// Unused values, in the order of their insertion. Beyond the limit the oldest are evicted.
pub(crate) struct BufferCache<T> {
    /// Size in bytes and value.
    entries: Vec<(u64, T)>,
    /// Maximum total size in bytes.
    limit: u64,
}

impl<T> BufferCache<T> {
    /// Creates an empty cache of at most `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self { entries: Vec::new(), limit }
    }

    /// Removes the smallest value of at least `size` bytes, unless more than an eighth of `size`
    /// would be wasted.
    pub(crate) fn take(&mut self, size: u64) -> Option<(u64, T)> {
        let fits = |capacity: u64| capacity >= size && capacity - size <= size / 8;
        let candidates = self.entries.iter().map(|entry| entry.0).enumerate();
        let best = candidates.filter(|entry| fits(entry.1)).min_by_key(|entry| entry.1)?;
        Some(self.entries.remove(best.0))
    }

    /// Inserts a value of `size` bytes. Returns the evicted values, or the value itself if its size
    /// does not qualify.
    pub(crate) fn insert(&mut self, size: u64, value: T) -> Vec<T> {
        if size < MIN_SIZE || size > self.limit {
            return vec![value];
        }
        self.entries.push((size, value));
        let mut evicted = Vec::new();
        while self.entries.iter().map(|entry| entry.0).sum::<u64>() > self.limit {
            evicted.push(self.entries.remove(0).1);
        }
        evicted
    }

    /// Removes all values.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        self.entries.drain(..).map(|entry| entry.1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_fit_without_waste_is_reused() {
        let mut cache = BufferCache::new(MIN_SIZE * 100);
        for (size, name) in [(9, "nine"), (8, "eight"), (16, "sixteen")] {
            assert!(cache.insert(MIN_SIZE * size, name).is_empty());
        }
        assert_eq!(cache.take(MIN_SIZE * 8), Some((MIN_SIZE * 8, "eight")));
        assert_eq!(cache.take(MIN_SIZE * 8), Some((MIN_SIZE * 9, "nine")));
        assert_eq!(cache.take(MIN_SIZE * 8), None, "too much of sixteen would be wasted");
        assert_eq!(cache.take(MIN_SIZE * 16 + 1), None);
        assert_eq!(cache.drain(), ["sixteen"]);
    }

    #[test]
    fn small_and_oversized_buffers_are_freed() {
        let mut cache = BufferCache::new(MIN_SIZE * 3);
        assert_eq!(cache.insert(MIN_SIZE - 1, 'a'), ['a']);
        assert_eq!(cache.insert(MIN_SIZE * 4, 'b'), ['b']);
        assert!(cache.insert(MIN_SIZE * 2, 'c').is_empty());
        assert_eq!(cache.insert(MIN_SIZE * 2, 'd'), ['c']);
        assert_eq!(cache.drain(), ['d']);
    }
}
