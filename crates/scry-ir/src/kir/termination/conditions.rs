//! The conditions under which a loop continues.

use super::Loop;
use crate::kir::{BinaryOp, Block, Inst, Label, Stmt, UnaryOp, Value, Var, any_stmt};

/// Maximum conditions of a loop that are examined: far more than people write, and few enough for a
/// hostile kernel.
const MAX_CONDITIONS: u32 = 64;

/// A condition, and the value that it must have for another iteration.
pub(super) type Condition = (Value, bool);

/// Conditions being collected.
struct Conditions {
    found: Vec<Condition>,
    /// Number of conditions that may still be examined.
    budget: u32,
}

impl Loop<'_> {
    /// Returns the conditions that must hold at the tests of each iteration.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let mut all = Conditions { found: Vec::new(), budget: MAX_CONDITIONS };
        for stmt in &self.certain {
            let Stmt::If { condition, then_block, else_block, .. } = stmt else { continue };
            let required = match (self.exits(then_block), self.exits(else_block)) {
                (true, false) => false,
                (false, true) => true,
                _ => continue,
            };
            self.imply(*condition, required, &mut all);
        }
        all.found
    }

    /// Returns whether each iteration certainly exits the loop.
    pub(super) fn always_exits(&self) -> bool {
        self.certain.iter().any(|stmt| self.stmt_exits(stmt))
    }

    /// Returns whether executing a block exits the loop, given that it leaves no scope around it.
    fn exits(&self, block: &Block) -> bool {
        block.last().is_some_and(|last| self.stmt_exits(last))
    }

    fn stmt_exits(&self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Leave(target) => self.is_outside(*target),
            Stmt::If { then_block, else_block, .. } => {
                self.exits(then_block) && self.exits(else_block)
            }
            Stmt::Scope { label, body } => {
                self.exits(body) && !any_stmt(body, &mut |stmt| *stmt == Stmt::Leave(*label))
            }
            _ => false,
        }
    }

    /// Returns whether a label is the loop's own, or that of a statement around it.
    fn is_outside(&self, target: Label) -> bool {
        !self.facts.labels.contains(&target)
    }

    /// Collects the conditions that hold if `condition` has the value `required`.
    fn imply(&self, condition: Value, required: bool, all: &mut Conditions) {
        let Some(budget) = all.budget.checked_sub(1) else { return };
        all.budget = budget;
        let is = |value, constant| {
            self.kir.constant(value).is_some_and(|it| it.bits == u64::from(constant))
        };
        match *self.kir.inst(condition) {
            Inst::Unary(UnaryOp::Not, inverse) => self.imply(inverse, !required, all),
            Inst::Binary(BinaryOp::And, a, b) if required => self.imply_both(a, b, required, all),
            Inst::Binary(BinaryOp::Or, a, b) if !required => self.imply_both(a, b, required, all),
            Inst::Select(choice, a, b) if is(b, !required) => {
                self.imply(choice, true, all);
                self.imply(a, required, all);
            }
            Inst::Select(choice, a, b) if is(a, !required) => {
                self.imply(choice, false, all);
                self.imply(b, required, all);
            }
            Inst::Get(var) => match self.facts.assignments(var) {
                1 => self.imply_assigned(var, condition, required, all),
                2 => self.imply_short_circuit(var, condition, required, all),
                _ => {}
            },
            _ => all.found.push((condition, required)),
        }
    }

    fn imply_both(&self, a: Value, b: Value, required: bool, all: &mut Conditions) {
        self.imply(a, required, all);
        self.imply(b, required, all);
    }

    /// As [`Self::imply`], for a variable that is assigned once.
    fn imply_assigned(&self, var: Var, get: Value, required: bool, all: &mut Conditions) {
        let assigned = self.certain.iter().enumerate().find_map(|(at, stmt)| match **stmt {
            Stmt::Set(set, value) if set == var => Some((at, value)),
            _ => None,
        });
        let Some((at, value)) = assigned else { return };
        if self.reads_after(at, get) {
            self.imply(value, required, all);
        }
    }

    /// Returns whether a value is computed after the certain statement at a position, in the same
    /// iteration.
    fn reads_after(&self, at: usize, get: Value) -> bool {
        self.certain[at + 1..].contains(&&Stmt::Let(get))
    }

    /// As [`Self::imply`], for the variable in which `a && b` or `a || b` is computed: a branch on
    /// `a` assigns `b`, or the constant that `a` implies.
    fn imply_short_circuit(&self, var: Var, get: Value, required: bool, all: &mut Conditions) {
        let assigned = |block: &Block| {
            block.iter().find_map(|stmt| match *stmt {
                Stmt::Set(set, value) if set == var => Some(value),
                _ => None,
            })
        };
        let branch = self.certain.iter().position(|stmt| match stmt {
            Stmt::If { then_block, else_block, .. } => {
                assigned(then_block).is_some() && assigned(else_block).is_some()
            }
            _ => false,
        });
        let Some(branch) = branch else { return };
        let Stmt::If { condition, then_block, else_block, .. } = self.certain[branch] else {
            return;
        };
        let (Some(a), Some(b)) = (assigned(then_block), assigned(else_block)) else { return };
        if !self.reads_after(branch, get) {
            return;
        }
        let is = |value| {
            self.kir.constant(value).is_some_and(|constant| constant.bits == u64::from(!required))
        };
        if is(b) {
            self.imply(*condition, true, all);
            self.imply(a, required, all);
        } else if is(a) {
            self.imply(*condition, false, all);
            self.imply(b, required, all);
        }
    }
}
