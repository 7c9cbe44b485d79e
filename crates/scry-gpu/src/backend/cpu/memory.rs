//! Allocations of host memory, limited by the machine's memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use scry_cpu::{Memory, MemoryRange};

use super::info;
use crate::api::error::{GpuError, OutOfMemoryError, Result};
use crate::api::info::DeviceInfo;
use crate::backend::describe_buffer;

/// Allocations of at least this many bytes are checked against the system's available memory. The
/// query takes longer than a small allocation.
const QUERY_THRESHOLD: u64 = 16 << 20;

/// Counts the bytes of all allocations.
pub(super) struct Heap {
    allocated: AtomicU64,
    /// Maximum bytes of all allocations together.
    capacity: u64,
}

impl Heap {
    pub(super) fn new(info: &DeviceInfo) -> Arc<Self> {
        Arc::new(Self { allocated: AtomicU64::new(0), capacity: info.memory })
    }

    /// Allocates zeroed memory.
    ///
    /// Allocations larger than the available memory fail: the system overcommits memory, and would
    /// kill the process when it uses too much of it.
    pub(super) fn allocate(
        self: &Arc<Self>,
        info: &DeviceInfo,
        size: u64,
        label: &str,
    ) -> Result<Block> {
        let available = if size < QUERY_THRESHOLD { None } else { info::available_memory() };
        let max_size = available.unwrap_or(u64::MAX);
        let reservation = self.reserve(size);
        let memory =
            usize::try_from(size).ok().filter(|_| size <= max_size && reservation.is_some());
        match (memory.and_then(Memory::new), reservation) {
            (Some(memory), Some(reservation)) => {
                Ok(Block { memory, untouched: AtomicBool::new(true), _reservation: reservation })
            }
            (_, reservation) => {
                // The error reports the bytes that buffers hold.
                drop(reservation);
                Err(self.out_of_memory(info, size, label, available))
            }
        }
    }

    /// Returns the allocated bytes.
    #[cfg(test)]
    pub(super) fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Relaxed)
    }

    /// Reserves a part of the capacity; `None` if too little is free.
    fn reserve(self: &Arc<Self>, size: u64) -> Option<Reservation> {
        let add = |bytes: u64| bytes.checked_add(size).filter(|sum| *sum <= self.capacity);
        self.allocated.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Reservation { heap: self.clone(), size })
    }

    fn out_of_memory(
        &self,
        info: &DeviceInfo,
        size: u64,
        label: &str,
        available: Option<u64>,
    ) -> GpuError {
        let (allocated, capacity) = (self.allocated.load(Ordering::Relaxed), self.capacity);
        let system = available.map_or(String::new(), |available| {
            format!(", and the system has {available} bytes available")
        });
        GpuError::OutOfMemory(OutOfMemoryError {
            function: None,
            device: info.name.clone(),
            requested: Some(size),
            label: describe_buffer(label),
            detail: format!(
                "this device's buffers hold {allocated} of {capacity} bytes of the machine's \
                 memory{system}"
            ),
            help: "drop buffers, or end other programs".to_owned(),
        })
    }
}

/// A reserved part of the capacity, released by the drop.
struct Reservation {
    heap: Arc<Heap>,
    size: u64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.heap.allocated.fetch_sub(self.size, Ordering::Relaxed);
    }
}

/// An allocation.
pub(super) struct Block {
    memory: Memory,
    /// Whether it was never written: it reads as zero and, if it is large, has no physical pages.
    untouched: AtomicBool,
    _reservation: Reservation,
}

impl Block {
    /// Returns a range of the allocation; `None` if out of bounds.
    pub(super) fn range(&self, offset: u64, size: u64) -> Option<MemoryRange> {
        self.memory.range(usize::try_from(offset).ok()?, usize::try_from(size).ok()?)
    }

    /// Marks the allocation as written.
    pub(super) fn touch(&self) {
        self.untouched.store(false, Ordering::Relaxed);
    }

    /// Returns whether the allocation was never written, so that all bytes are zero.
    pub(super) fn is_untouched(&self) -> bool {
        self.untouched.load(Ordering::Relaxed)
    }
}
