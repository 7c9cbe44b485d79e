//! Statements; other files lower each kind.

use naga::{Block, Expression, Statement};

use super::Lower;
use super::frame::Expr;
use crate::ShaderError;
use crate::kir::Barrier;

impl<'m> Lower<'m> {
    /// Lowers statements.
    pub(super) fn statements(&mut self, block: &'m Block) -> Result<(), ShaderError> {
        self.first_statements(block, block.len())
    }

    /// Lowers the first `count` statements of a block.
    pub(super) fn first_statements(
        &mut self,
        block: &'m Block,
        count: usize,
    ) -> Result<(), ShaderError> {
        for (at, (statement, span)) in block.span_iter().take(count).enumerate() {
            self.at(*span);
            self.spend(1)?;
            if let Statement::Emit(_) = statement {
                self.frame.moved = block.get(at + 1).and_then(|next| self.moved_by(next));
            }
            self.statement(statement)?;
        }
        Ok(())
    }

    /// Returns the load that a statement stores, if it has no other use.
    fn moved_by(&self, statement: &Statement) -> Option<Expr> {
        match *statement {
            Statement::Store { value, .. } => {
                let loads = matches!(self.frame.expression(value), Expression::Load { .. });
                (loads && self.frame.info[value].ref_count == 1).then_some(value)
            }
            _ => None,
        }
    }

    fn statement(&mut self, statement: &'m Statement) -> Result<(), ShaderError> {
        match statement {
            Statement::Emit(range) => self.emit(range),
            Statement::Block(block) => self.statements(block),
            Statement::If { condition, accept, reject } => self.choose(*condition, accept, reject),
            Statement::Switch { selector, cases } => self.switch(*selector, cases),
            Statement::Loop { body, continuing, break_if } => {
                self.repeat(body, continuing, *break_if)
            }
            Statement::Break => self.leave_to(|targets| Some(targets.leave)),
            Statement::Continue => self.leave_to(|targets| targets.next),
            Statement::Return { value } => self.leave_function(*value),
            Statement::Call { function, arguments, result } => {
                self.call(*function, arguments, *result)
            }
            other => self.effect(other),
        }
    }

    /// Lowers a statement that accesses memory or other invocations.
    fn effect(&mut self, statement: &Statement) -> Result<(), ShaderError> {
        match *statement {
            Statement::Store { pointer, value } => {
                let (to, value) = (self.pointer(pointer)?, self.operand(value)?);
                self.store(&to, &value)
            }
            Statement::Atomic { pointer, ref fun, value, result } => {
                self.atomic(pointer, fun, value, result)
            }
            Statement::ControlBarrier(kind) => {
                let subgroup = kind == naga::Barrier::SUB_GROUP;
                self.builder.barrier(if subgroup { Barrier::Subgroup } else { Barrier::Workgroup });
                Ok(())
            }
            Statement::WorkGroupUniformLoad { pointer, result } => {
                self.uniform_load(pointer, result)
            }
            Statement::SubgroupBallot { result, predicate } => self.ballot(predicate, result),
            Statement::SubgroupGather { mode, argument, result } => {
                self.shuffle(mode, argument, result)
            }
            Statement::SubgroupCollectiveOperation { op, collective_op, argument, result } => {
                self.reduce(op, collective_op, argument, result)
            }
            Statement::CooperativeStore { target, data } => self.cooperative_store(target, data),
            _ => Err(ShaderError::compiler("a statement that kernels do not have".into())),
        }
    }

    fn uniform_load(&mut self, pointer: Expr, result: Expr) -> Result<(), ShaderError> {
        let pointer = self.pointer(pointer)?;
        let value = self.load_uniform(&pointer)?;
        self.define(result, value);
        Ok(())
    }
}
