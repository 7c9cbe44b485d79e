//! Replacements of values, and queries of control flow and assignments, for several passes.

use super::super::{Block, Inst, Label, Stmt, Value, Var};
use std::ops::Range;

/// Replacements of values; a replacement is visible wherever the value is.
pub(super) struct ValueMap(Vec<Value>);

impl ValueMap {
    /// Creates the identity map of `count` values.
    pub fn new(count: usize) -> Self {
        Self((0..count as u32).map(Value).collect())
    }

    /// Returns the replacement of a value, or the value itself.
    pub fn get(&self, value: Value) -> Value {
        self.0.get(value.index()).copied().unwrap_or(value)
    }

    /// Sets the replacement of a value.
    pub fn replace(&mut self, value: Value, replacement: Value) {
        self.0[value.index()] = replacement;
    }

    /// Replaces the operands of an instruction.
    pub fn rename(&self, inst: &mut Inst) {
        inst.for_each_operand_mut(|value| *value = self.get(*value));
    }

    /// Replaces the operands of a statement.
    pub fn rename_stmt(&self, stmt: &mut Stmt) {
        stmt.for_each_operand_mut(|value| *value = self.get(*value));
    }
}

/// Returns whether control never reaches the end of a block, because its last statement exits.
pub(super) fn always_exits(block: &Block) -> bool {
    match block.last() {
        Some(Stmt::Break(_)) => true,
        Some(Stmt::If { then_block, else_block, .. }) => {
            always_exits(then_block) && always_exits(else_block)
        }
        _ => false,
    }
}

/// Returns whether a statement may exit from an enclosing loop or scope, or from the kernel.
pub(super) fn may_exit(stmt: &Stmt) -> bool {
    may_exit_beyond(stmt, &mut Vec::new())
}

/// Returns whether a statement may exit from a loop or scope other than those with `inner` labels.
fn may_exit_beyond(stmt: &Stmt, inner: &mut Vec<Label>) -> bool {
    match stmt {
        Stmt::Break(label) => !inner.contains(label),
        Stmt::Loop { label, body, .. } | Stmt::Scope { label, body } => {
            inner.push(*label);
            let exits = body.iter().any(|stmt| may_exit_beyond(stmt, inner));
            inner.pop();
            exits
        }
        _ => stmt.blocks().flatten().any(|stmt| may_exit_beyond(stmt, inner)),
    }
}

/// The variables that each loop assigns.
pub(super) struct LoopAssignments {
    /// The variables of all assignments of the kernel, in program order.
    order: Vec<Var>,
    /// The range in `order` of each loop, by label.
    loops: Vec<Range<usize>>,
    /// Pairs of a variable and a position in `order`, sorted.
    positions: Vec<(Var, usize)>,
}

impl LoopAssignments {
    /// Collects the assignments of a kernel.
    pub fn new(body: &Block) -> Self {
        let mut found = Self { order: Vec::new(), loops: Vec::new(), positions: Vec::new() };
        found.block(body);
        let positions = found.order.iter().zip(0..).map(|(var, at)| (*var, at));
        found.positions = positions.collect();
        found.positions.sort_unstable();
        found
    }

    fn block(&mut self, block: &Block) {
        for stmt in block {
            let start = self.order.len();
            stmt.blocks().for_each(|block| self.block(block));
            match stmt {
                Stmt::Set(var, _) => self.order.push(*var),
                Stmt::Loop { label, .. } => {
                    let at = label.0 as usize;
                    if self.loops.len() <= at {
                        self.loops.resize(at + 1, 0..0);
                    }
                    self.loops[at] = start..self.order.len();
                }
                _ => {}
            }
        }
    }

    /// Returns the variables that a loop assigns, once per assignment.
    pub fn in_loop(&self, label: Label) -> &[Var] {
        self.loops.get(label.0 as usize).map_or(&[], |range| &self.order[range.clone()])
    }

    /// Returns the variables that a loop assigns, without duplicates, sorted.
    pub fn distinct_in(&self, label: Label) -> Vec<Var> {
        let mut vars = self.in_loop(label).to_vec();
        vars.sort_unstable();
        vars.dedup();
        vars
    }

    /// Returns the number of assignments of a variable in a loop.
    pub fn count(&self, label: Label, var: Var) -> usize {
        let Some(range) = self.loops.get(label.0 as usize) else { return 0 };
        let first = |at: usize| self.positions.partition_point(|pair| *pair < (var, at));
        first(range.end) - first(range.start)
    }
}
