//! Readback memory for downloads of tasks, kept for later ones.
//!
//! A task owns its block until its download is done. So a future that is never polled again keeps a
//! block, but no slot of a staging ring that threads wait for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::memory::Memory;

/// Bytes of a block, and maximum bytes of a chunk of a download.
pub(crate) const BLOCK: usize = 16 << 20;

/// Blocks that are kept without a use.
const MAX_IDLE: usize = 3;

/// The blocks that no download uses.
#[derive(Default)]
pub(crate) struct ReadbackBlocks(Mutex<Vec<Arc<Memory>>>);

impl ReadbackBlocks {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Memory>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a block if there is one.
    pub(crate) fn take(&self) -> Option<Arc<Memory>> {
        self.lock().pop()
    }

    /// Keeps a block that neither the device nor the host uses any more. Other memory is dropped,
    /// as are blocks beyond the maximum.
    pub(crate) fn put(&self, memory: Arc<Memory>) {
        if memory.whole().size == BLOCK as u64 {
            let mut blocks = self.lock();
            if blocks.len() < MAX_IDLE {
                blocks.push(memory);
            }
        }
    }
}
