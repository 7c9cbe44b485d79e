//! Bounds of values, which prove that no float is ever rounded.
//!
//! A float of a kernel is an integer multiple of `2^-fraction` and at most `2^magnitude` in
//! absolute value. As long as the sum of the two is at most the number of bits of the significand,
//! it is exact, for any order and fusion of operations. Values of variables are within the bound
//! that [`variable_bound`] returns. Larger values are reduced to it before they are stored, by the
//! functions `tame_…` of the generated source.
//!
//! WGSL allows errors in quotients, and so in `%`, and in determinants even if the result is exact.
//! Kernels divide by powers of two only, and have determinants of small integers: it is assumed
//! that no device errs there.

use crate::tree::{Expr, Literal, Node};
use crate::types::{Scalar, Type};

/// The possible values of a float.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    /// log2 of the maximum absolute value.
    pub magnitude: i32,
    /// Number of binary digits after the point.
    pub fraction: i32,
}

/// The rule that computes the bound of a result from those of the operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The result is not a float, or at most as large as an operand, and a multiple of the same
    /// power of two.
    Largest,
    /// A sum or difference of two operands.
    Sum,
    /// A sum of this number of products of two operands.
    Products(i32),
    /// `a * b + c`.
    Fma,
    /// `a * (1 - c) + b * c`, or `a + (b - a) * c`.
    Mix,
    /// Rounded to an integer.
    Integer,
    /// A fractional part.
    Fraction,
    /// The significand that `frexp` returns.
    Significand,
    /// Multiplied by `2^n`.
    Scale(i32),
    /// This magnitude and fraction, whatever the operands are.
    Fixed(i32, i32),
    /// Reduced to the bound of variables.
    VariableBound,
    /// That of the operand; the operand plus 1 must be exact as `f16`.
    PlusOneF16,
    /// That of the operand; the operand plus 1 must be exact as `f32`.
    PlusOneF32,
}

impl Bound {
    fn new(magnitude: i32, fraction: i32) -> Self {
        Self { magnitude, fraction }
    }

    fn max(self, other: Self) -> Self {
        Self::new(self.magnitude.max(other.magnitude), self.fraction.max(other.fraction))
    }

    fn sum(self, other: Self) -> Self {
        let largest = self.max(other);
        Self::new(largest.magnitude + 1, largest.fraction)
    }

    fn product(self, other: Self) -> Self {
        Self::new(self.magnitude + other.magnitude, self.fraction + other.fraction)
    }

    fn is_within(self, other: Self) -> bool {
        self.magnitude <= other.magnitude && self.fraction <= other.fraction
    }

    fn is_exact(self, scalar: Scalar) -> bool {
        // Exponents stay far from the limits of `f16`, the narrowest type: no infinities or
        // subnormals.
        let (significand_bits, max_magnitude, max_fraction) = match scalar {
            Scalar::F16 => (11, 14, 10),
            Scalar::F64 => (53, 200, 200),
            _ => (24, 100, 100),
        };
        self.magnitude + self.fraction <= significand_bits
            && self.magnitude <= max_magnitude
            && self.fraction <= max_fraction
    }

    fn of_value(value: f64) -> Self {
        let mut bound = Self::new(0, 0);
        while value.abs() > 2f64.powi(bound.magnitude) {
            bound.magnitude += 1;
        }
        while (value * 2f64.powi(bound.fraction)).fract() != 0.0 {
            bound.fraction += 1;
        }
        bound
    }
}

/// Returns the bound of variables of a type. Products of two such values, and sums of four such
/// products, are exact.
pub(crate) fn variable_bound(scalar: Scalar) -> Bound {
    match scalar {
        Scalar::F16 => Bound::new(3, 1),
        Scalar::F64 => Bound::new(18, 4),
        _ => Bound::new(6, 2),
    }
}

/// Returns the bound of a value; `None` if a float in it might be rounded. Values without floats
/// have the bound of -1, 0 and 1.
pub(crate) fn bound(expr: &Expr) -> Option<Bound> {
    let operands: Vec<Bound> = expr.children().into_iter().map(bound).collect::<Option<_>>()?;
    let result = match &expr.node {
        Node::Literal(Literal::Float(value)) => Bound::of_value(*value),
        Node::Literal(_) => Bound::new(0, 0),
        Node::Read(_) => expr.ty.float().map_or(Bound::new(0, 0), variable_bound),
        Node::Call(_, _, arguments) => {
            let can_be_passed =
                arguments.iter().zip(&operands).all(|(a, b)| is_within_variable_bound(&a.ty, *b));
            can_be_passed.then(|| expr.ty.float().map_or(Bound::new(0, 0), variable_bound))?
        }
        Node::Op(op, arguments) => apply_rule(op.rule, &expr.ty, arguments, &operands)?,
    };
    match expr.ty.float() {
        Some(scalar) => result.is_exact(scalar).then_some(result),
        None => Some(Bound::new(0, 0)),
    }
}

/// Returns whether a bound is within that of variables of a type.
fn is_within_variable_bound(ty: &Type, bound: Bound) -> bool {
    ty.float().is_none_or(|scalar| bound.is_within(variable_bound(scalar)))
}

/// Returns whether a value can be stored: it is exact, and within the bound of variables.
pub(crate) fn can_be_stored(value: &Expr) -> bool {
    bound(value).is_some_and(|found| is_within_variable_bound(&value.ty, found))
}

/// Returns the bound of an operation; `None` if its result might be rounded.
fn apply_rule(rule: Rule, ty: &Type, arguments: &[Expr], operands: &[Bound]) -> Option<Bound> {
    let composite = matches!(ty, Type::Array(..) | Type::Struct(_));
    if composite
        && !arguments.iter().zip(operands).all(|(a, b)| is_within_variable_bound(&a.ty, *b))
    {
        return None;
    }
    let largest = || operands.iter().copied().reduce(Bound::max).unwrap_or(Bound::new(0, 0));
    let first = operands.first().copied().unwrap_or(Bound::new(0, 0));
    let second = operands.get(1).copied().unwrap_or(first);
    let third = operands.get(2).copied().unwrap_or(second);
    Some(match rule {
        Rule::Largest => largest(),
        Rule::Sum => first.sum(second),
        Rule::Products(count) => {
            let product = first.product(second);
            let doublings = 32 - (count - 1).leading_zeros() as i32;
            Bound::new(product.magnitude + doublings, product.fraction)
        }
        Rule::Fma => first.product(second).sum(third),
        Rule::Mix => {
            // Bounds the intermediate results of both formulas.
            let (one, larger) = (Bound::new(0, 0), first.max(second));
            let share = third.max(one);
            let weighted = larger.sum(larger).product(share.sum(share));
            weighted.sum(weighted)
        }
        Rule::Integer => Bound::new(first.magnitude.max(0), first.fraction.min(0)),
        Rule::Fraction => Bound::new(0, first.fraction.max(0)),
        // That of a power of two is ±0.5.
        Rule::Significand => Bound::new(0, (first.magnitude + first.fraction).max(1)),
        Rule::Scale(power) => Bound::new(first.magnitude + power, first.fraction - power),
        Rule::Fixed(magnitude, fraction) => Bound::new(magnitude, fraction),
        Rule::VariableBound => variable_bound(ty.scalar()?),
        Rule::PlusOneF16 => first.sum(Bound::new(0, 0)).is_exact(Scalar::F16).then_some(first)?,
        Rule::PlusOneF32 => first.sum(Bound::new(0, 0)).is_exact(Scalar::F32).then_some(first)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: f64) -> Expr {
        Expr::literal(Type::F32, Literal::Float(value))
    }

    fn op(rule: Rule, operands: &[Expr]) -> Expr {
        Expr::op(Type::F32, "", rule, operands.to_vec())
    }

    #[test]
    fn bounds_follow_arithmetic() {
        assert_eq!(bound(&number(-5.25)), Some(Bound::new(3, 2)));
        let sum = op(Rule::Sum, &[number(4.0), number(0.5)]);
        assert_eq!(bound(&sum), Some(Bound::new(3, 1)));
        let fma = op(Rule::Fma, &[number(4.0), number(0.5), number(1.0)]);
        assert_eq!(bound(&fma), Some(Bound::new(3, 1)));
        let products = op(Rule::Products(4), &[number(8.0), number(0.25)]);
        assert_eq!(bound(&products), Some(Bound::new(5, 2)));
        // The significand of 1 is 0.5.
        let significand = op(Rule::Significand, &[number(1.0)]);
        assert_eq!(bound(&significand), Some(Bound::new(0, 1)));
    }

    #[test]
    fn values_that_may_round_have_no_bound() {
        let large = op(Rule::Scale(20), &[number(16.0)]);
        assert!(bound(&large).is_some());
        assert_eq!(bound(&op(Rule::Sum, &[large.clone(), number(0.5)])), None);
        assert!(!can_be_stored(&large));
        assert!(can_be_stored(&op(Rule::VariableBound, &[large])));
    }
}
