//! Relaxed atomic accesses to blocks of elements that other threads may access, by 16-byte vectors
//! where the CPU supports it.

use std::cell::Cell;

use crate::access::AtomicBits;
use crate::lanes::{BLOCK, Block};

/// Size of the vector accesses that CPUs with AVX guarantee to be atomic, if they are aligned to
/// it: see Intel, Software Developer's Manual, volume 3A, 9.1.1, and AMD, Architecture Programmer's
/// Manual, volume 2, 7.3.2. An atomic access to a vector is one to each of its elements.
const VECTOR: usize = 16;

/// Returns whether elements at an address are accessed by vectors.
#[inline(always)]
fn can_use_vectors(at: *const u8, avx: bool) -> bool {
    cfg!(all(target_arch = "x86_64", not(miri))) && avx && at.addr().is_multiple_of(VECTOR)
}

/// Reads the elements of a block.
///
/// # Safety
/// `from` points to a block of aligned elements. Other threads access these by atomics of their
/// size, or do not write them. If `avx` is set, the processor has AVX.
#[inline(always)]
pub(crate) unsafe fn load<B: AtomicBits>(from: *mut u8, block: &Block<B>, avx: bool) {
    if can_use_vectors(from, avx) {
        for at in (0..size_of::<[B; BLOCK]>()).step_by(VECTOR) {
            // SAFETY: as the caller promises. `block` has as many bytes, and belongs to this
            // thread.
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
/// As of [`load`]. In addition, other threads read the elements by atomics only.
#[inline(always)]
pub(crate) unsafe fn store<B: AtomicBits>(to: *mut u8, block: &Block<B>, avx: bool) {
    if can_use_vectors(to, avx) {
        for at in (0..size_of::<[B; BLOCK]>()).step_by(VECTOR) {
            // SAFETY: as the caller promises. `block` has as many bytes, and belongs to this
            // thread.
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
    /// The processor has AVX. `from` points to 16 initialised bytes, and is aligned to 16 bytes.
    /// `to` points to 16 bytes that only this thread accesses.
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
    /// As of [`load`], with `from` and `to` exchanged.
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

/// Placeholders for other processors and for Miri, where [`can_use_vectors`] returns false.
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
