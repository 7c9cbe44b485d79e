//! Conditions that may be uniform at run time. The executor records the value of a uniform
//! condition by number; its lanes are computed only for users that do not check this record.

use scry_ir::kir::Value;

use super::analysis::conditions::joined;
use super::emitter::{Emitter, Location};
use crate::code::{Condition, Step};

impl Emitter<'_> {
    /// The number of a condition that may be uniform.
    pub(super) fn number(&self, value: Value) -> Option<u32> {
        self.conditions.numbers[value.index()]
    }

    /// Returns a condition with the register of its lanes.
    pub(super) fn condition(&self, value: Value, lanes: u32) -> Option<Condition> {
        let index = value.index();
        let fill = self.conditions.checked_uses[index] < self.live_ranges.uses[index];
        self.number(value).map(|number| Condition { number, lanes, fill })
    }

    /// Compiles a conjunction or disjunction of conditions. Returns whether it is one.
    pub(super) fn join(&mut self, value: Value) -> bool {
        let Some((and, [a, b])) = joined(self.kir, value) else { return false };
        if self.number(value).is_none() {
            return false;
        }
        let Location::Lanes(d) = self.define(value) else { return false };
        let [of_a, of_b] = [a, b].map(|operand| self.lanes(operand).start);
        let (Some(d), Some(a), Some(b)) =
            (self.condition(value, d), self.condition(a, of_a), self.condition(b, of_b))
        else {
            return false;
        };
        self.push(Step::Logical { and, d, a, b });
        true
    }
}
