//! Writes `extractBits` and `insertBits` as shifts and masks.
//!
//! SPIR-V has instructions for them, but kernels were found that get wrong bits from them on
//! NVIDIA's driver 580, where the word is the same for all invocations.
//!
//! Only with [`EXPAND_BIT_FIELDS`](crate::SpirvWorkarounds::EXPAND_BIT_FIELDS).

use naga::{
    Arena, BinaryOperator, Expression, Handle, Literal, MathFunction, Module, Scalar, ScalarKind,
    VectorSize,
};

use crate::spirv::naga::operations::Context;
use crate::spirv::naga::rebuild::{Lowering, Maker};

type Expr = Handle<Expression>;

const WIDTH: u32 = 32;

/// Where the bits are that a function extracts or inserts.
#[derive(Clone, Copy)]
enum Field {
    /// Offset and count are constants, here within the width.
    Known { offset: u32, count: u32 },
    /// They are known at run time.
    Computed,
}

/// How one function is written.
#[derive(Clone, Copy)]
pub(crate) struct Bits {
    fun: MathFunction,
    kind: ScalarKind,
    size: Option<VectorSize>,
    field: Field,
}

/// How an expression is written, if it is such a function.
pub(crate) fn bits(context: &Context<'_>, expression: &Expression) -> Option<Bits> {
    let Expression::Math { fun, arg, arg1, arg2, arg3 } = *expression else {
        return None;
    };
    let (offset, count) = match fun {
        MathFunction::ExtractBits => (arg1?, arg2?),
        MathFunction::InsertBits => (arg2?, arg3?),
        _ => return None,
    };
    let (scalar, size) = context.numbers(arg)?;
    let kind = matches!(scalar, Scalar::I32 | Scalar::U32).then_some(scalar.kind)?;
    let known = |at| constant(context.module, &context.function.expressions, at);
    let field = match (known(offset), known(count)) {
        (Some(offset), Some(count)) => {
            let offset = offset.min(WIDTH);
            Field::Known { offset, count: count.min(WIDTH - offset) }
        }
        _ => Field::Computed,
    };
    Some(Bits { fun, kind, size, field })
}

/// The value of a constant.
fn constant(module: &Module, expressions: &Arena<Expression>, at: Expr) -> Option<u32> {
    let constant = match expressions[at] {
        Expression::Constant(constant) => {
            &module.global_expressions[module.constants[constant].init]
        }
        ref expression => expression,
    };
    match *constant {
        Expression::Literal(Literal::U32(value)) => Some(value),
        _ => None,
    }
}

impl Lowering for Bits {
    fn size(&self) -> Option<VectorSize> {
        self.size
    }

    fn lower(&self, expression: &Expression, make: &mut Maker) -> Expr {
        let Expression::Math { arg, arg1, arg2, arg3, .. } = *expression else {
            unreachable!("only such expressions are rewritten");
        };
        match (self.fun, arg1, arg2, arg3) {
            (MathFunction::InsertBits, Some(new), Some(offset), Some(count)) => {
                self.insert(make, arg, new, [offset, count])
            }
            (_, Some(offset), Some(count), _) => self.extract(make, arg, [offset, count]),
            _ => unreachable!("such a function has an offset and a count"),
        }
    }
}

impl Bits {
    /// `(x << what is above) >> all but the count`, which repeats the sign if there is one.
    fn extract(&self, make: &mut Maker, x: Expr, place: [Expr; 2]) -> Expr {
        let zero = self.number(0);
        let Field::Known { offset, count } = self.field else {
            return self.extract_computed(make, x, place);
        };
        if count == 0 {
            let zero = make.all(zero);
            return make.binary(BinaryOperator::And, x, zero);
        }
        let amounts = [WIDTH - offset - count, WIDTH - count];
        let [left, right] = amounts.map(|amount| make.all(Literal::U32(amount)));
        shifted(make, x, left, right)
    }

    fn extract_computed(&self, make: &mut Maker, x: Expr, place: [Expr; 2]) -> Expr {
        let Computed { count, above, .. } = Computed::new(make, place);
        let most = make.literal(Literal::U32(0));
        let rest = make.binary(BinaryOperator::Subtract, most, count);
        let [left, right] = [above, rest].map(|amount| {
            let amount = make.splat(amount);
            masked(make, amount, true)
        });
        let bits = shifted(make, x, left, right);
        let zero = make.all(self.number(0));
        let nothing = is_zero(make, count);
        make.select(nothing, zero, bits)
    }

    /// `x ^ ((x ^ new << offset) & mask)`.
    fn insert(&self, make: &mut Maker, x: Expr, new: Expr, place: [Expr; 2]) -> Expr {
        let (offset, mask) = match self.field {
            Field::Known { offset, count } => {
                let mask = u32::MAX.checked_shr(WIDTH - count).unwrap_or(0);
                let mask = mask.checked_shl(offset).unwrap_or(0);
                let offset = make.all(Literal::U32(offset % WIDTH));
                (offset, make.all(self.number(mask)))
            }
            Field::Computed => self.mask(make, place),
        };
        let new = make.binary(BinaryOperator::ShiftLeft, new, offset);
        let change = make.binary(BinaryOperator::ExclusiveOr, x, new);
        let change = make.binary(BinaryOperator::And, change, mask);
        make.binary(BinaryOperator::ExclusiveOr, x, change)
    }

    /// An offset that is less than the width, and ones in the place of the field.
    fn mask(&self, make: &mut Maker, place: [Expr; 2]) -> (Expr, Expr) {
        let Computed { offset, count, .. } = Computed::new(make, place);
        let [none, all] = [0, u32::MAX].map(|bits| make.literal(Literal::U32(bits)));
        let rest = make.binary(BinaryOperator::Subtract, none, count);
        let rest = masked(make, rest, false);
        let ones = make.binary(BinaryOperator::ShiftRight, all, rest);
        let nothing = is_zero(make, count);
        let ones = make.select(nothing, none, ones);
        let up = masked(make, offset, false);
        let mut mask = make.binary(BinaryOperator::ShiftLeft, ones, up);
        if self.kind == ScalarKind::Sint {
            mask = make.bitcast(mask, ScalarKind::Sint);
        }
        let offset = make.splat(offset);
        (masked(make, offset, true), make.splat(mask))
    }

    /// Bits as a number of the function's type.
    fn number(&self, bits: u32) -> Literal {
        match self.kind {
            ScalarKind::Sint => Literal::I32(bits.cast_signed()),
            _ => Literal::U32(bits),
        }
    }
}

/// A field that is known at run time, made to lie within the width; all scalars.
struct Computed {
    offset: Expr,
    count: Expr,
    /// Bits above it.
    above: Expr,
}

impl Computed {
    fn new(make: &mut Maker, [offset, count]: [Expr; 2]) -> Self {
        let width = make.literal(Literal::U32(WIDTH));
        let offset = make.math(MathFunction::Min, offset, Some(width));
        let room = make.binary(BinaryOperator::Subtract, width, offset);
        let count = make.math(MathFunction::Min, count, Some(room));
        let above = make.binary(BinaryOperator::Subtract, room, count);
        Self { offset, count, above }
    }
}

fn shifted(make: &mut Maker, x: Expr, left: Expr, right: Expr) -> Expr {
    let top = make.binary(BinaryOperator::ShiftLeft, x, left);
    make.binary(BinaryOperator::ShiftRight, top, right)
}

/// An amount to shift by, for one component or for all; the width itself becomes zero.
fn masked(make: &mut Maker, amount: Expr, every: bool) -> Expr {
    let most = Literal::U32(WIDTH - 1);
    let most = if every { make.all(most) } else { make.literal(most) };
    make.binary(BinaryOperator::And, amount, most)
}

fn is_zero(make: &mut Maker, scalar: Expr) -> Expr {
    let zero = make.literal(Literal::U32(0));
    make.binary(BinaryOperator::Equal, scalar, zero)
}
