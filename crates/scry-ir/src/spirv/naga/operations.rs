//! What rewrites of operations ask of a function.

use naga::valid::FunctionInfo;
use naga::{
    Expression, Function, Handle, Literal, Module, Scalar, ScalarKind, TypeInner, VectorSize,
};

use crate::SpirvWorkarounds;

type Expr = Handle<Expression>;

/// A function whose operations are looked at.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) module: &'a Module,
    pub(crate) function: &'a Function,
    pub(crate) info: &'a FunctionInfo,
    pub(crate) workarounds: SpirvWorkarounds,
}

impl Context<'_> {
    /// What an expression consists of, and how many of them if it is a vector.
    pub(crate) fn numbers(&self, at: Expr) -> Option<(Scalar, Option<VectorSize>)> {
        match *self.info[at].ty.inner_with(&self.module.types) {
            TypeInner::Scalar(scalar) => Some((scalar, None)),
            TypeInner::Vector { size, scalar } => Some((scalar, Some(size))),
            _ => None,
        }
    }
}

/// An integer of a type, the least one for what is too small for it.
pub(crate) fn integer(scalar: Scalar, value: i64) -> Literal {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Sint, 2) => Literal::I16(value.max(i16::MIN.into()) as i16),
        (ScalarKind::Sint, 4) => Literal::I32(value.max(i32::MIN.into()) as i32),
        (ScalarKind::Sint, _) => Literal::I64(value),
        (_, 2) => Literal::U16(value as u16),
        (_, 4) => Literal::U32(value as u32),
        _ => Literal::U64(value as u64),
    }
}
