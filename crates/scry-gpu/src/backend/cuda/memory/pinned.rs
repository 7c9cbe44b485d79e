//! A free list of pinned host memory.
//!
//! Pinning memory is slow in the driver, and unpinning is slower: it waits for the device. So small
//! blocks are cut from slabs, which are kept, and large blocks are kept up to a limit.

use std::ptr::NonNull;

use crate::backend::cuda::ffi::types::DevicePtr;

/// Maximum bytes of a block that is cut from a slab.
pub(crate) const SMALL: u64 = 64 << 10;

/// Bytes of a slab.
pub(crate) const SLAB: u64 = 1 << 20;

/// Bytes of the smallest block, and the alignment of all blocks.
const LEAST: u64 = 256;

/// Maximum bytes of free large blocks.
const LIMIT: u64 = 256 << 20;

/// The host and device addresses of pinned memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) host: NonNull<u8>,
    pub(crate) address: DevicePtr,
}

// SAFETY: it is an address; its users are responsible for the accesses.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    /// Returns the address `bytes` further on.
    fn behind(self, bytes: u64) -> Self {
        let host = self.host.as_ptr().wrapping_add(bytes as usize);
        let host = NonNull::new(host).expect("a slab does not span the end of memory");
        Self { host, address: self.address + bytes }
    }
}

/// Free blocks by size.
#[derive(Default)]
pub(crate) struct Shelves {
    /// By capacity, in ascending order; there are few capacities.
    free: Vec<(u64, Vec<Place>)>,
    /// Bytes of the large blocks.
    large: u64,
    /// All slabs, in use or not.
    slabs: Vec<Place>,
}

/// Returns the capacity of a block for `size` bytes: at most an eighth more for large ones.
pub(crate) fn capacity(size: u64) -> u64 {
    let power = size.max(LEAST).next_power_of_two();
    if power <= SMALL { power } else { size.next_multiple_of(power / 16) }
}

impl Shelves {
    /// Removes a block of a capacity, if there is one.
    pub(crate) fn take(&mut self, capacity: u64) -> Option<Place> {
        let place = self.shelf(capacity).pop()?;
        if capacity > SMALL {
            self.large -= capacity;
        }
        Some(place)
    }

    /// Keeps a free block. Returns it if it is beyond the limit.
    pub(crate) fn put(&mut self, capacity: u64, place: Place) -> Option<Place> {
        if capacity > SMALL {
            if self.large + capacity > LIMIT {
                return Some(place);
            }
            self.large += capacity;
        }
        self.shelf(capacity).push(place);
        None
    }

    /// Returns the free list of a capacity.
    fn shelf(&mut self, capacity: u64) -> &mut Vec<Place> {
        let at = self.free.partition_point(|(of, _)| *of < capacity);
        if self.free.get(at).is_none_or(|(of, _)| *of != capacity) {
            self.free.insert(at, (capacity, Vec::new()));
        }
        &mut self.free[at].1
    }

    /// Cuts a slab into blocks, and returns the first.
    pub(crate) fn cut(&mut self, slab: Place, capacity: u64) -> Place {
        self.slabs.push(slab);
        let others = (1..SLAB / capacity).rev().map(|nth| slab.behind(nth * capacity));
        self.shelf(capacity).extend(others);
        slab
    }

    /// Removes all free large blocks.
    pub(crate) fn empty(&mut self) -> Vec<Place> {
        self.large = 0;
        let mut large = Vec::new();
        for (_, places) in self.free.iter_mut().filter(|(capacity, _)| *capacity > SMALL) {
            large.append(places);
        }
        large
    }

    /// Removes everything. None of it may be in use.
    pub(crate) fn take_down(&mut self) -> Vec<Place> {
        let mut all = self.empty();
        self.free.clear();
        all.append(&mut self.slabs);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(address: u64) -> Place {
        let host = NonNull::new(std::ptr::without_provenance_mut(address as usize)).unwrap();
        Place { host, address }
    }

    #[test]
    fn blocks_are_large_enough_and_waste_little() {
        for size in [1, 255, 256, 257, 4096, 65536] {
            let capacity = capacity(size);
            assert!(
                capacity >= size && capacity < 2 * size.max(256) && SLAB.is_multiple_of(capacity)
            );
        }
        for size in [65537, 100_000, (2 << 20) + 1, 5 << 30] {
            let capacity = capacity(size);
            assert!(capacity >= size && capacity - size <= size / 8, "{size}: {capacity}");
        }
        assert_eq!(capacity(2 << 20), 2 << 20);
    }

    #[test]
    fn a_slab_is_cut_into_blocks_that_do_not_overlap() {
        let mut shelves = Shelves::default();
        let mut found = vec![shelves.cut(place(SLAB), 4096).address];
        while let Some(place) = shelves.take(4096) {
            assert_eq!(place.host.as_ptr().addr() as u64, place.address);
            found.push(place.address);
        }
        let expected: Vec<u64> = (0..256).map(|nth| SLAB + nth * 4096).collect();
        assert_eq!(found, expected);
        assert_eq!(shelves.take(8192), None);
        assert_eq!(shelves.take_down(), [place(SLAB)]);
    }

    #[test]
    fn large_blocks_are_kept_up_to_a_limit() {
        let mut shelves = Shelves::default();
        assert_eq!(shelves.put(LIMIT / 2, place(4096)), None);
        assert_eq!(shelves.put(LIMIT / 2, place(8192)), None);
        assert_eq!(shelves.put(SLAB, place(256)), Some(place(256)));
        assert_eq!(shelves.take(LIMIT / 2), Some(place(8192)));
        assert_eq!(shelves.put(SLAB, place(256)), None);
        assert_eq!(shelves.put(256, place(512)), None, "small ones are always kept");
        assert_eq!(shelves.empty(), [place(256), place(4096)]);
        assert_eq!(shelves.put(LIMIT, place(4096)), None, "the limit is as it was");
        assert_eq!(shelves.take(256), Some(place(512)));
    }
}
