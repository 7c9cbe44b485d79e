//! Short-circuit evaluation: naga lowers `&&` and `||` to a branch whose blocks store to a flag.
//!
//! If the right-hand side is cheap and has no effects, it is evaluated speculatively, without a
//! branch.

use naga::{Block, Expression, Handle, Literal, LocalVariable, Statement, UnaryOperator};

use super::Lower;
use super::frame::{Expr, Operand};
use super::pointers::Root;
use crate::ShaderError;
use crate::kir::{BinaryOp, UnaryOp, Value};

/// A right-hand side is evaluated speculatively if it has fewer expressions than this.
const EXPRESSION_LIMIT: usize = 32;

/// A branch that stores a computed bool to a flag in one block, and a constant in the other.
struct ShortCircuit<'m> {
    flag: Handle<LocalVariable>,
    /// The constant.
    constant: bool,
    /// The value of the condition for which the bool is computed.
    computed_if: bool,
    /// The block that computes the bool.
    block: &'m Block,
    /// The statements of that block before the store.
    computation: &'m [Statement],
    /// The computed bool.
    value: Expr,
}

impl<'m> Lower<'m> {
    /// Lowers a branch without control flow, if it is a short-circuit branch that can be evaluated
    /// speculatively. Returns whether it is.
    pub(super) fn lower_short_circuit(
        &mut self,
        condition: Expr,
        accept: &'m Block,
        reject: &'m Block,
    ) -> Result<bool, ShaderError> {
        let Some(branch) = self.match_short_circuit(accept, reject) else {
            return Ok(false);
        };
        let mut budget = EXPRESSION_LIMIT;
        if !self.is_speculatable(branch.computation, &mut budget) {
            return Ok(false);
        }
        // Where the condition is not `computed_if`, the result is the constant. So it is
        // `(condition == computed_if) && value` if the constant is false, else
        // `(condition != computed_if) || value`.
        let is_and = !branch.constant;
        let first = self.condition_equals(condition, branch.computed_if == is_and)?;
        self.first_statements(branch.block, branch.computation.len())?;
        let second = self.scalar(branch.value)?;
        let op = if is_and { BinaryOp::And } else { BinaryOp::Or };
        let value = self.builder.binary(op, first, second);
        let flag = self.frame.locals[branch.flag.index()];
        self.store(&flag, &Operand::Values([value].into()))?;
        Ok(true)
    }

    /// Returns a condition, or its negation if `expected` is false.
    fn condition_equals(&mut self, condition: Expr, expected: bool) -> Result<Value, ShaderError> {
        if !expected
            && let Expression::Unary { op: UnaryOperator::LogicalNot, expr } =
                *self.frame.expression(condition)
        {
            return self.scalar(expr);
        }
        let value = self.scalar(condition)?;
        Ok(if expected { value } else { self.builder.unary(UnaryOp::Not, value) })
    }

    fn match_short_circuit(
        &self,
        accept: &'m Block,
        reject: &'m Block,
    ) -> Option<ShortCircuit<'m>> {
        let match_blocks = |constant_block: &'m Block, block: &'m Block, computed_if| {
            let (flag, constant) = self.constant_flag_store(constant_block)?;
            let (last, computation) = block.split_last()?;
            let (other_flag, value) = self.flag_store(last)?;
            let branch = ShortCircuit { flag, constant, computed_if, block, computation, value };
            (other_flag == flag).then_some(branch)
        };
        match_blocks(reject, accept, true).or_else(|| match_blocks(accept, reject, false))
    }

    /// Returns the flag that a statement assigns, and the value. A flag is not a variable of the
    /// source, so an additional assignment to it is not observable.
    fn flag_store(&self, statement: &Statement) -> Option<(Handle<LocalVariable>, Expr)> {
        let Statement::Store { pointer, value } = *statement else {
            return None;
        };
        match *self.frame.expression(pointer) {
            Expression::LocalVariable(local) => {
                let is_flag = self.frame.function.local_variables[local].name.is_none();
                is_flag.then_some((local, value))
            }
            _ => None,
        }
    }

    /// Returns the flag that a block assigns, and the value, if it does nothing else and the value
    /// is a constant.
    fn constant_flag_store(&self, block: &Block) -> Option<(Handle<LocalVariable>, bool)> {
        let [statement] = &block[..] else {
            return None;
        };
        let (local, value) = self.flag_store(statement)?;
        match *self.frame.expression(value) {
            Expression::Literal(Literal::Bool(value)) => Some((local, value)),
            _ => None,
        }
    }

    /// Returns whether statements are cheap and have no effects.
    fn is_speculatable(&self, block: &'m [Statement], budget: &mut usize) -> bool {
        block.iter().all(|statement| match statement {
            Statement::Emit(range) => range.clone().all(|handle| {
                *budget = budget.saturating_sub(1);
                *budget > 0 && self.is_cheap(handle)
            }),
            Statement::If { accept, reject, .. } => self
                .match_short_circuit(accept, reject)
                .is_some_and(|branch| self.is_speculatable(branch.computation, budget)),
            _ => false,
        })
    }

    fn is_cheap(&self, handle: Expr) -> bool {
        match *self.frame.expression(handle) {
            Expression::Load { pointer } => self.is_cheap_to_load(pointer),
            Expression::Compose { .. }
            | Expression::AccessIndex { .. }
            | Expression::Splat { .. }
            | Expression::Swizzle { .. }
            | Expression::Unary { .. }
            | Expression::Binary { .. }
            | Expression::Select { .. }
            | Expression::Relational { .. }
            | Expression::Math { .. }
            | Expression::As { .. }
            | Expression::ArrayLength(_) => true,
            _ => false,
        }
    }

    /// Returns whether a pointer refers to a register, a uniform buffer or an immediate.
    fn is_cheap_to_load(&self, pointer: Expr) -> bool {
        match *self.frame.expression(pointer) {
            Expression::AccessIndex { base, .. } => self.is_cheap_to_load(base),
            Expression::LocalVariable(local) => {
                matches!(self.frame.locals[local.index()].root, Root::Vars(_))
            }
            Expression::FunctionArgument(at) => match &self.frame.arguments[at as usize] {
                Operand::Pointer(pointer) => matches!(pointer.root, Root::Vars(_)),
                _ => false,
            },
            Expression::GlobalVariable(global) => {
                match self.module.global_variables[global].space {
                    naga::AddressSpace::Uniform | naga::AddressSpace::Immediate => true,
                    naga::AddressSpace::Private => !self.indexed.globals[global.index()],
                    _ => false,
                }
            }
            _ => false,
        }
    }
}
