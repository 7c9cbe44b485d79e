//! Statements and structured control flow.

use super::Emitter;
use super::levels::LevelKind;
use crate::ShaderError;
use crate::kir::{
    Block, Inst, Label, Stmt, UnrolledLoop, Value, any_stmt, exit_condition, needs_barriers,
    unrolled_loop,
};

/// The parts of a loop's body for a WGSL loop with `continuing`: `continue` leaves the scope.
struct ContinuingLoop<'a> {
    before: &'a [Stmt],
    scope: Label,
    body: &'a Block,
    continuing: &'a [Stmt],
    /// The condition of the `break if` at the end of `continuing`.
    break_if: Option<Value>,
}

impl Emitter<'_> {
    pub(super) fn statements(&mut self, block: &[Stmt]) -> Result<(), ShaderError> {
        for (i, stmt) in block.iter().enumerate() {
            if let Some(at) = self.kir.line_info(stmt) {
                self.body.set_source_line(at.line);
            }
            if let Stmt::Let(value) = stmt
                && let Inst::WorkgroupUniformLoad { place, count } = *self.kir.inst(*value)
            {
                let needed = needs_barriers(self.kir, block, i);
                self.uniform_load(*value, &place, count.into(), needed)?;
            } else {
                self.statement(stmt, &block[..i])?;
            }
        }
        Ok(())
    }

    fn statement(&mut self, stmt: &Stmt, before: &[Stmt]) -> Result<(), ShaderError> {
        match stmt {
            Stmt::Let(value) => self.value(*value),
            Stmt::Set(var, value) => {
                let line = format!("{} = {};", self.variable(var.0), self.operand(*value));
                self.body.line(line);
                Ok(())
            }
            Stmt::Store { place, values, .. } => self.store(place, values),
            Stmt::MatrixStore { .. } => {
                Err(ShaderError::compiler("Kir::to_wgsl: a store of a matrix".into()))
            }
            Stmt::If { condition, then_block, else_block, .. } => {
                self.if_else(*condition, then_block, else_block)
            }
            Stmt::Loop { label, body, .. } => {
                if let Some(unrolled) = unrolled_loop(self.kir, before, *label, body) {
                    self.unrollable.extend(exit_condition(self.kir, *label, body));
                    if self.hides_loop_bounds && self.can_unroll(*label, body, &unrolled) {
                        return self.unroll(body, &unrolled);
                    }
                }
                self.loop_statement(*label, body)
            }
            Stmt::Scope { label, body } => self.scope(*label, body),
            Stmt::Break(label) => {
                self.emit_break(*label);
                Ok(())
            }
            Stmt::Barrier(..) => {
                self.barrier();
                Ok(())
            }
        }
    }

    fn if_else(
        &mut self,
        condition: Value,
        then_block: &Block,
        else_block: &Block,
    ) -> Result<(), ShaderError> {
        let condition = self.operand(condition);
        if then_block.is_empty() {
            self.body.open(format!("if !{condition} {{"));
            self.statements(else_block)?;
            self.body.close("}");
            return Ok(());
        }
        self.body.open(format!("if {condition} {{"));
        self.statements(then_block)?;
        if !else_block.is_empty() {
            self.body.close("} else {");
            self.body.indent();
            self.statements(else_block)?;
        }
        self.body.close("}");
        Ok(())
    }

    fn scope(&mut self, label: Label, body: &Block) -> Result<(), ShaderError> {
        self.begin_level(label, LevelKind::Switch);
        self.body.open("switch 0u { default {");
        self.statements(body)?;
        self.body.close("} }");
        self.end_level();
        Ok(())
    }

    /// Returns whether a short loop can be written as its iterations: without another exit, and
    /// without barriers, since `barrier_order.rs` counts each once.
    fn can_unroll(&self, label: Label, body: &Block, unrolled: &UnrolledLoop) -> bool {
        let mut prevents = |stmt: &Stmt| match stmt {
            Stmt::Break(to) => *to == label,
            Stmt::Barrier(..) => true,
            Stmt::Let(value) => {
                matches!(self.kir.inst(*value), Inst::WorkgroupUniformLoad { .. })
            }
            _ => false,
        };
        let (before, after) = (&body[..unrolled.exit_branch], &body[unrolled.exit_branch + 1..]);
        !any_stmt(before, &mut prevents) && !any_stmt(after, &mut prevents)
    }

    /// Writes the iterations of a loop, without the exit test: compilers from which loop bounds are
    /// hidden would not unroll it.
    fn unroll(&mut self, body: &Block, unrolled: &UnrolledLoop) -> Result<(), ShaderError> {
        for _ in 0..unrolled.trip_count {
            self.body.open("{");
            self.statements(&body[..unrolled.exit_branch])?;
            self.statements(&body[unrolled.exit_branch + 1..])?;
            self.body.close("}");
        }
        Ok(())
    }

    fn loop_statement(&mut self, label: Label, body: &Block) -> Result<(), ShaderError> {
        self.begin_level(label, LevelKind::Loop);
        self.body.open("loop {");
        match split_at_scope(label, body) {
            Some(parts) => self.continuing_loop(&parts)?,
            None => self.statements(body)?,
        }
        self.body.close("}");
        self.end_level();
        Ok(())
    }

    fn continuing_loop(&mut self, parts: &ContinuingLoop<'_>) -> Result<(), ShaderError> {
        self.statements(parts.before)?;
        self.begin_level(parts.scope, LevelKind::Continue);
        self.statements(parts.body)?;
        self.end_level();
        if !parts.continuing.is_empty() || parts.break_if.is_some() {
            self.body.open("continuing {");
            self.statements(parts.continuing)?;
            if let Some(condition) = parts.break_if {
                self.mark_loop_exit();
                let condition = self.operand(condition);
                self.body.line(format!("break if {condition};"));
            }
            self.body.close("}");
        }
        Ok(())
    }
}

/// Splits a loop's body at its last scope, if the scope can become the part before `continuing`: if
/// no statement after the scope leaves anything, except for an exit from the loop at the very end.
/// A scope that does not leave the loop stays a `switch`, since control flow is uniform again after
/// a `switch`.
fn split_at_scope(label: Label, body: &Block) -> Option<ContinuingLoop<'_>> {
    let at = body.iter().rposition(|stmt| matches!(stmt, Stmt::Scope { .. }))?;
    let Stmt::Scope { label: scope, body: inner } = &body[at] else { return None };
    let (before, after) = (&body[..at], &body[at + 1..]);
    let (continuing, break_if) = match after.split_last() {
        Some((Stmt::If { condition, then_block, else_block, .. }, others))
            if *then_block == [Stmt::Break(label)] && else_block.is_empty() =>
        {
            (others, Some(*condition))
        }
        _ => (after, None),
    };
    let jumps = any_stmt(continuing, &mut |stmt| matches!(stmt, Stmt::Break(_)));
    let leaves = any_stmt(inner, &mut |stmt| *stmt == Stmt::Break(label));
    let parts = ContinuingLoop { before, scope: *scope, body: inner, continuing, break_if };
    (leaves && !jumps).then_some(parts)
}
