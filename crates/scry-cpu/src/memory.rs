//! Memory of kernels.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;

/// Alignment of allocations in bytes: a cache line, and the widest vector.
const ALIGNMENT: usize = 64;

/// Default alignment of the system allocator. For larger alignments, `alloc_zeroed` clears memory
/// explicitly, even fresh pages that are already zero.
const CHEAP_ALIGNMENT: usize = 16;

/// A zero-initialised allocation, aligned to 64 bytes.
///
/// It does not synchronise accesses: callers of the `unsafe` functions that accept [`MemoryRange`]s
/// must.
pub struct Memory {
    block: NonNull<u8>,
    layout: Layout,
    /// Bytes of the block before the first one in use.
    skipped: usize,
    size: usize,
}

// SAFETY: this value owns the memory, and only unsafe functions access it.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates `size` bytes; `None` if the allocation fails.
    #[must_use]
    pub fn new(size: usize) -> Option<Self> {
        let padded = size.checked_add(ALIGNMENT)?;
        let layout = Layout::from_size_align(padded, CHEAP_ALIGNMENT).ok()?;
        // SAFETY: the layout is not empty.
        let block = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let skipped = block.addr().get().next_multiple_of(ALIGNMENT) - block.addr().get();
        Some(Self { block, layout, skipped, size })
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns a part of the bytes, if it is in bounds.
    #[must_use]
    pub fn range(&self, offset: usize, size: usize) -> Option<MemoryRange> {
        self.whole().part(offset, size)
    }

    /// Returns all bytes.
    #[must_use]
    pub fn whole(&self) -> MemoryRange {
        // SAFETY: the block has room for the bytes skipped and the bytes in use.
        let start = unsafe { self.block.add(self.skipped) };
        MemoryRange { start: start.as_ptr(), size: self.size }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; ranges must not be used after this.
        unsafe { dealloc(self.block.as_ptr(), self.layout) };
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes)", self.size)
    }
}

/// A range of bytes of a [`Memory`] that a kernel may access.
///
/// An address and a length, without a lifetime: callers of `unsafe` functions must make sure that
/// the memory is still allocated.
#[derive(Debug, Clone, Copy)]
pub struct MemoryRange {
    /// First byte; aligned to 16 bytes where it is bound to a kernel.
    pub(crate) start: *mut u8,
    /// Number of bytes.
    pub(crate) size: usize,
}

// SAFETY: a range is an address and a length; only unsafe functions dereference it.
unsafe impl Send for MemoryRange {}
// SAFETY: as above.
unsafe impl Sync for MemoryRange {}

impl MemoryRange {
    /// Returns the size in bytes.
    #[must_use]
    pub fn size(self) -> usize {
        self.size
    }

    /// Returns whether the first byte is at a multiple of `alignment`.
    #[must_use]
    pub fn is_aligned_to(self, alignment: usize) -> bool {
        self.start.addr().is_multiple_of(alignment)
    }

    /// Returns a part of the bytes, if it is in bounds.
    #[must_use]
    pub fn part(self, offset: usize, size: usize) -> Option<Self> {
        let end = offset.checked_add(size)?;
        // The start may be one past the end of the allocation, if the part is empty.
        (end <= self.size).then(|| Self { start: self.start.wrapping_add(offset), size })
    }

    /// Copies the bytes of the range to `out`.
    ///
    /// # Safety
    /// The memory is alive, and no other thread writes these bytes meanwhile.
    ///
    /// # Panics
    /// If `out` is not as long as the range.
    pub unsafe fn read(self, out: &mut [u8]) {
        assert_eq!(out.len(), self.size, "`out` differs in size from the range");
        // SAFETY: the caller promises that the bytes are alive and not written; `out` is exclusive.
        unsafe { self.start.copy_to_nonoverlapping(out.as_mut_ptr(), self.size) };
    }

    /// Copies `data` to the range.
    ///
    /// # Safety
    /// The memory is alive, and nothing else accesses these bytes meanwhile.
    ///
    /// # Panics
    /// If `data` is not as long as the range.
    pub unsafe fn write(self, data: &[u8]) {
        assert_eq!(data.len(), self.size, "`data` differs in size from the range");
        // SAFETY: the caller promises that the bytes are alive and not accessed by others; `data`
        // cannot overlap them.
        unsafe { self.start.copy_from_nonoverlapping(data.as_ptr(), self.size) };
    }

    /// Returns the bytes.
    ///
    /// # Safety
    /// For `'a`, the memory is alive and nothing writes these bytes.
    #[must_use]
    pub unsafe fn as_slice<'a>(self) -> &'a [u8] {
        // SAFETY: the caller promises that the bytes are alive and not written; they are
        // initialised, since allocations are zeroed.
        unsafe { std::slice::from_raw_parts(self.start, self.size) }
    }

    /// Returns the bytes, to be changed.
    ///
    /// # Safety
    /// For `'a`, the memory is alive and nothing else accesses these bytes.
    #[must_use]
    pub unsafe fn as_mut_slice<'a>(self) -> &'a mut [u8] {
        // SAFETY: the caller promises that the bytes are alive and not accessed by others; they are
        // initialised, since allocations are zeroed.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.size) }
    }

    /// Copies the bytes of `src`, a range of the same size; the two may overlap.
    ///
    /// # Safety
    /// Both memories are alive, nothing else accesses these bytes, and no other thread writes those
    /// of `src` meanwhile.
    ///
    /// # Panics
    /// If the sizes differ.
    pub unsafe fn copy_from(self, src: Self) {
        assert_eq!(src.size, self.size, "the ranges to copy differ in size");
        // SAFETY: the caller promises that both are alive, and that no other thread interferes.
        unsafe { self.start.copy_from(src.start, self.size) };
    }

    /// Fills the range with a 32-bit pattern.
    ///
    /// # Safety
    /// The memory is alive, and nothing else accesses these bytes meanwhile.
    ///
    /// # Panics
    /// If the start or the size is not a multiple of 4.
    pub unsafe fn fill(self, pattern: u32) {
        assert!(
            self.is_aligned_to(4) && self.size.is_multiple_of(4),
            "the start or the size of the range to fill is not a multiple of 4 bytes"
        );
        // SAFETY: the caller promises that the bytes are alive and not accessed by others. They are
        // initialised, since allocations are zeroed, and aligned to words.
        let words =
            unsafe { std::slice::from_raw_parts_mut(self.start.cast::<u32>(), self.size / 4) };
        words.fill(pattern);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the content of a memory that only the test uses.
    fn bytes(memory: &Memory) -> Vec<u8> {
        let mut out = vec![0xEE; memory.size()];
        // SAFETY: the memory is alive, and the test is its only user.
        unsafe { memory.whole().read(&mut out) };
        out
    }

    #[test]
    fn memory_is_aligned_and_zero() {
        for size in [0, 1, 63, 64, 65, 4096, 100_000] {
            let memory = Memory::new(size).unwrap();
            assert!(memory.whole().is_aligned_to(ALIGNMENT), "{size}");
            assert_eq!(bytes(&memory), vec![0; size]);
        }
    }

    #[test]
    fn failed_allocation_returns_none() {
        for size in [usize::MAX, usize::MAX - 63, isize::MAX as usize, isize::MAX as usize - 64] {
            assert!(Memory::new(size).is_none(), "{size}");
        }
    }

    #[test]
    fn ranges_stay_within_the_memory() {
        let memory = Memory::new(100).unwrap();
        assert_eq!(memory.range(0, 100).map(MemoryRange::size), Some(100));
        assert_eq!(memory.range(100, 0).map(MemoryRange::size), Some(0));
        let part = memory.range(40, 20).unwrap();
        assert_eq!(part.part(20, 0).map(MemoryRange::size), Some(0));
        assert!(part.part(20, 1).is_none() && part.part(usize::MAX, 2).is_none());
        for (offset, size) in [(0, 101), (100, 1), (101, 0), (usize::MAX, 1), (1, usize::MAX)] {
            assert!(memory.range(offset, size).is_none(), "{offset}, {size}");
        }
    }

    #[test]
    fn ranges_write_copy_fill_and_read() {
        let (a, b) = (Memory::new(64).unwrap(), Memory::new(64).unwrap());
        let part = |memory: &Memory, offset, size| memory.range(offset, size).unwrap();
        // SAFETY: both are alive, and the test is their only user.
        unsafe {
            part(&a, 3, 4).write(&[1, 2, 3, 4]);
            part(&b, 9, 4).copy_from(part(&a, 3, 4));
            part(&b, 16, 8).fill(0x0807_0605);
            part(&b, 24, 4).fill(0xABAB_ABAB);
            // Overlapping ranges.
            part(&a, 4, 4).copy_from(part(&a, 3, 4));
        }
        assert_eq!(bytes(&a)[..10], [0, 0, 0, 1, 1, 2, 3, 4, 0, 0]);
        let mut expected = vec![0; 64];
        expected[9..13].copy_from_slice(&[1, 2, 3, 4]);
        expected[16..24].copy_from_slice(&[0x0807_0605u32.to_ne_bytes(); 2].concat());
        expected[24..28].fill(0xAB);
        assert_eq!(bytes(&b), expected);
    }
}
