//! Branches that contain only an exit.

use scry_ir::kir::Value;

use super::analysis::exit_branches::{Leaving, copy, parts};
use super::emitter::{Emitter, Home};
use crate::code::{Exit, Step};

impl Emitter<'_> {
    /// Compiles an exit branch.
    pub(super) fn drop_lanes(&mut self, condition: Value, leaving: &Leaving<'_>) {
        let parts = parts(self.kir, self.uniformity, leaving, condition);
        let parts = parts.filter(|_| self.live_ranges.fused[condition.index()]);
        let (all, condition) = match parts {
            Some([all, some]) => (Some(self.uniform(all)), some),
            None => (None, condition),
        };
        let number = self.number(condition);
        let condition = self.lanes(condition).start;
        let mut keep = Vec::new();
        for pair in leaving.kept.chunks(2) {
            if let Some((to, from)) = copy(self.kir, self.uniformity, pair)
                && let (Home::Lanes(to), Home::Scalar(from)) = (self.var(to), self.var(from))
            {
                keep.push((to, from));
            }
        }
        let (masks, keep) = (self.left_masks(leaving.label), keep.into());
        let step = self.steps();
        let exit = Exit { number, condition, all, flip: leaving.when.into(), masks, keep };
        self.push(Step::Drop { exit: Box::new(exit), none: 0 });
        self.dies(step);
        // The branch has two blocks and some statements in the numbering of `liveness`.
        (0..leaving.kept.len() + 3).for_each(|_| self.advance());
    }
}
