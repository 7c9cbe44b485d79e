//! The largest allocation of a call.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

struct Watching;

#[global_allocator]
static ALLOCATOR: Watching = Watching;

// SAFETY: all calls are passed to the allocator of the system.
unsafe impl GlobalAlloc for Watching {
    // SAFETY: the contract is that of the trait.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the contract is that of the trait.
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    // SAFETY: the contract is that of the trait.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn note(size: usize) {
    // A thread that ends has no value left.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(size)));
}

/// Returns the result of a call, and the size of its largest allocation on this thread.
pub(crate) fn largest_allocation<T>(call: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.set(0);
    let result = call();
    (result, LARGEST.get())
}

#[test]
fn allocations_are_measured() {
    let (vector, largest) = largest_allocation(|| vec![0u8; 12345]);
    assert_eq!((vector.len(), largest), (12345, 12345));
}
