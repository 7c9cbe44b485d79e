//! Relaxed atomic accesses to blocks of elements that other threads may access, by 16-byte vectors
//! where the CPU supports it.

use std::cell::Cell;

use crate::access::Shared;
use crate::lanes::{BLOCK, Block};

/// Size of the vector accesses that CPUs with AVX guarantee to be atomic, if they are aligned to
/// it: see Intel, Software Developer's Manual, volume 3A, 9.1.1, and AMD, Architecture Programmer's
/// Manual, volume 2, 7.3.2. An atomic access to a vector is one to each of its elements.
const VECTOR: usize = 16;

/// Whether elements at an address are accessed by vectors.
#[inline(always)]
fn by_vectors(at: *const u8, avx: bool) -> bool {
    cfg!(all(target_arch = "x86_64", not(miri))) && avx && at.addr().is_multiple_of(VECTOR)
}

/// Reads the elements of a block.
///
/// # Safety
/// There is a block of elements at the address, aligned as they are, which other threads access by
/// atomics of their size or do not write. With `avx` the processor has AVX.
#[inline(always)]
pub(crate) unsafe fn load<B: Shared>(from: *mut u8, block: &Block<B>, avx: bool) {
    if by_vectors(from, avx) {
        for at in (0..size_of::<[B; BLOCK]>()).step_by(VECTOR) {
            // SAFETY: as the caller promises; a block has this many bytes, of this thread alone.
            unsafe { vector::load(from.add(at), block.as_ptr().cast::<u8>().add(at)) };
        }
        return;
    }
    let lanes: &Cell<[B]> = block;
    for (nth, lane) in lanes.as_slice_of_cells().iter().enumerate() {
        // SAFETY: as the caller promises.
        lane.set(B::load(unsafe { B::atomic(from.cast::<B>().add(nth)) }));
    }
}

/// Writes the elements of a block.
///
/// # Safety
/// As of [`load`], but other threads must not read other than by atomics either.
#[inline(always)]
pub(crate) unsafe fn store<B: Shared>(to: *mut u8, block: &Block<B>, avx: bool) {
    if by_vectors(to, avx) {
        for at in (0..size_of::<[B; BLOCK]>()).step_by(VECTOR) {
            // SAFETY: as the caller promises; a block has this many bytes, of this thread alone.
            unsafe { vector::store(to.add(at), block.as_ptr().cast::<u8>().add(at)) };
        }
        return;
    }
    for (nth, value) in block.get().into_iter().enumerate() {
        // SAFETY: as the caller promises.
        B::store(unsafe { B::atomic(to.cast::<B>().add(nth)) }, value);
    }
}

/// Vector accesses by inline assembly: Rust has no atomics of this size, and non-atomic accesses
/// would be data races.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod vector {
    use std::arch::asm;
    use std::arch::x86_64::__m128i;

    /// Loads a vector atomically.
    ///
    /// # Safety
    /// The processor has AVX. `from` is aligned to 16 bytes, which are there and initialised; the
    /// bytes at `to` are this thread's.
    #[inline(always)]
    pub(super) unsafe fn load(from: *mut u8, to: *mut u8) {
        let value: __m128i;
        // SAFETY: as the caller promises. To the language this is a relaxed load of each element.
        unsafe {
            asm!("vmovdqa {value}, xmmword ptr [{from}]", from = in(reg) from,
                 value = lateout(xmm_reg) value, options(nostack, preserves_flags, readonly));
            to.cast::<__m128i>().write_unaligned(value);
        }
    }

    /// Stores a vector atomically.
    ///
    /// # Safety
    /// As of [`load`], the other way round.
    #[inline(always)]
    pub(super) unsafe fn store(to: *mut u8, from: *mut u8) {
        // SAFETY: as the caller promises. To the language this is a relaxed store of each element.
        unsafe {
            let value = from.cast::<__m128i>().read_unaligned();
            asm!("vmovdqa xmmword ptr [{to}], {value}", to = in(reg) to, value = in(xmm_reg) value,
                 options(nostack, preserves_flags));
        }
    }
}

/// Other processors, where this is never called.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod vector {
    /// # Safety
    /// Never called.
    pub(super) unsafe fn load(_: *mut u8, _: *mut u8) {
        unreachable!("vectors are for processors with AVX");
    }

    /// # Safety
    /// Never called.
    pub(super) unsafe fn store(_: *mut u8, _: *mut u8) {
        unreachable!("vectors are for processors with AVX");
    }
}
