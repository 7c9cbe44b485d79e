//! Writes integer divisions so that they have WGSL's result, whatever the divisor and the driver.
//!
//! SPIR-V leaves undefined what divides by zero, and the least number by -1. WGSL has the dividend
//! as the quotient of both, and no remainder: as if the divisor were one. Most divisors are
//! constants that need no guard, but naga's writer has a function with one for each type.
//!
//! The remainder of signed numbers is the dividend less divisor times quotient, for that
//! instruction of SPIR-V takes no negative numbers in Vulkan.
//!
//! With [`SpirvWorkarounds::SPLIT_VECTOR_DIVISIONS`] vectors are divided component by component.
//! NVIDIA's driver 580 leaves undefined what comes of a vector with the same number in all
//! components, divided by such a constant, if any component but the first is used: even the store
//! of it is gone.

use naga::{
    Arena, BinaryOperator, Expression, Handle, Literal, Module, Scalar, ScalarKind, Span, Type,
    TypeInner, UniqueArena, VectorSize,
};

use crate::SpirvWorkarounds;
use crate::spirv::naga::operations::{Context, integer};
use crate::spirv::naga::rebuild::{Lowering, Maker};

type Expr = Handle<Expression>;

/// How one division is written.
#[derive(Clone, Copy)]
pub(crate) struct Division {
    scalar: Scalar,
    /// Of vectors: how many components, and the type, which is not known at first.
    size: Option<VectorSize>,
    ty: Option<Handle<Type>>,
    /// A vector is divided component by component.
    is_split: bool,
    /// All components of a vector are the same.
    is_same: bool,
    /// The divisor may be one that nothing can be divided by.
    guarded: bool,
}

/// How an expression is written, if it is a division that needs it.
pub(crate) fn division(context: &Context<'_>, expression: &Expression) -> Option<Division> {
    let Expression::Binary {
        op: op @ (BinaryOperator::Divide | BinaryOperator::Modulo),
        left,
        right,
    } = *expression
    else {
        return None;
    };
    let (scalar, size) = context.numbers(left)?;
    let is_signed = match scalar.kind {
        ScalarKind::Sint => true,
        ScalarKind::Uint => false,
        _ => return None,
    };
    let expressions = &context.function.expressions;
    let guarded = !is_harmless(context.module, expressions, right);
    let splits = context.workarounds.contains(SpirvWorkarounds::SPLIT_VECTOR_DIVISIONS);
    let is_split = splits && size.is_some();
    let rewritten = guarded || is_split || (is_signed && op == BinaryOperator::Modulo);
    let is_splat = |at: Expr| matches!(expressions[at], Expression::Splat { .. });
    let is_same = is_splat(left) && is_splat(right);
    rewritten.then_some(Division { scalar, size, ty: None, is_split, is_same, guarded })
}

/// True for constants that everything can be divided by.
fn is_harmless(module: &Module, expressions: &Arena<Expression>, divisor: Expr) -> bool {
    match &expressions[divisor] {
        Expression::Literal(literal) => !is_zero_or_minus_one(*literal),
        Expression::Constant(constant) => {
            let init = module.constants[*constant].init;
            is_harmless(module, &module.global_expressions, init)
        }
        Expression::Splat { value, .. } => is_harmless(module, expressions, *value),
        Expression::Compose { components, .. } => {
            components.iter().all(|part| is_harmless(module, expressions, *part))
        }
        _ => false,
    }
}

fn is_zero_or_minus_one(literal: Literal) -> bool {
    match literal {
        Literal::I16(value) => matches!(value, 0 | -1),
        Literal::I32(value) => matches!(value, 0 | -1),
        Literal::I64(value) => matches!(value, 0 | -1),
        Literal::U16(value) => value == 0,
        Literal::U32(value) => value == 0,
        Literal::U64(value) => value == 0,
        _ => true,
    }
}

impl Lowering for Division {
    fn size(&self) -> Option<VectorSize> {
        self.size.filter(|_| !self.is_split)
    }

    fn lower(&self, expression: &Expression, make: &mut Maker) -> Expr {
        let Expression::Binary { op, left, right } = *expression else {
            unreachable!("only such expressions are rewritten");
        };
        let (Some(size), Some(ty)) = (self.size, self.ty) else {
            return self.divide(make, op, left, right);
        };
        let part = |make: &mut Maker, index| {
            let [left, right] = [left, right].map(|vector| make.part(vector, index));
            self.divide(make, op, left, right)
        };
        let count = size as u32;
        let parts = match self.is_same {
            true => vec![part(make, 0); count as usize],
            false => (0..count).map(|index| part(make, index)).collect(),
        };
        make.vector(ty, parts)
    }
}

impl Division {
    /// Has the type of a vector among those of the module.
    pub(crate) fn settle(&mut self, types: &mut UniqueArena<Type>) {
        self.ty = self.size.filter(|_| self.is_split).map(|size| {
            let inner = TypeInner::Vector { size, scalar: self.scalar };
            types.insert(Type { name: None, inner }, Span::UNDEFINED)
        });
    }

    fn divide(&self, make: &mut Maker, op: BinaryOperator, left: Expr, right: Expr) -> Expr {
        let divisor = if self.guarded { self.guard(make, left, right) } else { right };
        if self.scalar.kind == ScalarKind::Uint || op == BinaryOperator::Divide {
            return make.binary(op, left, divisor);
        }
        let quotient = make.binary(BinaryOperator::Divide, left, divisor);
        let product = make.binary(BinaryOperator::Multiply, quotient, divisor);
        make.binary(BinaryOperator::Subtract, left, product)
    }

    /// The divisor, or one.
    fn guard(&self, make: &mut Maker, dividend: Expr, divisor: Expr) -> Expr {
        let zero = make.all(self.number(0));
        let mut undefined = make.binary(BinaryOperator::Equal, divisor, zero);
        if self.scalar.kind == ScalarKind::Sint {
            let least = make.all(self.number(i64::MIN));
            let is_least = make.binary(BinaryOperator::Equal, dividend, least);
            let minus_one = make.all(self.number(-1));
            let is_minus_one = make.binary(BinaryOperator::Equal, divisor, minus_one);
            let overflows = make.binary(BinaryOperator::And, is_least, is_minus_one);
            undefined = make.binary(BinaryOperator::InclusiveOr, undefined, overflows);
        }
        let one = make.all(self.number(1));
        make.select(undefined, one, divisor)
    }

    fn number(&self, value: i64) -> Literal {
        integer(self.scalar, value)
    }
}
