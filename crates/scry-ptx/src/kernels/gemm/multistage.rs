//! The cursor of a multistage `cp.async` pipeline: one stage is multiplied while others are copied.

use crate::typed::{KernelBuilder, Var};

/// The current stages.
pub(super) struct StageCursor<'k> {
    k: &'k KernelBuilder,
    stages: u32,
    /// Bytes per stage.
    pub stage_bytes: u32,
    /// Byte offset of the stage that is multiplied.
    pub compute_stage: Var<'k, u32>,
    /// Byte offset of the stage that is copied to: initially the last one.
    pub copy_stage: Var<'k, u32>,
}

impl<'k> StageCursor<'k> {
    /// Returns the initial cursor for this many stages.
    pub(super) fn new(k: &'k KernelBuilder, stages: u32, stage_bytes: u32) -> Self {
        let (compute_stage, copy_stage) = (k.var(0u32), k.var((stages - 1) * stage_bytes));
        Self { k, stages, stage_bytes, compute_stage, copy_stage }
    }

    /// Commits a group of copies, advances to the next stages, and waits until the copies of the
    /// next stage to multiply have arrived.
    pub(super) fn advance(&self) {
        self.k.cp_async_commit_group();
        for stage in [self.compute_stage, self.copy_stage] {
            let next = stage.get() + self.stage_bytes;
            let end = next.eq(self.stages * self.stage_bytes);
            stage.set(end.select(0u32, next));
        }
        self.k.cp_async_wait_group(self.stages - 2);
        self.k.sync();
    }
}
