//! Dispatches statements to the files that lower them.

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
        for (index, (statement, span)) in block.span_iter().take(count).enumerate() {
            self.set_span(*span);
            self.spend(1)?;
            if let Statement::Emit(_) = statement {
                let next = block.get(index + 1);
                self.frame.stored_load = next.and_then(|next| self.stored_load(next));
            }
            self.statement(statement)?;
        }
        Ok(())
    }

    /// Returns the load that a statement stores, if it has no other use.
    fn stored_load(&self, statement: &Statement) -> Option<Expr> {
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
            Statement::If { condition, accept, reject } => {
                self.lower_if(*condition, accept, reject)
            }
            Statement::Switch { selector, cases } => self.lower_switch(*selector, cases),
            Statement::Loop { body, continuing, break_if } => {
                self.lower_loop(body, continuing, *break_if)
            }
            Statement::Break => self.lower_jump(|targets| Some(targets.break_to)),
            Statement::Continue => self.lower_jump(|targets| targets.continue_to),
            Statement::Return { value } => self.lower_return(*value),
            Statement::Call { function, arguments, result } => {
                self.lower_call(*function, arguments, *result)
            }
            other => self.lower_access(other),
        }
    }

    /// Lowers a statement that accesses memory or other invocations.
    fn lower_access(&mut self, statement: &Statement) -> Result<(), ShaderError> {
        match *statement {
            Statement::Store { pointer, value } => {
                let (to, value) = (self.pointer(pointer)?, self.operand(value)?);
                self.store(&to, &value)
            }
            Statement::Atomic { pointer, ref fun, value, result } => {
                self.lower_atomic(pointer, fun, value, result)
            }
            Statement::ControlBarrier(kind) => {
                let subgroup = kind == naga::Barrier::SUB_GROUP;
                self.has_storage_barrier |= kind.contains(naga::Barrier::STORAGE);
                self.builder.barrier(if subgroup { Barrier::Subgroup } else { Barrier::Workgroup });
                Ok(())
            }
            Statement::WorkGroupUniformLoad { pointer, result } => {
                self.lower_uniform_load(pointer, result)
            }
            Statement::SubgroupBallot { result, predicate } => self.lower_ballot(predicate, result),
            Statement::SubgroupGather { mode, argument, result } => {
                self.lower_shuffle(mode, argument, result)
            }
            Statement::SubgroupCollectiveOperation { op, collective_op, argument, result } => {
                self.lower_reduction(op, collective_op, argument, result)
            }
            Statement::CooperativeStore { target, data } => self.cooperative_store(target, data),
            _ => Err(ShaderError::compiler("a statement that kernels do not have".into())),
        }
    }

    fn lower_uniform_load(&mut self, pointer: Expr, result: Expr) -> Result<(), ShaderError> {
        let pointer = self.pointer(pointer)?;
        let value = self.load_uniform(&pointer)?;
        self.define(result, value);
        Ok(())
    }
}
