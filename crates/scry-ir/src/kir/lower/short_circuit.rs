//! Short-circuit evaluation: the front end lowers `&&` and `||` to a branch that stores to a flag.
//!
//! If the right-hand side is cheap and has no effects, it is evaluated speculatively, without a
//! branch.

use naga::{Block, Expression, Handle, Literal, LocalVariable, Statement, UnaryOperator};

use super::Lower;
use super::frame::{Expr, Operand};
use super::pointers::Root;
use crate::ShaderError;
use crate::kir::{BinaryOp, UnaryOp, Value};

/// Maximum number of expressions that are evaluated speculatively.
const MAX_EXPRESSIONS: usize = 32;

/// A choice between a constant and a computed bool.
struct Choice<'m> {
    flag: Handle<LocalVariable>,
    /// The constant.
    settled: bool,
    /// The value of the condition for which the bool is computed.
    when: bool,
    /// The block that computes the bool, its statements but the last, and the bool.
    computed: &'m Block,
    block: &'m [Statement],
    value: Expr,
}

impl<'m> Lower<'m> {
    /// Lowers a branch without control flow, if it is a short-circuit branch. Returns whether it
    /// is.
    pub(super) fn short_circuit(
        &mut self,
        condition: Expr,
        accept: &'m Block,
        reject: &'m Block,
    ) -> Result<bool, ShaderError> {
        let Some(choice) = self.choice(accept, reject) else {
            return Ok(false);
        };
        let mut budget = MAX_EXPRESSIONS;
        if !self.is_harmless(choice.block, &mut budget) {
            return Ok(false);
        }
        // A constant is the result if the condition is not `when`.
        let and = !choice.settled;
        let first = self.truth(condition, choice.when == and)?;
        self.first_statements(choice.computed, choice.block.len())?;
        let second = self.scalar(choice.value)?;
        let op = if and { BinaryOp::And } else { BinaryOp::Or };
        let value = self.builder.binary(op, first, second);
        let flag = self.frame.locals[choice.flag.index()];
        self.store(&flag, &Operand::Values([value].into()))?;
        Ok(true)
    }

    /// Returns a condition, or its negation.
    fn truth(&mut self, condition: Expr, positive: bool) -> Result<Value, ShaderError> {
        if !positive
            && let Expression::Unary { op: UnaryOperator::LogicalNot, expr } =
                *self.frame.expression(condition)
        {
            return self.scalar(expr);
        }
        let value = self.scalar(condition)?;
        Ok(if positive { value } else { self.builder.unary(UnaryOp::Not, value) })
    }

    fn choice(&self, accept: &'m Block, reject: &'m Block) -> Option<Choice<'m>> {
        let settled_by = |constant: &'m Block, computed: &'m Block, when| {
            let (flag, settled) = self.stored_constant(constant)?;
            let (last, block) = computed.split_last()?;
            let (same, value) = self.stored(last)?;
            (same == flag).then_some(Choice { flag, settled, when, computed, block, value })
        };
        settled_by(reject, accept, true).or_else(|| settled_by(accept, reject, false))
    }

    /// Returns the flag that a statement assigns, and the value. Flags are not variables of the
    /// source, so that an additional assignment is not observable.
    fn stored(&self, statement: &Statement) -> Option<(Handle<LocalVariable>, Expr)> {
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

    fn stored_constant(&self, block: &Block) -> Option<(Handle<LocalVariable>, bool)> {
        let [statement] = &block[..] else {
            return None;
        };
        let (local, value) = self.stored(statement)?;
        match *self.frame.expression(value) {
            Expression::Literal(Literal::Bool(value)) => Some((local, value)),
            _ => None,
        }
    }

    /// Returns whether statements are cheap and have no effects.
    fn is_harmless(&self, block: &'m [Statement], budget: &mut usize) -> bool {
        block.iter().all(|statement| match statement {
            Statement::Emit(range) => range.clone().all(|handle| {
                *budget = budget.saturating_sub(1);
                *budget > 0 && self.is_cheap(handle)
            }),
            Statement::If { accept, reject, .. } => self
                .choice(accept, reject)
                .is_some_and(|choice| self.is_harmless(choice.block, budget)),
            _ => false,
        })
    }

    fn is_cheap(&self, handle: Expr) -> bool {
        match *self.frame.expression(handle) {
            Expression::Load { pointer } => self.is_at_hand(pointer),
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

    /// Returns whether a pointer refers to a register or to a parameter of the launch.
    fn is_at_hand(&self, pointer: Expr) -> bool {
        match *self.frame.expression(pointer) {
            Expression::AccessIndex { base, .. } => self.is_at_hand(base),
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
