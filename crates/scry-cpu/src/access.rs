//! Accesses of kernels to bindings.
//!
//! Several threads run the same kernel, and a racy kernel may access one element from two threads
//! at the same time. Accesses are therefore relaxed atomics of the element's size. These compile to
//! ordinary moves, but the compiler does not vectorise them. Where no other thread writes,
//! contiguous elements are copied in bulk.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::MemoryRange;
use crate::lanes::{BLOCK, Bits, Block, IsaLevel};
use crate::strided::Plain;
use crate::vector_atomics;

/// The memory of a binding, or of the immediates, of a running kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region {
    start: *mut u8,
    /// Size in bytes.
    size: u64,
    /// Size in bytes of the prefix that is accessed non-atomically: no other thread writes what
    /// this thread accesses there.
    plain: u64,
    /// Whether the ISA level is above the baseline. Then the CPU has AVX.
    avx: bool,
}

/// Lane bits that can be accessed atomically.
pub(crate) trait AtomicBits: Bits {
    /// The atomic of this width.
    type Atomic;

    /// Returns the element at an address.
    ///
    /// # Safety
    /// The address is aligned, and valid during `'a`. Meanwhile, other threads access the element
    /// atomically, or do not write it.
    unsafe fn atomic<'a>(at: *mut Self) -> &'a Self::Atomic;

    /// Loads with relaxed ordering.
    fn load(from: &Self::Atomic) -> Self;

    /// Stores with relaxed ordering.
    fn store(to: &Self::Atomic, value: Self);

    /// Replaces `old` by `new`, and returns `old`. Otherwise returns the current content; this may
    /// fail spuriously.
    fn replace(at: &Self::Atomic, old: Self, new: Self) -> Result<Self, Self>;
}

macro_rules! shared {
    ($($bits:ty: $atomic:ty),*) => {$(
        impl AtomicBits for $bits {
            type Atomic = $atomic;

            // SAFETY: the requirements are those of the trait.
            #[inline(always)]
            unsafe fn atomic<'a>(at: *mut Self) -> &'a $atomic {
                // SAFETY: as the caller promises.
                unsafe { <$atomic>::from_ptr(at) }
            }

            #[inline(always)]
            fn load(from: &$atomic) -> Self {
                from.load(Relaxed)
            }

            #[inline(always)]
            fn store(to: &$atomic, value: Self) {
                to.store(value, Relaxed);
            }

            #[inline(always)]
            fn replace(at: &$atomic, old: Self, new: Self) -> Result<Self, Self> {
                at.compare_exchange_weak(old, new, Relaxed, Relaxed)
            }
        }
    )*};
}

shared!(u8: AtomicU8, u16: AtomicU16, u32: AtomicU32, u64: AtomicU64);

/// Prefetches data of the next batch of workgroups: a batch reads too few contiguous bytes for the
/// hardware prefetcher.
#[inline(always)]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint for any address; every CPU of the target supports it.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

impl Region {
    /// Creates a binding. `plain` is the size of the prefix in which no other thread writes what
    /// this thread accesses.
    ///
    /// # Safety
    /// While the region exists, the range's memory is alive, only regions of the same launch access
    /// it, and no other thread writes the elements of the plain prefix that this one accesses.
    pub(crate) unsafe fn new(range: MemoryRange, plain: u64, isa: IsaLevel) -> Self {
        Self { start: range.start, size: range.size as u64, plain, avx: isa != IsaLevel::Base }
    }

    /// Returns the size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the prefix that is accessed non-atomically.
    #[inline(always)]
    pub(crate) fn plain(&self) -> Plain<'_> {
        // SAFETY: as the caller of `new` promised.
        unsafe { Plain::new(self.start, self.plain) }
    }

    /// Returns an element, if it is in bounds and aligned.
    #[inline(always)]
    fn element<B: AtomicBits>(&self, byte: u64) -> Option<&B::Atomic> {
        let size = size_of::<B>() as u64;
        let in_bounds = byte.checked_add(size).is_some_and(|end| end <= self.size);
        // SAFETY: the element is in bounds, ranges are aligned to 16 bytes, and others access it
        // atomically or do not write it.
        (in_bounds && byte.is_multiple_of(size))
            .then(|| unsafe { B::atomic(self.start.add(byte as usize).cast()) })
    }

    /// Loads one element; returns zero if it is out of bounds or unaligned.
    #[inline(always)]
    pub(crate) fn get<B: AtomicBits>(&self, byte: u64) -> B {
        self.element::<B>(byte).map_or(B::ZERO, B::load)
    }

    /// Stores one element, unless it is out of bounds or unaligned.
    #[inline(always)]
    pub(crate) fn set<B: AtomicBits>(&self, byte: u64, value: B) {
        if let Some(to) = self.element::<B>(byte) {
            B::store(to, value);
        }
    }

    /// Modifies one element atomically, and returns the previous content; zero if it is out of
    /// bounds or unaligned.
    #[inline(always)]
    pub(crate) fn update<B: AtomicBits>(&self, byte: u64, change: impl Fn(B) -> B) -> B {
        let Some(at) = self.element::<B>(byte) else { return B::ZERO };
        let mut old = B::load(at);
        loop {
            match B::replace(at, old, change(old)) {
                Ok(replaced) => return replaced,
                Err(found) => old = found,
            }
        }
    }

    /// Returns whether a block of elements, `step` bytes apart from `byte` on, is in the
    /// non-atomic prefix.
    #[inline(always)]
    fn is_plain<B: Bits>(&self, byte: u64, step: u64) -> bool {
        let size = size_of::<B>() as u64;
        byte.is_multiple_of(size)
            && step.is_multiple_of(size)
            // Larger steps could overflow the product below.
            && step < 1 << 32
            && byte
                .checked_add(step * (BLOCK as u64 - 1) + size)
                .is_some_and(|end| end <= self.plain)
    }

    /// As [`Self::get_run`], one element at a time.
    #[inline(never)]
    fn get_each<B: AtomicBits>(&self, byte: u64, step: u64) -> [B; BLOCK] {
        let mut values = [B::ZERO; BLOCK];
        for (lane, value) in values.iter_mut().enumerate() {
            *value = self.get(byte.wrapping_add(step.wrapping_mul(lane as u64)));
        }
        values
    }

    /// As [`Self::set_run`], one element at a time.
    #[inline(never)]
    fn set_each<B: AtomicBits>(&self, byte: u64, step: u64, values: [B; BLOCK]) {
        for (lane, value) in values.into_iter().enumerate() {
            self.set(byte.wrapping_add(step.wrapping_mul(lane as u64)), value);
        }
    }

    /// Reads a block of elements `step` bytes apart. Those out of bounds read as zero.
    #[inline(always)]
    pub(crate) fn get_run<B: AtomicBits>(&self, byte: u64, step: u64) -> [B; BLOCK] {
        let contiguous = step == size_of::<B>() as u64;
        if !contiguous || !Self::blocks_fit::<B>(self.plain, byte, 1) {
            let block = Cell::new([B::ZERO; BLOCK]);
            if contiguous && self.get_blocks_atomic(byte, std::slice::from_ref(&block)) {
                return block.get();
            }
            return self.get_strided(byte, step);
        }
        // SAFETY: the elements are in bounds, and no other thread writes them meanwhile.
        unsafe { self.start.add(byte as usize).cast::<[B; BLOCK]>().read_unaligned() }
    }

    /// As [`Self::get_run`], for elements that are not contiguous or not in bounds.
    #[inline(never)]
    fn get_strided<B: AtomicBits>(&self, byte: u64, step: u64) -> [B; BLOCK] {
        if !self.is_plain::<B>(byte, step) {
            return self.get_each(byte, step);
        }
        let mut values = [B::ZERO; BLOCK];
        // SAFETY: the elements are in bounds, and no other thread writes them meanwhile.
        unsafe {
            let from = self.start.add(byte as usize);
            for (lane, value) in values.iter_mut().enumerate() {
                *value = from.add(step as usize * lane).cast::<B>().read();
            }
        }
        values
    }

    /// Writes a block of elements `step` bytes apart, except those out of bounds.
    #[inline(always)]
    pub(crate) fn set_run<B: AtomicBits>(&self, byte: u64, step: u64, values: [B; BLOCK]) {
        let contiguous = step == size_of::<B>() as u64;
        if !contiguous || !Self::blocks_fit::<B>(self.plain, byte, 1) {
            let block = Cell::new(values);
            if !contiguous || !self.set_blocks_atomic(byte, std::slice::from_ref(&block)) {
                self.set_strided(byte, step, values);
            }
            return;
        }
        // SAFETY: the elements are in bounds, and no other thread accesses them meanwhile.
        unsafe { self.start.add(byte as usize).cast::<[B; BLOCK]>().write_unaligned(values) }
    }

    /// As [`Self::set_run`], for elements that are not contiguous or not in bounds.
    #[inline(never)]
    fn set_strided<B: AtomicBits>(&self, byte: u64, step: u64, values: [B; BLOCK]) {
        if !self.is_plain::<B>(byte, step) {
            return self.set_each(byte, step, values);
        }
        // SAFETY: the elements are in bounds, and no other thread accesses them meanwhile.
        unsafe {
            let to = self.start.add(byte as usize);
            for (lane, value) in values.into_iter().enumerate() {
                to.add(step as usize * lane).cast::<B>().write(value);
            }
        }
    }

    /// Returns whether `blocks` blocks of aligned elements from `byte` on are below the byte `end`.
    #[inline(always)]
    fn blocks_fit<B: Bits>(end: u64, byte: u64, blocks: usize) -> bool {
        let size = size_of::<B>() as u64;
        let bytes = size * (blocks * BLOCK) as u64;
        byte.is_multiple_of(size) && byte.checked_add(bytes).is_some_and(|last| last <= end)
    }

    /// Loads contiguous elements into whole blocks, if all are in bounds; returns whether they are.
    #[inline(always)]
    pub(crate) fn get_blocks<B: AtomicBits>(&self, byte: u64, to: &[Block<B>]) -> bool {
        if !Self::blocks_fit::<B>(self.plain, byte, to.len()) {
            return self.get_blocks_atomic(byte, to);
        }
        // SAFETY: the elements are in bounds, and no other thread writes them meanwhile.
        unsafe {
            let from = self.start.add(byte as usize).cast::<[B; BLOCK]>();
            for (nth, block) in to.iter().enumerate() {
                prefetch(from.wrapping_add(to.len() + nth));
                block.set(from.add(nth).read_unaligned());
            }
        }
        true
    }

    /// As [`Self::get_blocks`], if other threads may write.
    #[inline(never)]
    fn get_blocks_atomic<B: AtomicBits>(&self, byte: u64, to: &[Block<B>]) -> bool {
        let in_bounds = Self::blocks_fit::<B>(self.size, byte, to.len());
        if in_bounds {
            for (nth, block) in (0..).zip(to) {
                // SAFETY: the elements are in bounds and aligned, as ranges are, and others access
                // them atomically.
                unsafe {
                    let from = self.start.add(byte as usize + nth * size_of::<[B; BLOCK]>());
                    vector_atomics::load(from, block, self.avx);
                }
            }
        }
        in_bounds
    }

    /// Stores whole blocks to contiguous elements, if all are in bounds; returns whether they are.
    #[inline(always)]
    pub(crate) fn set_blocks<B: AtomicBits>(&self, byte: u64, from: &[Block<B>]) -> bool {
        if !Self::blocks_fit::<B>(self.plain, byte, from.len()) {
            return self.set_blocks_atomic(byte, from);
        }
        // SAFETY: the elements are in bounds, and no other thread accesses them meanwhile.
        unsafe {
            let to = self.start.add(byte as usize).cast::<[B; BLOCK]>();
            for (nth, block) in from.iter().enumerate() {
                to.add(nth).write_unaligned(block.get());
            }
        }
        true
    }

    /// As [`Self::set_blocks`], if other threads may read or write.
    #[inline(never)]
    fn set_blocks_atomic<B: AtomicBits>(&self, byte: u64, from: &[Block<B>]) -> bool {
        let in_bounds = Self::blocks_fit::<B>(self.size, byte, from.len());
        if in_bounds {
            for (nth, block) in (0..).zip(from) {
                // SAFETY: as in `get_blocks_atomic`.
                unsafe {
                    let to = self.start.add(byte as usize + nth * size_of::<[B; BLOCK]>());
                    vector_atomics::store(to, block, self.avx);
                }
            }
        }
        in_bounds
    }

    /// Stores the active lanes of a block to contiguous elements, if all are in bounds; returns
    /// whether they are.
    #[inline(always)]
    pub(crate) fn set_active<B: AtomicBits>(
        &self,
        byte: u64,
        values: [B; BLOCK],
        active: [u8; BLOCK],
    ) -> bool {
        let in_bounds = Self::blocks_fit::<B>(self.size, byte, 1);
        if in_bounds {
            for lane in (0..BLOCK).filter(|lane| active[*lane] != 0) {
                // SAFETY: as in `get_blocks_atomic`.
                let to = unsafe { B::atomic(self.start.add(byte as usize).cast::<B>().add(lane)) };
                B::store(to, values[lane]);
            }
        }
        in_bounds
    }
}

/// Loads a block of contiguous elements of one thread's memory, from any element on; `None` if some
/// are out of bounds.
#[inline(always)]
pub(crate) fn get_contiguous<B: Bits>(memory: &[Block<B>], element: u64) -> Option<[B; BLOCK]> {
    let last = (memory.len() * BLOCK).checked_sub(BLOCK)?;
    let start = usize::try_from(element).ok().filter(|start| *start <= last)?;
    // SAFETY: blocks are contiguous, and cells have the layout of their contents; the elements are
    // in bounds, and cells are not shared between threads.
    Some(unsafe { memory.as_ptr().cast::<B>().add(start).cast::<[B; BLOCK]>().read_unaligned() })
}

/// Stores a block of contiguous elements from any element on, if all are in bounds; returns whether
/// they are.
#[inline(always)]
pub(crate) fn set_contiguous<B: Bits>(
    memory: &[Block<B>],
    element: u64,
    values: [B; BLOCK],
) -> bool {
    let last = (memory.len() * BLOCK).checked_sub(BLOCK);
    let start =
        usize::try_from(element).ok().filter(|start| last.is_some_and(|last| *start <= last));
    let Some(start) = start else { return false };
    // SAFETY: as in `get_contiguous`; cells may be written through shared references.
    unsafe {
        let to = memory.as_ptr().cast::<B>().cast_mut().add(start);
        to.cast::<[B; BLOCK]>().write_unaligned(values);
    }
    true
}
