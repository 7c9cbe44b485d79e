//! Generational handles: a stale handle never refers to the object that reuses its slot.

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
    /// Returns the index of the slot, unique among live handles.
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
    values: Vec<Option<T>>,
    indices: SlotIndices,
    kind: PhantomData<fn() -> K>,
}

impl<K, T> Default for Slots<K, T> {
    fn default() -> Self {
        Self { values: Vec::new(), indices: SlotIndices::default(), kind: PhantomData }
    }
}

impl<K, T> Slots<K, T> {
    /// Stores an object and returns its handle.
    pub(crate) fn insert(&mut self, value: T) -> Id<K> {
        let (index, generation) = self.indices.reserve();
        match self.values.get_mut(index as usize) {
            Some(vacant) => *vacant = Some(value),
            None => self.values.push(Some(value)),
        }
        Id { index, generation, kind: PhantomData }
    }

    /// Returns the object, unless it was removed.
    pub(crate) fn get(&self, id: Id<K>) -> Option<&T> {
        self.values[self.indices.find(id.index, id.generation)?].as_ref()
    }

    /// Returns the object mutably, unless it was removed.
    pub(crate) fn get_mut(&mut self, id: Id<K>) -> Option<&mut T> {
        self.values[self.indices.find(id.index, id.generation)?].as_mut()
    }

    /// Removes and returns the object; its handle is stale from then on.
    pub(crate) fn remove(&mut self, id: Id<K>) -> Option<T> {
        let slot = self.indices.find(id.index, id.generation)?;
        let value = self.values[slot].take()?;
        self.indices.free(id.index);
        Some(value)
    }
}

/// The vacant slots and the generation of each slot, independent of the objects' type.
#[derive(Default)]
struct SlotIndices {
    generations: Vec<u32>,
    vacant: Vec<u32>,
}

impl SlotIndices {
    /// Reserves a vacant or new slot, and returns its index and generation.
    fn reserve(&mut self) -> (u32, u32) {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.generations.push(0);
            u32::try_from(self.generations.len() - 1).expect("fewer than 2^32 objects")
        });
        (index, self.generations[index as usize])
    }

    /// Returns the slot, if it has this generation.
    fn find(&self, index: u32, generation: u32) -> Option<usize> {
        let slot = index as usize;
        (*self.generations.get(slot)? == generation).then_some(slot)
    }

    /// Frees a slot. A slot whose generation would overflow is retired.
    fn free(&mut self, index: u32) {
        let generation = &mut self.generations[index as usize];
        if let Some(next) = generation.checked_add(1) {
            *generation = next;
            self.vacant.push(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kind;

    #[test]
    fn stale_handles_find_nothing() {
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
