//! The free lists of pinned host memory.
//!
//! Pinning memory is slow in the driver, and unpinning is slower: it waits for the device. So small
//! blocks are parts of slabs, which are never unpinned before the end, and freed large blocks are
//! kept for reuse up to a limit.

use std::ptr::NonNull;

use crate::backend::cuda::ffi::types::DevicePtr;

/// Maximum bytes of a small block, which is a part of a slab.
pub(crate) const MAX_SMALL: u64 = 64 << 10;

/// Bytes of a slab.
pub(crate) const SLAB_SIZE: u64 = 1 << 20;

/// Bytes of the smallest block, and the alignment of all blocks.
const MIN_BLOCK_SIZE: u64 = 256;

/// Maximum bytes of all free large blocks.
const MAX_FREE_LARGE: u64 = 256 << 20;

/// The host and device addresses of pinned memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PinnedBlock {
    pub(crate) host: NonNull<u8>,
    pub(crate) address: DevicePtr,
}

// SAFETY: only an address; code that dereferences it must synchronise the accesses.
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
    /// Bytes of the free large blocks.
    large_bytes: u64,
    /// All slabs, in use or not.
    slabs: Vec<PinnedBlock>,
}

/// Returns the capacity of a block for `size` bytes: a power of two for small blocks, at most an
/// eighth more than `size` for large ones.
pub(crate) fn capacity(size: u64) -> u64 {
    let power = size.max(MIN_BLOCK_SIZE).next_power_of_two();
    if power <= MAX_SMALL { power } else { size.next_multiple_of(power / 16) }
}

impl FreeBlocks {
    /// Removes a block of a capacity, if there is one.
    pub(crate) fn take(&mut self, capacity: u64) -> Option<PinnedBlock> {
        let block = self.free_list(capacity).pop()?;
        if capacity > MAX_SMALL {
            self.large_bytes -= capacity;
        }
        Some(block)
    }

    /// Adds a free block. Returns it instead if it is large and the limit is exceeded.
    pub(crate) fn put(&mut self, capacity: u64, block: PinnedBlock) -> Option<PinnedBlock> {
        if capacity > MAX_SMALL {
            if self.large_bytes + capacity > MAX_FREE_LARGE {
                return Some(block);
            }
            self.large_bytes += capacity;
        }
        self.free_list(capacity).push(block);
        None
    }

    /// Returns the free list of a capacity.
    fn free_list(&mut self, capacity: u64) -> &mut Vec<PinnedBlock> {
        let index = self.free.partition_point(|(listed, _)| *listed < capacity);
        if self.free.get(index).is_none_or(|(listed, _)| *listed != capacity) {
            self.free.insert(index, (capacity, Vec::new()));
        }
        &mut self.free[index].1
    }

    /// Splits a slab into free blocks, and returns the first.
    pub(crate) fn split_slab(&mut self, slab: PinnedBlock, capacity: u64) -> PinnedBlock {
        self.slabs.push(slab);
        let others = (1..SLAB_SIZE / capacity).rev().map(|index| slab.offset_by(index * capacity));
        self.free_list(capacity).extend(others);
        slab
    }

    /// Removes all free large blocks.
    pub(crate) fn take_large(&mut self) -> Vec<PinnedBlock> {
        self.large_bytes = 0;
        let mut large = Vec::new();
        for (_, blocks) in self.free.iter_mut().filter(|(capacity, _)| *capacity > MAX_SMALL) {
            large.append(blocks);
        }
        large
    }

    /// Removes all free large blocks and all slabs, of which no block may be in use.
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
                capacity >= size
                    && capacity < 2 * size.max(256)
                    && SLAB_SIZE.is_multiple_of(capacity)
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
        let mut found = vec![blocks.split_slab(block_at(SLAB_SIZE), 4096).address];
        while let Some(block) = blocks.take(4096) {
            assert_eq!(block.host.as_ptr().addr() as u64, block.address);
            found.push(block.address);
        }
        let expected: Vec<u64> = (0..256).map(|index| SLAB_SIZE + index * 4096).collect();
        assert_eq!(found, expected);
        assert_eq!(blocks.take(8192), None);
        assert_eq!(blocks.take_all(), [block_at(SLAB_SIZE)]);
    }

    #[test]
    fn free_large_blocks_are_limited() {
        let mut blocks = FreeBlocks::default();
        assert_eq!(blocks.put(MAX_FREE_LARGE / 2, block_at(4096)), None);
        assert_eq!(blocks.put(MAX_FREE_LARGE / 2, block_at(8192)), None);
        assert_eq!(blocks.put(SLAB_SIZE, block_at(256)), Some(block_at(256)));
        assert_eq!(blocks.take(MAX_FREE_LARGE / 2), Some(block_at(8192)));
        assert_eq!(blocks.put(SLAB_SIZE, block_at(256)), None);
        assert_eq!(blocks.put(256, block_at(512)), None, "small blocks have no limit");
        assert_eq!(blocks.take_large(), [block_at(256), block_at(4096)]);
        assert_eq!(blocks.put(MAX_FREE_LARGE, block_at(4096)), None, "the limit has not changed");
        assert_eq!(blocks.take(256), Some(block_at(512)));
    }
}
