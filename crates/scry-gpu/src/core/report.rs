//! What launches report in buffers of their own: that they did not run to their end.
//!
//! A kernel may have one more binding than its interface has, after all others: four words that
//! are zero before each launch. A launch that sets the first word has failed. The core gives each
//! launch its words, has them copied to the host with the submission, and looks at them as soon as
//! that is done: the wait for it, or for what follows, fails with [`GpuError::Kernel`].

use std::sync::Arc;

use crate::api::error::Result;
use crate::core::command::{BufferRange, Command};
use crate::core::driver::FailureReport;
use crate::core::memory::Memory;

/// Bytes that a launch reports in.
pub(crate) const BYTES: u64 = 16;

/// Launches that share an allocation.
pub(super) const SLOTS: usize = 64;

/// The launches of a list that report, in order.
#[derive(Default)]
pub(crate) struct Reports {
    pub(super) blocks: Vec<Arc<Memory>>,
    pub(super) launches: Vec<Reporting>,
}

/// A launch that reports.
#[derive(Clone)]
pub(crate) struct Reporting {
    /// The entry point.
    pub kernel: String,
    /// The name of its source.
    pub label: Option<Arc<str>>,
    pub meaning: Arc<FailureReport>,
    /// Position in the list of commands.
    pub at: usize,
}

impl Reports {
    /// How many launches report.
    pub(crate) fn len(&self) -> usize {
        self.launches.len()
    }

    /// Forgets the launches after the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.launches.truncate(len);
    }

    /// Reserves the report of a launch, at a multiple of `alignment` bytes; `allocate` allocates
    /// the given number of bytes on the device.
    pub(crate) fn add(
        &mut self,
        launch: Reporting,
        alignment: u64,
        allocate: impl FnOnce(u64) -> Result<Arc<Memory>>,
    ) -> Result<(Arc<Memory>, BufferRange)> {
        let (block, slot) = (self.launches.len() / SLOTS, self.launches.len() % SLOTS);
        let stride = BYTES.max(alignment);
        if block == self.blocks.len() {
            let memory = allocate(stride * SLOTS as u64)?;
            // Filled by each submission.
            memory.set_defined();
            self.blocks.push(memory);
        }
        self.launches.push(launch);
        let memory = self.blocks[block].clone();
        let span = BufferRange { memory: memory.id(), offset: slot as u64 * stride, size: BYTES };
        Ok((memory, span))
    }

    /// What zeroes the words, before the launches.
    pub(crate) fn fills(&self) -> impl Iterator<Item = Command> + '_ {
        let used = self.launches.len().div_ceil(SLOTS);
        let blocks = self.blocks.iter().take(used);
        blocks.map(|block| Command::Fill { dst: block.whole(), pattern: 0 })
    }
}
