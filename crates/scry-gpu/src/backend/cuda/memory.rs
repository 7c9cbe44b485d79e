//! Allocations: device memory from a pool, and pinned memory of the host.

use std::ptr::NonNull;
use std::sync::Arc;

use super::gpu::Gpu;
use super::types::DevicePtr;
use crate::driver::MemoryKind;

/// Memory that kernels and the host can name by address.
pub(super) struct Block {
    /// Its address on the device, which pinned memory of the host has too; a multiple of 256.
    pub(super) address: DevicePtr,
    /// Bytes asked for. There are whole words at least.
    pub(super) size: u64,
    pub(super) kind: MemoryKind,
    /// Its address on the host, if it lies there.
    pub(super) host: Option<NonNull<u8>>,
    pub(super) gpu: Arc<Gpu>,
}

// SAFETY: the memory is the block's own, and the driver's functions take any thread.
unsafe impl Send for Block {}
// SAFETY: what is read and written when is the core's to order.
unsafe impl Sync for Block {}
