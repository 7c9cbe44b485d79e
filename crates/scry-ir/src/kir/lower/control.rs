//! Control flow: loops, branches, and exits.

use naga::{Block, Expression, Statement};

use super::frame::{Expr, Targets};
use super::{Lower, MAX_BLOCK_DEPTH, too_complex};
use crate::ShaderError;
use crate::kir::{self, Label, Stmt};
use crate::wgsl::naga::handles;

impl<'m> Lower<'m> {
    /// Opens a block.
    pub(super) fn begin_block(&mut self) -> Result<(), ShaderError> {
        self.block_depth += 1;
        if self.block_depth > MAX_BLOCK_DEPTH {
            let message = format!(
                "statements are nested more than {MAX_BLOCK_DEPTH} deep, including those of \
                 inlined functions"
            );
            return Err(too_complex(message));
        }
        self.builder.open();
        Ok(())
    }

    /// Closes the innermost block.
    pub(super) fn end_block(&mut self) -> kir::Block {
        self.block_depth -= 1;
        self.builder.close()
    }

    /// Adds an exit from a loop or scope.
    pub(super) fn emit_break(&mut self, label: Label) {
        let index = label.0 as usize;
        if self.exits.len() <= index {
            self.exits.resize(index + 1, 0);
        }
        self.exits[index] += 1;
        self.builder.break_to(label);
    }

    /// Opens a scope.
    pub(super) fn begin_scope(&mut self) -> Result<Label, ShaderError> {
        self.begin_block()?;
        Ok(self.builder.label())
    }

    /// Closes a scope. If it has no early exits, its statements are appended to the enclosing block
    /// instead. Returns whether a scope was added.
    pub(super) fn end_scope(&mut self, label: Label) -> bool {
        let mut body = self.end_block();
        let exits = self.exits.get(label.0 as usize).copied().unwrap_or(0);
        let redundant = drop_redundant_exits(&mut body, label);
        if exits > redundant {
            self.builder.push(Stmt::Scope { label, body });
            return true;
        }
        body.into_iter().for_each(|stmt| self.builder.push(stmt));
        false
    }

    /// Lowers a `break` or `continue`.
    pub(super) fn lower_jump(
        &mut self,
        target: impl FnOnce(&Targets) -> Option<Label>,
    ) -> Result<(), ShaderError> {
        let label = self.frame.targets.last().and_then(target);
        let label = label.ok_or_else(|| {
            ShaderError::compiler("a `break` or `continue` without a target".into())
        })?;
        self.emit_break(label);
        Ok(())
    }

    /// Lowers a nested block.
    pub(super) fn lower_block(&mut self, block: &'m Block) -> Result<kir::Block, ShaderError> {
        self.begin_block()?;
        self.statements(block)?;
        Ok(self.end_block())
    }

    /// Lowers a branch.
    pub(super) fn lower_if(
        &mut self,
        condition: Expr,
        then_block: &'m Block,
        else_block: &'m Block,
    ) -> Result<(), ShaderError> {
        if self.lower_short_circuit(condition, then_block, else_block)? {
            return Ok(());
        }
        let condition = self.scalar(condition)?;
        let at = self.builder.position();
        let then_block = self.lower_block(then_block)?;
        let else_block = self.lower_block(else_block)?;
        self.builder.push(Stmt::If { condition, then_block, else_block, at });
        Ok(())
    }

    /// Lowers a loop. The body is in a scope, which `continue` exits; the continuing block follows
    /// the scope.
    pub(super) fn lower_loop(
        &mut self,
        body: &'m Block,
        continuing: &'m Block,
        break_if: Option<Expr>,
    ) -> Result<(), ShaderError> {
        let used = self.expressions_used_in(continuing, break_if);
        let label = self.builder.label();
        self.begin_block()?;
        let body_scope = self.begin_scope()?;
        self.save_on_evaluation(&used);
        self.frame.targets.push(Targets { break_to: label, continue_to: Some(body_scope) });
        self.statements(body)?;
        self.frame.targets.pop();
        // Values of the body may not be visible after a scope: `continuing` reads variables
        // instead.
        let is_scope = self.end_scope(body_scope);
        self.restore_saved(&used, is_scope);
        self.statements(continuing)?;
        self.lower_break_if(break_if, label)?;
        let body = self.end_block();
        // A trusted kernel claims that its loops end; those of a checked one are proven later.
        self.builder.push(Stmt::Loop { label, body, finite: !self.checked });
        Ok(())
    }

    fn lower_break_if(&mut self, condition: Option<Expr>, label: Label) -> Result<(), ShaderError> {
        if let Some(condition) = condition {
            let condition = self.scalar(condition)?;
            self.builder.if_then(condition, |b| b.break_to(label));
        }
        Ok(())
    }

    /// Returns the expressions that a continuing block and its `break if` use.
    fn expressions_used_in(&self, continuing: &Block, break_if: Option<Expr>) -> Vec<Expr> {
        let mut used = vec![false; self.frame.function.expressions.len()];
        if let Some(condition) = break_if {
            used[condition.index()] = true;
        }
        if !continuing.is_empty() {
            let expressions = &self.frame.function.expressions;
            handles::each_statement(&mut continuing.clone(), &mut |statement| {
                if let Statement::Emit(range) = statement {
                    for handle in range.clone() {
                        let mut expression: Expression = expressions[handle].clone();
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

    /// Returns whether a statement evaluates the expression, so that its value is visible only
    /// from there on. Other expressions are evaluated wherever they are used.
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
pub(super) fn drop_redundant_exits(block: &mut kir::Block, label: Label) -> u32 {
    match block.last_mut() {
        Some(Stmt::Break(to)) if *to == label => {
            block.pop();
            1
        }
        Some(Stmt::If { then_block, else_block, .. }) => {
            drop_redundant_exits(then_block, label) + drop_redundant_exits(else_block, label)
        }
        Some(Stmt::Scope { body, .. }) => drop_redundant_exits(body, label),
        _ => 0,
    }
}
