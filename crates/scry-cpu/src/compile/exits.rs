//! Branches that contain only an exit.

use scry_ir::kir::Value;

use super::analysis::exit_branches::{ExitBranch, match_copy, split_condition};
use super::emitter::{Emitter, Location};
use crate::code::{Exit, Step};

impl Emitter<'_> {
    /// Compiles an exit branch: lanes whose condition has the value `branch.when` leave.
    pub(super) fn emit_exit_branch(&mut self, condition: Value, branch: &ExitBranch<'_>) {
        let split = split_condition(self.kir, self.uniformity, branch, condition);
        let split = split.filter(|_| self.live_ranges.fused[condition.index()]);
        let (all, condition) = match split {
            Some([all, some]) => (Some(self.uniform_scalar(all)), some),
            None => (None, condition),
        };
        let number = self.condition_number(condition);
        let condition = self.lanes(condition).start;
        let mut copies = Vec::new();
        for pair in branch.copies.chunks(2) {
            if let Some((to, from)) = match_copy(self.kir, self.uniformity, pair)
                && let (Location::Lanes(to), Location::Scalar(from)) =
                    (self.var_location(to), self.var_location(from))
            {
                copies.push((to, from));
            }
        }
        let (masks, copies) = (self.exited_masks(branch.label), copies.into());
        let step = self.next_step();
        let exit = Exit { number, condition, all, leave_if: branch.when.into(), masks, copies };
        self.push(Step::Exit { exit: Box::new(exit), if_empty: 0 });
        self.jump_if_empty(step);
        // `liveness` also numbers the copies, the `Break`, and the ends of the two blocks.
        (0..branch.copies.len() + 3).for_each(|_| self.advance());
    }
}
