//! Writes signs, sizes, negatives and bounds of numbers as what NVIDIA's driver 580 gets right.
//!
//! Only with [`EXPAND_SIGNS`](crate::SpirvWorkarounds::EXPAND_SIGNS).

use naga::{
    Arena, BinaryOperator, Expression, Handle, Literal, MathFunction, Scalar, ScalarKind,
    UnaryOperator, VectorSize,
};

use crate::spirv::naga::operations::{Context, integer};
use crate::spirv::naga::rebuild::{Lowering, Maker};
use crate::wgsl::naga::handles;

type Expr = Handle<Expression>;

/// How an operation on numbers is written.
#[derive(Clone, Copy)]
pub(crate) struct Number {
    operation: Operation,
    scalar: Scalar,
    size: Option<VectorSize>,
}

#[derive(Clone, Copy)]
enum Operation {
    /// `sign`, as what bounds an integer by -1 and 1, and as choices between floats.
    ///
    /// The driver makes no pipeline of some kernels that choose among the integers -1, 0 and 1 by
    /// the order of two others, and divide integers of 64 bits or convert floats to them. SPIR-V's
    /// instructions are such choices there; those for floats failed for what comes of integers.
    Sign,
    /// `-x`, in a way that is not seen to be one.
    ///
    /// Of 16 bits, the driver widens the negative of the least number to a positive one, as if it
    /// had not overflowed. Of 32 bits, it loses that a number is negated where the greater of both
    /// is bounded by what is bounded itself.
    Negate,
    /// `x - y` of 16 bits, which may be such a negative if `x` is found to be zero.
    Subtract,
    /// `abs`, as the greater of the number and its negative. The driver takes what SPIR-V's
    /// instruction gives never to be negative, which it is for the least number.
    Abs,
    /// `min`, `max` and `clamp` of 16 bits, with 32. The driver mistakes what compares the result
    /// with the bound.
    Bound,
}

/// How an expression is written, if it is such an operation. `is_bounded` says whether `min`, `max`
/// or the like is taken of it.
pub(crate) fn number(
    context: &Context<'_>,
    expression: &Expression,
    is_bounded: bool,
) -> Option<Number> {
    let expressions = &context.function.expressions;
    let (operation, x) = match *expression {
        Expression::Binary { op: BinaryOperator::Subtract, left, right } => {
            let negates = is_zero(expressions, left);
            (if negates { Operation::Negate } else { Operation::Subtract }, right)
        }
        Expression::Unary { op: UnaryOperator::Negate, expr } => (Operation::Negate, expr),
        Expression::Math { fun: MathFunction::Sign, arg, .. } => (Operation::Sign, arg),
        Expression::Math { fun: MathFunction::Abs, arg, .. } => (Operation::Abs, arg),
        Expression::Math {
            fun: MathFunction::Min | MathFunction::Max | MathFunction::Clamp,
            arg,
            ..
        } => (Operation::Bound, arg),
        _ => return None,
    };
    let (scalar, size) = context.numbers(x)?;
    let is_signed = scalar.kind == ScalarKind::Sint;
    let is_written = match operation {
        Operation::Sign => true,
        Operation::Negate => is_signed && (scalar.width == 2 || is_bounded),
        Operation::Abs => is_signed,
        Operation::Subtract => scalar == Scalar::I16,
        Operation::Bound => matches!(scalar, Scalar::I16 | Scalar::U16),
    };
    is_written.then_some(Number { operation, scalar, size })
}

impl Lowering for Number {
    fn size(&self) -> Option<VectorSize> {
        self.size
    }

    fn lower(&self, expression: &Expression, make: &mut Maker) -> Expr {
        let (Expression::Math { arg: x, .. }
        | Expression::Unary { expr: x, .. }
        | Expression::Binary { right: x, .. }) = *expression
        else {
            unreachable!("only such expressions are rewritten");
        };
        match self.operation {
            Operation::Sign if self.scalar.kind == ScalarKind::Float => self.float_sign(make, x),
            Operation::Sign => self.sign(make, x),
            Operation::Negate => self.negate(make, x),
            Operation::Subtract => {
                let Expression::Binary { left, .. } = *expression else {
                    unreachable!("nothing else subtracts");
                };
                let negative = self.negate(make, x);
                make.binary(BinaryOperator::Add, left, negative)
            }
            Operation::Abs => self.size_of(make, x),
            Operation::Bound => {
                let mut wide = expression.clone();
                handles::in_expression(&mut wide, &mut |x| *x = self.widened(make, *x));
                let bounded = make.copy(wide);
                self.narrowed(make, bounded)
            }
        }
    }
}

impl Number {
    fn float_sign(&self, make: &mut Maker, x: Expr) -> Expr {
        let [minus_one, zero, one] = [Literal::minus_one, Literal::zero, Literal::one]
            .map(|number| make.all(number(self.scalar).expect("there are such floats")));
        let is_more = make.binary(BinaryOperator::Greater, x, zero);
        let sign = make.select(is_more, one, x);
        let is_less = make.binary(BinaryOperator::Less, x, zero);
        make.select(is_less, minus_one, sign)
    }

    fn sign(&self, make: &mut Maker, x: Expr) -> Expr {
        let x = self.widened(make, x);
        let scalar = Scalar { width: self.scalar.width.max(4), ..self.scalar };
        let [least, most] = [-1, 1].map(|bound| make.all(integer(scalar, bound)));
        let bounded = make.math(MathFunction::Max, x, Some(least));
        let sign = make.math(MathFunction::Min, bounded, Some(most));
        self.narrowed(make, sign)
    }

    fn size_of(&self, make: &mut Maker, x: Expr) -> Expr {
        let negative = self.negate(make, x);
        let [x, negative] = [x, negative].map(|number| self.widened(make, number));
        let size = make.math(MathFunction::Max, x, Some(negative));
        self.narrowed(make, size)
    }

    /// The complement of all bits but the sign, and what is then missing.
    fn negate(&self, make: &mut Maker, x: Expr) -> Expr {
        let most = i64::MAX >> (64 - 8 * u32::from(self.scalar.width));
        let [bits, rest] = [most, -most].map(|number| make.all(integer(self.scalar, number)));
        let complement = make.binary(BinaryOperator::ExclusiveOr, x, bits);
        make.binary(BinaryOperator::Add, complement, rest)
    }

    /// A number of 16 bits as one of 32.
    fn widened(&self, make: &mut Maker, number: Expr) -> Expr {
        match self.scalar.width {
            2 => make.convert(number, self.scalar.kind, 4),
            _ => number,
        }
    }

    fn narrowed(&self, make: &mut Maker, number: Expr) -> Expr {
        match self.scalar.width {
            2 => make.convert(number, self.scalar.kind, 2),
            _ => number,
        }
    }
}

fn is_zero(expressions: &Arena<Expression>, at: Expr) -> bool {
    match expressions[at] {
        Expression::ZeroValue(_) => true,
        Expression::Literal(literal) => Literal::zero(literal.scalar()) == Some(literal),
        Expression::Splat { value, .. } => is_zero(expressions, value),
        _ => false,
    }
}
