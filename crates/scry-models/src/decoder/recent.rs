//! A map that drops what was not used for longest.

/// The values of the keys that were used last (LRU).
pub(super) struct Recent<K, V> {
    limit: usize,
    /// The latest one is the last.
    entries: Vec<(K, V)>,
}

impl<K: PartialEq, V> Recent<K, V> {
    /// Creates a map of at most `limit` values.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, entries: Vec::new() }
    }

    /// Makes a key the latest one. Returns whether it has a value.
    pub(super) fn touch(&mut self, key: &K) -> bool {
        let Some(at) = self.entries.iter().position(|(own, _)| own == key) else { return false };
        self.entries[at..].rotate_left(1);
        true
    }

    /// Returns whether a key has a value.
    pub(super) fn contains(&self, key: &K) -> bool {
        self.entries.iter().any(|(own, _)| own == key)
    }

    /// Adds a key that has no value.
    pub(super) fn insert(&mut self, key: K, value: V) {
        if self.entries.len() == self.limit {
            self.entries.remove(0);
        }
        self.entries.push((key, value));
    }

    /// Returns the value of the latest key, which was added or touched before.
    pub(super) fn latest(&self) -> &V {
        &self.entries[self.entries.len() - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_value_is_dropped() {
        let mut map = Recent::new(3);
        for key in [1, 2, 3] {
            assert!(!map.contains(&key) && !map.touch(&key));
            map.insert(key, key * 10);
        }
        assert!(map.touch(&1));
        assert_eq!(*map.latest(), 10);
        map.insert(4, 40);
        assert_eq!(*map.latest(), 40);
        // 2 was not used since 3 was added.
        assert!(!map.contains(&2) && map.contains(&3));
        assert_eq!([1, 2, 3, 4].map(|key| map.touch(&key)), [true, false, true, true]);
        assert_eq!(map.entries.len(), 3);
    }
}
