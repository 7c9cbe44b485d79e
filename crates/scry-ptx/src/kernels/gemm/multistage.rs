//! The cursor of a multistage `cp.async` pipeline: one stage is multiplied while others are copied.

use crate::typed::{Code, Var};

/// The current stages.
pub(super) struct StageCursor<'k> {
    k: &'k Code,
    stages: u32,
    /// Bytes per stage.
    pub stage_bytes: u32,
    /// Byte offset of the stage that is multiplied.
    pub multiplied: Var<'k, u32>,
    /// Byte offset of the stage that is copied: the last one at first.
    pub copied: Var<'k, u32>,
}

impl<'k> StageCursor<'k> {
    /// Returns the initial cursor for this many stages.
    pub(super) fn new(k: &'k Code, stages: u32, stage_bytes: u32) -> Self {
        let (multiplied, copied) = (k.var(0u32), k.var((stages - 1) * stage_bytes));
        Self { k, stages, stage_bytes, multiplied, copied }
    }

    /// Commits a group of copies, waits for the next stage's, and advances.
    pub(super) fn pass(&self) {
        self.k.cp_async_commit_group();
        for stage in [self.multiplied, self.copied] {
            let next = stage.get() + self.stage_bytes;
            let end = next.equals(self.stages * self.stage_bytes);
            stage.set(end.select(0u32, next));
        }
        self.k.cp_async_wait_group(self.stages - 2);
        self.k.sync();
    }
}
