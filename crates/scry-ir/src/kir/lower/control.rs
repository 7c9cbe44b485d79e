//! Control flow: loops, branches, and exits.

use naga::{Block, Expression, Statement};

use super::frame::{Expr, Targets};
use super::{Lower, MAX_DEPTH, too_complex};
use crate::ShaderError;
use crate::kir::{self, Label, Stmt};
use crate::wgsl::naga::handles;

impl<'m> Lower<'m> {
    /// Opens a block.
    pub(super) fn enter(&mut self) -> Result<(), ShaderError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!(
                "statements are nested more than {MAX_DEPTH} deep, those of called functions \
                 within those of their callers"
            );
            return Err(too_complex(message));
        }
        self.builder.open();
        Ok(())
    }

    /// Closes the innermost block.
    pub(super) fn exit(&mut self) -> kir::Block {
        self.depth -= 1;
        self.builder.close()
    }

    /// Adds an exit from a loop or scope.
    pub(super) fn leave(&mut self, label: Label) {
        let at = label.0 as usize;
        if self.leaves.len() <= at {
            self.leaves.resize(at + 1, 0);
        }
        self.leaves[at] += 1;
        self.builder.leave(label);
    }

    /// Opens a scope.
    pub(super) fn enter_scope(&mut self) -> Result<Label, ShaderError> {
        self.enter()?;
        Ok(self.builder.label())
    }

    /// Closes a scope. Returns false if it has no early exits: then its statements are appended to
    /// the enclosing block.
    pub(super) fn exit_scope(&mut self, label: Label) -> bool {
        let mut body = self.exit();
        let left = self.leaves.get(label.0 as usize).copied().unwrap_or(0);
        let needless = drop_needless(&mut body, label);
        if left > needless {
            self.builder.push(Stmt::Scope { label, body });
            return true;
        }
        body.into_iter().for_each(|stmt| self.builder.push(stmt));
        false
    }

    /// Lowers a `break` or `continue`.
    pub(super) fn leave_to(
        &mut self,
        which: impl FnOnce(&Targets) -> Option<Label>,
    ) -> Result<(), ShaderError> {
        let label = self.frame.targets.last().and_then(which);
        let label =
            label.ok_or_else(|| ShaderError::compiler("a jump that leads nowhere".into()))?;
        self.leave(label);
        Ok(())
    }

    /// Lowers a nested block.
    pub(super) fn nested(&mut self, block: &'m Block) -> Result<kir::Block, ShaderError> {
        self.enter()?;
        self.statements(block)?;
        Ok(self.exit())
    }

    /// Lowers a branch.
    pub(super) fn choose(
        &mut self,
        condition: Expr,
        then_block: &'m Block,
        else_block: &'m Block,
    ) -> Result<(), ShaderError> {
        if self.short_circuit(condition, then_block, else_block)? {
            return Ok(());
        }
        let condition = self.scalar(condition)?;
        let at = self.builder.position();
        let then_block = self.nested(then_block)?;
        let else_block = self.nested(else_block)?;
        self.builder.push(Stmt::If { condition, then_block, else_block, at });
        Ok(())
    }

    /// Lowers a loop. `continue` leaves a scope around its body, before the continuing block.
    pub(super) fn repeat(
        &mut self,
        body: &'m Block,
        continuing: &'m Block,
        break_if: Option<Expr>,
    ) -> Result<(), ShaderError> {
        let shared = self.used_in(continuing, break_if);
        let label = self.builder.label();
        self.enter()?;
        let next = self.enter_scope()?;
        self.share(&shared);
        self.frame.targets.push(Targets { leave: label, next: Some(next) });
        self.statements(body)?;
        self.frame.targets.pop();
        let hidden = self.exit_scope(next);
        self.unshare(&shared, hidden);
        self.statements(continuing)?;
        self.break_if(break_if, label)?;
        let body = self.exit();
        self.builder.push(Stmt::Loop { label, body, finite: !self.checked });
        Ok(())
    }

    fn break_if(&mut self, condition: Option<Expr>, label: Label) -> Result<(), ShaderError> {
        if let Some(condition) = condition {
            let condition = self.scalar(condition)?;
            self.builder.if_then(condition, |b| b.leave(label));
        }
        Ok(())
    }

    /// Returns the expressions that the continuing block uses.
    fn used_in(&self, continuing: &Block, break_if: Option<Expr>) -> Vec<Expr> {
        let mut used = vec![false; self.frame.function.expressions.len()];
        if let Some(condition) = break_if {
            used[condition.index()] = true;
        }
        if !continuing.is_empty() {
            let of = &self.frame.function.expressions;
            handles::each_statement(&mut continuing.clone(), &mut |statement| {
                if let Statement::Emit(range) = statement {
                    for handle in range.clone() {
                        let mut expression: Expression = of[handle].clone();
                        handles::in_expression(&mut expression, &mut |h| used[h.index()] = true);
                    }
                }
                handles::in_statement(statement, &mut |h| used[h.index()] = true);
            });
        }
        let mut found = Vec::new();
        for (handle, _) in self.frame.function.expressions.iter() {
            if used[handle.index()] && self.is_emitted(handle) {
                found.push(handle);
            }
        }
        found
    }

    fn is_emitted(&self, handle: Expr) -> bool {
        !matches!(
            self.frame.expression(handle),
            Expression::Literal(_)
                | Expression::Constant(_)
                | Expression::ZeroValue(_)
                | Expression::FunctionArgument(_)
                | Expression::GlobalVariable(_)
                | Expression::LocalVariable(_)
        )
    }
}

/// Removes redundant exits at the end of a scope; returns their number.
pub(super) fn drop_needless(block: &mut kir::Block, label: Label) -> u32 {
    match block.last_mut() {
        Some(Stmt::Leave(to)) if *to == label => {
            block.pop();
            1
        }
        Some(Stmt::If { then_block, else_block, .. }) => {
            drop_needless(then_block, label) + drop_needless(else_block, label)
        }
        Some(Stmt::Scope { body, .. }) => drop_needless(body, label),
        _ => 0,
    }
}
