//! Allocations, and how much of the machine's memory they may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use scry_cpu::{Memory, Span};

use super::info;
use crate::api::error::{GpuError, OutOfMemoryError, Result};
use crate::api::info::DeviceInfo;
use crate::backend::named_buffer;

/// Bytes from which an allocation is compared with what the system has left. To ask takes longer
/// than small allocations do.
const LARGE: u64 = 16 << 20;

/// How much is allocated.
pub(super) struct Heap {
    allocated: AtomicU64,
    /// Bytes that all allocations may have together.
    capacity: u64,
}

impl Heap {
    pub(super) fn new(info: &DeviceInfo) -> Arc<Self> {
        Arc::new(Self { allocated: AtomicU64::new(0), capacity: info.memory })
    }

    /// Allocates zeros.
    ///
    /// The system promises more memory than it has, and ends processes that believe it. So what is
    /// more than there is, is refused here.
    pub(super) fn allocate(
        self: &Arc<Self>,
        info: &DeviceInfo,
        size: u64,
        label: &str,
    ) -> Result<Block> {
        let available = if size < LARGE { None } else { info::available_memory() };
        let room = available.unwrap_or(u64::MAX);
        let share = self.take(size);
        let memory = usize::try_from(size).ok().filter(|_| size <= room && share.is_some());
        match (memory.and_then(Memory::new), share) {
            (Some(memory), Some(share)) => {
                Ok(Block { memory, untouched: AtomicBool::new(true), _share: share })
            }
            _ => Err(self.exhausted(info, size, label, available)),
        }
    }

    /// Bytes that are allocated.
    #[cfg(test)]
    pub(super) fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Relaxed)
    }

    /// Takes a share of the capacity, if there is so much left.
    fn take(self: &Arc<Self>, size: u64) -> Option<Share> {
        let more = |now: u64| now.checked_add(size).filter(|then| *then <= self.capacity);
        self.allocated.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Share { heap: self.clone(), size })
    }

    fn exhausted(
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
            requested: size,
            label: named_buffer(label),
            detail: format!(
                "this device's buffers hold {allocated} of {capacity} bytes of the machine's \
                 memory{system}"
            ),
            help: "drop buffers, or end other programs".to_owned(),
        })
    }
}

/// A part of the capacity.
struct Share {
    heap: Arc<Heap>,
    size: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.heap.allocated.fetch_sub(self.size, Ordering::Relaxed);
    }
}

/// An allocation.
pub(super) struct Block {
    memory: Memory,
    /// Nothing was ever written to it: it is as zero as the system gave it, and takes no memory.
    untouched: AtomicBool,
    _share: Share,
}

impl Block {
    /// Some of its bytes, if it has them.
    pub(super) fn span(&self, offset: u64, size: u64) -> Option<Span> {
        self.memory.span(usize::try_from(offset).ok()?, usize::try_from(size).ok()?)
    }

    /// Says that something will be written to it.
    pub(super) fn touch(&self) {
        self.untouched.store(false, Ordering::Relaxed);
    }

    /// Whether all of its bytes are zero because nothing was ever written.
    pub(super) fn is_untouched(&self) -> bool {
        self.untouched.load(Ordering::Relaxed)
    }
}
