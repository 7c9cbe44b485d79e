//! What the ids in steps mean.

use std::sync::Arc;

use super::compile::Kernel;
use super::memory::Block;
use crate::driver::{KernelMark, MemoryMark};
use crate::id::Slots;

/// The driver's allocations.
pub(super) type Blocks = Slots<MemoryMark, Arc<Block>>;
/// The driver's kernels.
pub(super) type Kernels = Slots<KernelMark, Kernel>;

/// What the ids in steps mean.
#[derive(Clone, Copy)]
pub(super) struct Tables<'a> {
    pub(super) blocks: &'a Blocks,
    pub(super) kernels: &'a Kernels,
}
