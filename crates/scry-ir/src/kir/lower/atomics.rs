//! Atomic read-modify-write operations.

use naga::AtomicFunction;

use super::Lower;
use super::frame::{Expr, Operand};
use super::types::Ty;
use crate::ShaderError;
use crate::kir::{AtomicOp, BinaryOp};

impl Lower<'_> {
    /// Lowers an atomic operation. A compare-exchange returns a structure: the old value, and
    /// whether it was replaced.
    pub(super) fn lower_atomic(
        &mut self,
        pointer: Expr,
        fun: &AtomicFunction,
        value: Expr,
        result: Option<Expr>,
    ) -> Result<(), ShaderError> {
        let pointer = self.pointer(pointer)?;
        let Ty::Atomic(ty) = pointer.ty else {
            return Err(ShaderError::compiler(
                "an atomic operation on a type that is not atomic".into(),
            ));
        };
        let place = self.place(&pointer, ty)?;
        let value = self.scalar(value)?;
        let compare = match fun {
            AtomicFunction::Exchange { compare: Some(compare) } => Some(self.scalar(*compare)?),
            _ => None,
        };
        let old = self.builder.atomic(ty, atomic_op(fun), place, Some(value), compare);
        if let Some(result) = result {
            let exchanged = compare.map(|c| self.builder.binary(BinaryOp::Eq, old, c));
            let values = std::iter::once(old).chain(exchanged).collect();
            self.define(result, Operand::Values(values));
        }
        Ok(())
    }
}

fn atomic_op(fun: &AtomicFunction) -> AtomicOp {
    match fun {
        AtomicFunction::Add => AtomicOp::Add,
        AtomicFunction::Subtract => AtomicOp::Sub,
        AtomicFunction::And => AtomicOp::And,
        AtomicFunction::ExclusiveOr => AtomicOp::Xor,
        AtomicFunction::InclusiveOr => AtomicOp::Or,
        AtomicFunction::Min => AtomicOp::Min,
        AtomicFunction::Max => AtomicOp::Max,
        AtomicFunction::Exchange { compare: None } => AtomicOp::Exchange,
        AtomicFunction::Exchange { compare: Some(_) } => AtomicOp::CompareExchange,
    }
}
