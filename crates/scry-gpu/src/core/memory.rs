//! Allocations that are freed on drop, and accounting of the memory in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::api::error::Result;
use crate::core::command::BufferRange;
use crate::core::driver::Driver;
use crate::core::handles::{MemoryId, MemoryKind};

/// An allocation of a driver. Submissions in flight keep it alive; it holds the driver but not the
/// [`Context`](crate::core::context::Context), because a submission must not keep a device alive.
pub(crate) struct Memory {
    driver: Arc<dyn Driver>,
    account: Arc<Account>,
    id: MemoryId,
    size: u64,
    /// Whether the content is initialised. `Device` memory starts uninitialised, and is zeroed in
    /// the first submission that uses it, unless the submission overwrites it entirely.
    initialised: AtomicBool,
}

impl Memory {
    /// Allocates at least `size` > 0 bytes.
    pub(crate) fn allocate(
        driver: &Arc<dyn Driver>,
        account: &Arc<Account>,
        kind: MemoryKind,
        size: u64,
        label: &str,
    ) -> Result<Arc<Self>> {
        // A multiple of 4 bytes, as fills require.
        let size = size.checked_next_multiple_of(4).unwrap_or(u64::MAX);
        let id = driver.allocate(kind, size, label)?;
        account.add(size);
        Ok(Arc::new(Self {
            driver: driver.clone(),
            account: account.clone(),
            id,
            size,
            initialised: AtomicBool::new(kind != MemoryKind::Device),
        }))
    }

    /// Returns the driver's handle.
    pub(crate) fn id(&self) -> MemoryId {
        self.id
    }

    /// Returns the whole range.
    pub(crate) fn whole(&self) -> BufferRange {
        BufferRange { memory: self.id, offset: 0, size: self.size }
    }

    /// Returns whether the content is initialised.
    pub(crate) fn is_initialised(&self) -> bool {
        self.initialised.load(Ordering::Acquire)
    }

    /// Marks the content as initialised from the latest submission on.
    pub(crate) fn mark_initialised(&self) {
        self.initialised.store(true, Ordering::Release);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.driver.free(self.id);
        self.account.remove(self.size);
    }
}

/// Counts the allocations of a device.
#[derive(Debug, Default)]
pub(crate) struct Account {
    allocations: AtomicUsize,
    bytes: AtomicU64,
    peak: AtomicU64,
}

/// Device and staging memory in use by a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Number of allocations.
    pub allocations: usize,
    /// Total bytes.
    pub bytes: u64,
    /// Maximum of the total bytes so far.
    pub peak_bytes: u64,
}

impl Account {
    fn add(&self, bytes: u64) {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        let total = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(total, Ordering::Relaxed);
    }

    fn remove(&self, bytes: u64) {
        self.allocations.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns the current usage.
    pub(crate) fn usage(&self) -> MemoryUsage {
        MemoryUsage {
            allocations: self.allocations.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            peak_bytes: self.peak.load(Ordering::Relaxed),
        }
    }
}
