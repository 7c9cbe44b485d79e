//! Reusable readback memory for async downloads.
//!
//! A future owns its block until its download is done. A future that is never polled again
//! therefore holds a block, but no slot of the staging ring that other threads may wait for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::memory::Memory;

/// Bytes of a block, and maximum bytes of a chunk of a download.
pub(crate) const BLOCK_SIZE: usize = 16 << 20;

/// Maximum number of idle blocks.
const MAX_IDLE: usize = 3;

/// The idle blocks.
#[derive(Default)]
pub(crate) struct ReadbackBlocks(Mutex<Vec<Arc<Memory>>>);

impl ReadbackBlocks {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Memory>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns an idle block, if there is one.
    pub(crate) fn take(&self) -> Option<Arc<Memory>> {
        self.lock().pop()
    }

    /// Keeps a block that neither the device nor the host uses any more. Memory of other sizes and
    /// blocks beyond the maximum are dropped.
    pub(crate) fn put(&self, memory: Arc<Memory>) {
        if memory.whole().size == BLOCK_SIZE as u64 {
            let mut blocks = self.lock();
            if blocks.len() < MAX_IDLE {
                blocks.push(memory);
            }
        }
    }
}
