//! The conditions under which a loop continues.

use super::Loop;
use crate::kir::{BinaryOp, Block, Inst, Label, Stmt, UnaryOp, Value, Var, any_stmt};

/// Maximum number of conditions of a loop that are examined: far more than programmers write.
/// Bounds the time that a hostile kernel can cost.
const MAX_CONDITIONS: u32 = 64;

/// A condition, and the value that it must have for the loop to continue.
pub(super) type Condition = (Value, bool);

/// Conditions being collected.
struct Conditions {
    found: Vec<Condition>,
    /// Number of conditions that may still be examined.
    budget: u32,
}

impl Loop<'_> {
    /// Returns the conditions for the loop to continue: each iteration in which one of them fails
    /// exits the loop.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let mut conditions = Conditions { found: Vec::new(), budget: MAX_CONDITIONS };
        for stmt in &self.certain {
            let Stmt::If { condition, then_block, else_block, .. } = stmt else { continue };
            let required = match (self.exits(then_block), self.exits(else_block)) {
                (true, false) => false,
                (false, true) => true,
                _ => continue,
            };
            self.collect_implied(*condition, required, &mut conditions);
        }
        conditions.found
    }

    /// Returns whether every iteration exits the loop.
    pub(super) fn always_exits(&self) -> bool {
        self.certain.iter().any(|stmt| self.stmt_exits(stmt))
    }

    /// Returns whether executing a block exits the loop, given that it exits no scope around the
    /// block.
    fn exits(&self, block: &Block) -> bool {
        block.last().is_some_and(|last| self.stmt_exits(last))
    }

    fn stmt_exits(&self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Break(target) => self.is_outside(*target),
            Stmt::If { then_block, else_block, .. } => {
                self.exits(then_block) && self.exits(else_block)
            }
            Stmt::Scope { label, body } => {
                self.exits(body) && !any_stmt(body, &mut |stmt| *stmt == Stmt::Break(*label))
            }
            _ => false,
        }
    }

    /// Returns whether a label is the loop's own, or that of a statement around it.
    fn is_outside(&self, target: Label) -> bool {
        !self.facts.labels.contains(&target)
    }

    /// Collects conditions that follow from `condition` having the value `required`.
    fn collect_implied(&self, condition: Value, required: bool, conditions: &mut Conditions) {
        let Some(budget) = conditions.budget.checked_sub(1) else { return };
        conditions.budget = budget;
        let is_constant = |value, bool| {
            self.kir.constant(value).is_some_and(|constant| constant.bits == u64::from(bool))
        };
        match *self.kir.inst(condition) {
            Inst::Unary(UnaryOp::Not, inverse) => {
                self.collect_implied(inverse, !required, conditions)
            }
            Inst::Binary(BinaryOp::And, a, b) if required => {
                self.collect_both(a, b, required, conditions)
            }
            Inst::Binary(BinaryOp::Or, a, b) if !required => {
                self.collect_both(a, b, required, conditions)
            }
            // A select whose other result is excluded.
            Inst::Select(choice, a, b) if is_constant(b, !required) => {
                self.collect_implied(choice, true, conditions);
                self.collect_implied(a, required, conditions);
            }
            Inst::Select(choice, a, b) if is_constant(a, !required) => {
                self.collect_implied(choice, false, conditions);
                self.collect_implied(b, required, conditions);
            }
            Inst::Get(var) => match self.facts.assignments(var) {
                1 => self.collect_assigned(var, condition, required, conditions),
                2 => self.collect_short_circuit(var, condition, required, conditions),
                _ => {}
            },
            _ => conditions.found.push((condition, required)),
        }
    }

    fn collect_both(&self, a: Value, b: Value, required: bool, conditions: &mut Conditions) {
        self.collect_implied(a, required, conditions);
        self.collect_implied(b, required, conditions);
    }

    /// As [`Self::collect_implied`], for the value `get` of a variable that the loop assigns once.
    fn collect_assigned(&self, var: Var, get: Value, required: bool, conditions: &mut Conditions) {
        let assigned = self.certain.iter().enumerate().find_map(|(index, stmt)| match **stmt {
            Stmt::Set(set, value) if set == var => Some((index, value)),
            _ => None,
        });
        let Some((index, value)) = assigned else { return };
        if self.is_read_after(index, get) {
            self.collect_implied(value, required, conditions);
        }
    }

    /// Returns whether a value is computed in every iteration after the statement `certain[index]`.
    fn is_read_after(&self, index: usize, get: Value) -> bool {
        self.certain[index + 1..].contains(&&Stmt::Let(get))
    }

    /// As [`Self::collect_implied`], for the value `get` of the variable in which `a && b` or `a ||
    /// b` is computed: a branch on `a` assigns `b`, or the constant that `a` implies.
    fn collect_short_circuit(
        &self,
        var: Var,
        get: Value,
        required: bool,
        conditions: &mut Conditions,
    ) {
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
        if !self.is_read_after(branch, get) {
            return;
        }
        // Whether a branch assigns the other constant, and so is not executed.
        let is_excluded = |value| {
            self.kir.constant(value).is_some_and(|constant| constant.bits == u64::from(!required))
        };
        if is_excluded(b) {
            self.collect_implied(*condition, true, conditions);
            self.collect_implied(a, required, conditions);
        } else if is_excluded(a) {
            self.collect_implied(*condition, false, conditions);
            self.collect_implied(b, required, conditions);
        }
    }
}
