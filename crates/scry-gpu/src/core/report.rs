//! Failure reports: words in memory that a launch sets if it did not complete.
//!
//! A kernel may have one more binding than its interface, after all others: four words that are
//! zero before each launch. A launch that sets the first word has failed. The core reserves the
//! report of each launch, copies it to the host with the submission, and checks it once the
//! submission is done: the wait for the submission, or for later work that depends on it, then
//! fails with [`GpuError::Kernel`].

use std::sync::Arc;

use crate::api::error::Result;
use crate::core::command::{BufferRange, Command};
use crate::core::driver::FailureReport;
use crate::core::memory::Memory;

/// Bytes of a launch's report.
pub(crate) const REPORT_BYTES: u64 = 16;

/// Number of reports in an allocation.
pub(super) const REPORTS_PER_BLOCK: usize = 64;

/// The launches of a list that have a report, in order.
#[derive(Clone, Default)]
pub(crate) struct Reports {
    pub(super) blocks: Vec<Arc<Memory>>,
    pub(super) launches: Vec<ReportingLaunch>,
}

/// A launch that has a report.
#[derive(Clone)]
pub(crate) struct ReportingLaunch {
    /// The entry point.
    pub kernel: String,
    /// The label of its source.
    pub label: Option<Arc<str>>,
    /// What the report means.
    pub failure_report: Arc<FailureReport>,
    /// Index in the list of commands.
    pub command_index: usize,
}

impl Reports {
    /// Returns the number of launches that have a report.
    pub(crate) fn len(&self) -> usize {
        self.launches.len()
    }

    /// Removes the launches after the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.launches.truncate(len);
    }

    /// Reserves the report of a launch at a multiple of `alignment` bytes; `allocate` allocates
    /// device memory of the given size.
    pub(crate) fn add(
        &mut self,
        launch: ReportingLaunch,
        alignment: u64,
        allocate: impl FnOnce(u64) -> Result<Arc<Memory>>,
    ) -> Result<(Arc<Memory>, BufferRange)> {
        let index = self.launches.len();
        let (block, slot) = (index / REPORTS_PER_BLOCK, index % REPORTS_PER_BLOCK);
        let stride = REPORT_BYTES.max(alignment);
        if block == self.blocks.len() {
            let memory = allocate(stride * REPORTS_PER_BLOCK as u64)?;
            // Each submission zeroes the reports.
            memory.mark_initialised();
            self.blocks.push(memory);
        }
        self.launches.push(launch);
        let memory = self.blocks[block].clone();
        let offset = slot as u64 * stride;
        let range = BufferRange { memory: memory.id(), offset, size: REPORT_BYTES };
        Ok((memory, range))
    }

    /// Returns the fills that zero the reports, to be executed before the launches.
    pub(crate) fn fills(&self) -> impl Iterator<Item = Command> + '_ {
        let used = self.launches.len().div_ceil(REPORTS_PER_BLOCK);
        let blocks = self.blocks.iter().take(used);
        blocks.map(|block| Command::Fill { dst: block.whole(), pattern: 0 })
    }
}
