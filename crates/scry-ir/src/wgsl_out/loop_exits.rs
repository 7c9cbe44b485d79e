//! Finds the comparisons that may decide whether a loop ends.

use crate::kir::{Block, Inst, Kir, Label, Stmt, Type, Value};

/// Returns for each value (by [`Value::index`]) whether the exit from a loop may depend on it
/// directly: whether it is the condition of a branch that leaves the innermost loop around it, or
/// an operand of such a condition that is a `bool`. A `bool` in a variable counts as one.
pub(super) fn exit_conditions(kir: &Kir) -> Vec<bool> {
    let mut walk = Walk { kir, scopes: None, found: vec![false; kir.values.len()] };
    walk.block(&kir.body);
    walk.found
}

struct Walk<'a> {
    kir: &'a Kir,
    /// Labels of the scopes within the innermost loop; `None` outside of loops.
    scopes: Option<Vec<Label>>,
    found: Vec<bool>,
}

impl Walk<'_> {
    /// Returns the targets of the exits from a block.
    fn block(&mut self, block: &Block) -> Vec<Label> {
        block.iter().flat_map(|stmt| self.statement(stmt)).collect()
    }

    fn statement(&mut self, stmt: &Stmt) -> Vec<Label> {
        match stmt {
            Stmt::Break(label) => vec![*label],
            Stmt::Set(_, value) if self.kir.ty(*value) == Type::Bool => {
                self.mark(*value);
                Vec::new()
            }
            Stmt::If { condition, then_block, else_block, .. } => {
                let mut targets = self.block(then_block);
                targets.extend(self.block(else_block));
                let scopes = self.scopes.as_deref();
                let is_exit = |label: &Label| scopes.is_some_and(|it| !it.contains(label));
                if targets.iter().any(is_exit) {
                    self.mark(*condition);
                }
                targets
            }
            Stmt::Scope { label, body } => {
                if let Some(scopes) = &mut self.scopes {
                    scopes.push(*label);
                }
                let targets = self.block(body);
                if let Some(scopes) = &mut self.scopes {
                    scopes.pop();
                }
                without(targets, *label)
            }
            Stmt::Loop { label, body, .. } => {
                let outer = self.scopes.replace(Vec::new());
                let targets = self.block(body);
                self.scopes = outer;
                without(targets, *label)
            }
            _ => Vec::new(),
        }
    }

    fn mark(&mut self, value: Value) {
        if std::mem::replace(&mut self.found[value.index()], true) {
            return;
        }
        let inst: &Inst = self.kir.inst(value);
        inst.for_each_operand(|operand| {
            if self.kir.ty(operand) == Type::Bool {
                self.mark(operand);
            }
        });
    }
}

fn without(mut targets: Vec<Label>, label: Label) -> Vec<Label> {
    targets.retain(|target| *target != label);
    targets
}
