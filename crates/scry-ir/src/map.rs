//! A map whose entries keep the order of their coming. What finds them is built once, and not for
//! every type of key and value, as the standard library's is.

use std::borrow::Borrow;
use std::hash::{BuildHasher as _, Hash};

use crate::hash::Factor;

/// A map from which nothing is removed.
pub(crate) struct Map<K, V> {
    entries: Vec<(K, V)>,
    places: Places,
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self { entries: Vec::new(), places: Places::default() }
    }
}

impl<K: Hash + Eq, V> Map<K, V> {
    fn place<Q: Hash + Eq + ?Sized>(&self, hash: u32, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        self.places.find(hash, &|place| self.entries[place].0.borrow() == key)
    }

    /// Adds an entry for a key that has none.
    fn add(&mut self, hash: u32, key: K, value: V) {
        self.places.push(hash);
        self.entries.push((key, value));
    }

    /// The value of a key, if it has one.
    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.place(hash(key), key).map(|place| &self.entries[place].1)
    }

    /// Gives a key a value, or another one.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        let hash = hash(&key);
        match self.place(hash, &key) {
            Some(place) => self.entries[place].1 = value,
            None => self.add(hash, key, value),
        }
    }

    /// The value of a key; if it has none yet, the default, which it has from then on.
    pub(crate) fn value_or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let hash = hash(&key);
        let place = self.place(hash, &key).unwrap_or_else(|| {
            self.add(hash, key, V::default());
            self.entries.len() - 1
        });
        &mut self.entries[place].1
    }

    /// Keys and values.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, (K, V)> {
        self.entries.iter()
    }
}

fn hash<Q: Hash + ?Sized>(key: &Q) -> u32 {
    Factor::new().hash_one(key) as u32
}

/// Where entries with a hash may be: their numbers, each in the first slot from that of its hash on
/// that was free.
#[derive(Default)]
struct Places {
    /// Hashes, by number.
    hashes: Vec<u32>,
    /// Numbers, or [`FREE`]; a power of two of them, at least a half free.
    slots: Vec<u32>,
}

const FREE: u32 = u32::MAX;

impl Places {
    /// The number with that hash that `is_it`.
    fn find(&self, hash: u32, is_it: &dyn Fn(usize) -> bool) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let number = self.slots[at];
            if number == FREE {
                return None;
            }
            if self.hashes[number as usize] == hash && is_it(number as usize) {
                return Some(number as usize);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds the next number, of something with that hash.
    fn push(&mut self, hash: u32) {
        self.hashes.push(hash);
        if self.hashes.len() * 2 <= self.slots.len() {
            return self.settle(self.hashes.len() - 1);
        }
        let slots = (self.slots.len() * 2).max(16);
        self.slots = vec![FREE; slots];
        (0..self.hashes.len()).for_each(|number| self.settle(number));
    }

    fn settle(&mut self, number: usize) {
        let mask = self.slots.len() - 1;
        let mut at = self.hashes[number] as usize & mask;
        while self.slots[at] != FREE {
            at = (at + 1) & mask;
        }
        self.slots[at] = number as u32;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_the_standard_map_holds(
            given in prop::collection::vec((0u16..300, any::<u8>()), 0..400)
        ) {
            let mut map = Map::<u16, u8>::default();
            let mut expected = HashMap::new();
            for (key, value) in given {
                map.insert(key, value);
                expected.insert(key, value);
            }
            for key in 0u16..300 {
                prop_assert_eq!(map.get(&key), expected.get(&key));
            }
            prop_assert_eq!(map.iter().count(), expected.len());
        }
    }

    #[test]
    fn values_begin_with_the_default_and_stay_in_order() {
        let mut map = Map::<&str, Vec<u8>>::default();
        map.value_or_default("b").push(1);
        map.value_or_default("a").push(2);
        map.value_or_default("b").push(3);
        let all: Vec<_> = map.iter().cloned().collect();
        assert_eq!(all, [("b", vec![1, 3]), ("a", vec![2])]);
    }
}
