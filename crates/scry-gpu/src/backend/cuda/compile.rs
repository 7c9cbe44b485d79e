//! Kernels: PTX, compiled by the driver.

use std::sync::Arc;

use scry_ptx::Param;

use super::gpu::Gpu;
use super::types::{Function, Module};

/// A compiled kernel.
pub(super) struct Kernel {
    pub(super) function: Function,
    /// What a launch passes, in order.
    pub(super) params: Vec<Param>,
    /// Threads of a block along x, y and z.
    pub(super) block: [u32; 3],
    /// Bytes of shared memory that a launch asks for.
    pub(super) dynamic_shared: u32,
    /// Bindings of a dispatch; those of a folded kernel have the fold parameters last.
    pub(super) bindings: usize,
    /// Bytes of the immediate block.
    pub(super) immediates: usize,
    pub(super) module: Module,
    pub(super) gpu: Arc<Gpu>,
}
