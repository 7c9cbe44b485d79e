//! Replacements of values, and properties of statements that several passes need.

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

    /// Replaces `value` by `by`.
    pub fn replace(&mut self, value: Value, by: Value) {
        self.0[value.index()] = by;
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

/// Returns whether the last statement of a block never completes.
pub(super) fn diverges(block: &Block) -> bool {
    match block.last() {
        Some(Stmt::Leave(_)) => true,
        Some(Stmt::If { then_block, else_block, .. }) => {
            diverges(then_block) && diverges(else_block)
        }
        _ => false,
    }
}

/// Returns whether a statement may exit from an enclosing construct.
pub(super) fn escapes(stmt: &Stmt) -> bool {
    escapes_all(stmt, &mut Vec::new())
}

fn escapes_all(stmt: &Stmt, inner: &mut Vec<Label>) -> bool {
    match stmt {
        Stmt::Leave(label) => !inner.contains(label),
        Stmt::Loop { label, body, .. } | Stmt::Scope { label, body } => {
            inner.push(*label);
            let escapes = body.iter().any(|stmt| escapes_all(stmt, inner));
            inner.pop();
            escapes
        }
        _ => stmt.blocks().flatten().any(|stmt| escapes_all(stmt, inner)),
    }
}

/// The variables that each loop assigns.
pub(super) struct Assigned {
    order: Vec<Var>,
    /// By label.
    loops: Vec<Range<usize>>,
    /// Pairs of a variable and its position in `order`, sorted.
    places: Vec<(Var, usize)>,
}

impl Assigned {
    /// Collects the assignments of a kernel.
    pub fn new(body: &Block) -> Self {
        let mut assigned = Self { order: Vec::new(), loops: Vec::new(), places: Vec::new() };
        assigned.block(body);
        let places = assigned.order.iter().zip(0..).map(|(var, at)| (*var, at));
        assigned.places = places.collect();
        assigned.places.sort_unstable();
        assigned
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
    pub fn within(&self, label: Label) -> &[Var] {
        self.loops.get(label.0 as usize).map_or(&[], |range| &self.order[range.clone()])
    }

    /// Returns the variables that a loop assigns, without duplicates, sorted.
    pub fn within_once(&self, label: Label) -> Vec<Var> {
        let mut vars = self.within(label).to_vec();
        vars.sort_unstable();
        vars.dedup();
        vars
    }

    /// Returns the number of assignments of a variable in a loop.
    pub fn count(&self, label: Label, var: Var) -> usize {
        let Some(range) = self.loops.get(label.0 as usize) else { return 0 };
        let below = |at: usize| self.places.partition_point(|place| *place < (var, at));
        below(range.end) - below(range.start)
    }
}
