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
const MIN_BLOCK: u64 = 256;

/// Maximum bytes of free large blocks.
const LIMIT: u64 = 256 << 20;

/// The host and device addresses of pinned memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PinnedBlock {
    pub(crate) host: NonNull<u8>,
    pub(crate) address: DevicePtr,
}

// SAFETY: it is an address; its users are responsible for the accesses.
unsafe impl Send for PinnedBlock {}
// SAFETY: as above.
unsafe impl Sync for PinnedBlock {}

impl PinnedBlock {
    /// Returns the address `bytes` further on.
    fn offset_by(self, bytes: u64) -> Self {
        let host = self.host.as_ptr().wrapping_add(bytes as usize);
        let host = NonNull::new(host).expect("a slab does not span the end of memory");
        Self { host, address: self.address + bytes }
    }
}

/// Free blocks by size.
#[derive(Default)]
pub(crate) struct FreeBlocks {
    /// By capacity, in ascending order; there are few capacities.
    free: Vec<(u64, Vec<PinnedBlock>)>,
    /// Bytes of the large blocks.
    large: u64,
    /// All slabs, in use or not.
    slabs: Vec<PinnedBlock>,
}

/// Returns the capacity of a block for `size` bytes: at most an eighth more for large ones.
pub(crate) fn capacity(size: u64) -> u64 {
    let power = size.max(MIN_BLOCK).next_power_of_two();
    if power <= SMALL { power } else { size.next_multiple_of(power / 16) }
}

impl FreeBlocks {
    /// Removes a block of a capacity, if there is one.
    pub(crate) fn take(&mut self, capacity: u64) -> Option<PinnedBlock> {
        let place = self.free_list(capacity).pop()?;
        if capacity > SMALL {
            self.large -= capacity;
        }
        Some(place)
    }

    /// Keeps a free block. Returns it if it is beyond the limit.
    pub(crate) fn put(&mut self, capacity: u64, place: PinnedBlock) -> Option<PinnedBlock> {
        if capacity > SMALL {
            if self.large + capacity > LIMIT {
                return Some(place);
            }
            self.large += capacity;
        }
        self.free_list(capacity).push(place);
        None
    }

    /// Returns the free list of a capacity.
    fn free_list(&mut self, capacity: u64) -> &mut Vec<PinnedBlock> {
        let at = self.free.partition_point(|(of, _)| *of < capacity);
        if self.free.get(at).is_none_or(|(of, _)| *of != capacity) {
            self.free.insert(at, (capacity, Vec::new()));
        }
        &mut self.free[at].1
    }

    /// Cuts a slab into blocks, and returns the first.
    pub(crate) fn cut(&mut self, slab: PinnedBlock, capacity: u64) -> PinnedBlock {
        self.slabs.push(slab);
        let others = (1..SLAB / capacity).rev().map(|nth| slab.offset_by(nth * capacity));
        self.free_list(capacity).extend(others);
        slab
    }

    /// Removes all free large blocks.
    pub(crate) fn take_large(&mut self) -> Vec<PinnedBlock> {
        self.large = 0;
        let mut large = Vec::new();
        for (_, places) in self.free.iter_mut().filter(|(capacity, _)| *capacity > SMALL) {
            large.append(places);
        }
        large
    }

    /// Removes everything. None of it may be in use.
    pub(crate) fn take_all(&mut self) -> Vec<PinnedBlock> {
        let mut all = self.take_large();
        self.free.clear();
        all.append(&mut self.slabs);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_at(address: u64) -> PinnedBlock {
        let host = NonNull::new(std::ptr::without_provenance_mut(address as usize)).unwrap();
        PinnedBlock { host, address }
    }

    #[test]
    fn block_capacities_waste_little() {
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
    fn slab_blocks_do_not_overlap() {
        let mut blocks = FreeBlocks::default();
        let mut found = vec![blocks.cut(block_at(SLAB), 4096).address];
        while let Some(place) = blocks.take(4096) {
            assert_eq!(place.host.as_ptr().addr() as u64, place.address);
            found.push(place.address);
        }
        let expected: Vec<u64> = (0..256).map(|nth| SLAB + nth * 4096).collect();
        assert_eq!(found, expected);
        assert_eq!(blocks.take(8192), None);
        assert_eq!(blocks.take_all(), [block_at(SLAB)]);
    }

    #[test]
    fn large_blocks_have_a_limit() {
        let mut blocks = FreeBlocks::default();
        assert_eq!(blocks.put(LIMIT / 2, block_at(4096)), None);
        assert_eq!(blocks.put(LIMIT / 2, block_at(8192)), None);
        assert_eq!(blocks.put(SLAB, block_at(256)), Some(block_at(256)));
        assert_eq!(blocks.take(LIMIT / 2), Some(block_at(8192)));
        assert_eq!(blocks.put(SLAB, block_at(256)), None);
        assert_eq!(blocks.put(256, block_at(512)), None, "small ones are always kept");
        assert_eq!(blocks.take_large(), [block_at(256), block_at(4096)]);
        assert_eq!(blocks.put(LIMIT, block_at(4096)), None, "the limit is as it was");
        assert_eq!(blocks.take(256), Some(block_at(512)));
    }
}
