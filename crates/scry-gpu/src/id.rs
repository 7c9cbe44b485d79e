//! Handles with generations: a stale handle is recognised, never mistaken for its successor.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

/// A handle to an object of kind `K` in a [`Slots`].
pub(crate) struct Id<K> {
    index: u32,
    generation: u32,
    kind: PhantomData<fn() -> K>,
}

impl<K> Id<K> {
    /// Which slot; those in use at once have different ones.
    pub(crate) fn index(self) -> usize {
        self.index as usize
    }
}

impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Id<K> {}

impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        (self.index, self.generation) == (other.index, other.generation)
    }
}

impl<K> Eq for Id<K> {}

impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.index, self.generation).cmp(&(other.index, other.generation))
    }
}

impl<K> Hash for Id<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.index, self.generation).hash(state);
    }
}

impl<K> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}.{}", self.index, self.generation)
    }
}

/// A table of objects addressed by [`Id`]s of kind `K`.
pub(crate) struct Slots<K, T> {
    entries: Vec<(u32, Option<T>)>,
    vacant: Vec<u32>,
    kind: PhantomData<fn() -> K>,
}

impl<K, T> Default for Slots<K, T> {
    fn default() -> Self {
        Self { entries: Vec::new(), vacant: Vec::new(), kind: PhantomData }
    }
}

impl<K, T> Slots<K, T> {
    /// Stores an object.
    pub(crate) fn insert(&mut self, value: T) -> Id<K> {
        let index = match self.vacant.pop() {
            Some(index) => index,
            None => {
                self.entries.push((0, None));
                u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 objects")
            }
        };
        let entry = &mut self.entries[index as usize];
        entry.1 = Some(value);
        Id { index, generation: entry.0, kind: PhantomData }
    }

    /// The object, unless it was removed.
    pub(crate) fn get(&self, id: Id<K>) -> Option<&T> {
        let (generation, value) = self.entries.get(id.index as usize)?;
        if *generation == id.generation { value.as_ref() } else { None }
    }

    /// The object, to be changed, unless it was removed.
    pub(crate) fn get_mut(&mut self, id: Id<K>) -> Option<&mut T> {
        let (generation, value) = self.entries.get_mut(id.index as usize)?;
        if *generation == id.generation { value.as_mut() } else { None }
    }

    /// Takes the object out; its handle is stale from then on.
    pub(crate) fn remove(&mut self, id: Id<K>) -> Option<T> {
        let (generation, value) = self.entries.get_mut(id.index as usize)?;
        if *generation != id.generation {
            return None;
        }
        let taken = value.take()?;
        // A slot whose generations are used up is retired rather than reused.
        if let Some(next) = generation.checked_add(1) {
            *generation = next;
            self.vacant.push(id.index);
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kind;

    #[test]
    fn a_removed_object_is_not_found_under_its_old_handle() {
        let mut slots = Slots::<Kind, &str>::default();
        let first = slots.insert("first");
        assert_eq!(slots.remove(first), Some("first"));
        let second = slots.insert("second");
        assert_eq!(second.index, first.index, "the slot is reused");
        assert_ne!(second, first);
        assert_eq!(slots.get(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.get(second), Some(&"second"));
    }
}
