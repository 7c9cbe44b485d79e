//! Conditions that may be uniform at run time. The executor records the value of a uniform
//! condition by number; its lanes are computed only for users that do not check this record.

use scry_ir::kir::Value;

use super::analysis::conditions::logical_operands;
use super::emitter::{Emitter, Location};
use crate::code::{Condition, Step};

impl Emitter<'_> {
    /// Returns the number of a condition that may be uniform at run time; `None` for other values.
    pub(super) fn condition_number(&self, value: Value) -> Option<u32> {
        self.conditions.numbers[value.index()]
    }

    /// Returns a value as a condition whose lanes are in the register `lanes`; `None` if it is not
    /// one that may be uniform at run time.
    pub(super) fn condition(&self, value: Value, lanes: u32) -> Option<Condition> {
        let index = value.index();
        let fill = self.conditions.checked_uses[index] < self.live_ranges.uses[index];
        self.condition_number(value).map(|number| Condition { number, lanes, fill })
    }

    /// Compiles a conjunction or disjunction of conditions. Returns false, and emits nothing, for
    /// other values.
    pub(super) fn logical(&mut self, value: Value) -> bool {
        let Some((and, [a, b])) = logical_operands(self.kir, value) else { return false };
        if self.condition_number(value).is_none() {
            return false;
        }
        let Location::Lanes(d) = self.define(value) else { return false };
        let [a_lanes, b_lanes] = [a, b].map(|operand| self.lanes(operand).start);
        let (Some(d), Some(a), Some(b)) =
            (self.condition(value, d), self.condition(a, a_lanes), self.condition(b, b_lanes))
        else {
            return false;
        };
        self.push(Step::Logical { and, d, a, b });
        true
    }
}
