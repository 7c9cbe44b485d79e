//! Functions of scalars that are several operations of the kernel IR.

use scry_gpu::kir::{BinaryOp, Type, UnaryOp};
use scry_kernels::Activation;

use crate::expr::{Expression, Id};

/// The sign of a number: -1, 0 or 1; NaN of NaN, which devices may map to 0 in their own function.
pub(super) fn sign(e: &mut Expression, x: Id) -> Id {
    let (zero, one) = (e.zero_like(x), e.number_like(x, 1));
    let minus_one = e.unary(UnaryOp::Neg, one);
    let is_positive = e.binary(BinaryOp::Gt, x, zero);
    let is_negative = e.binary(BinaryOp::Lt, x, zero);
    let others = e.select(is_negative, minus_one, x);
    e.select(is_positive, one, others)
}

/// The number if it is positive, else 0; of NaN, NaN.
pub(super) fn relu(e: &mut Expression, x: Id) -> Id {
    let zero = e.number_like(x, 0);
    let is_negative = e.binary(BinaryOp::Lt, x, zero);
    e.select(is_negative, zero, x)
}

/// `x / (1 + e^-x)`.
pub(super) fn silu(e: &mut Expression, x: Id) -> Id {
    let sigmoid = sigmoid(e, x);
    e.binary(BinaryOp::Mul, x, sigmoid)
}

/// A function of a scalar.
type Function = fn(&mut Expression, Id) -> Id;

/// Returns the activations that products of the kernel library compute.
pub(crate) fn activations() -> [(Activation, Function); 4] {
    [
        (Activation::Relu, relu),
        (Activation::Silu, silu),
        (Activation::Gelu, gelu_tanh),
        (Activation::GeluErf, gelu),
    ]
}

/// The logistic function, without overflow: `1 / (1 + e^-x)`.
pub(super) fn sigmoid(e: &mut Expression, x: Id) -> Id {
    let negative = e.unary(UnaryOp::Neg, x);
    let power = e.unary(UnaryOp::Exp, negative);
    let one = e.f32(1.0);
    let sum = e.binary(BinaryOp::Add, one, power);
    e.binary(BinaryOp::Div, one, sum)
}

/// The error function: Abramowitz and Stegun, 7.1.26. The absolute error is at most 1.5e-7, and
/// that of the exponential function.
pub(super) fn erf(e: &mut Expression, x: Id) -> Id {
    let magnitude = e.unary(UnaryOp::Abs, x);
    let (one, slope) = (e.f32(1.0), e.f32(0.327_591_1));
    let scaled = e.binary(BinaryOp::Mul, slope, magnitude);
    let sum = e.binary(BinaryOp::Add, one, scaled);
    let t = e.binary(BinaryOp::Div, one, sum);
    let mut polynomial = e.f32(1.061_405_4);
    for coefficient in [-1.453_152, 1.421_413_8, -0.284_496_74, 0.254_829_6] {
        let product = e.binary(BinaryOp::Mul, polynomial, t);
        let coefficient = e.f32(coefficient);
        polynomial = e.binary(BinaryOp::Add, product, coefficient);
    }
    let polynomial = e.binary(BinaryOp::Mul, polynomial, t);
    let square = e.binary(BinaryOp::Mul, x, x);
    let square = e.unary(UnaryOp::Neg, square);
    let power = e.unary(UnaryOp::Exp, square);
    let rest = e.binary(BinaryOp::Mul, polynomial, power);
    let result = e.binary(BinaryOp::Sub, one, rest);
    let opposite = e.unary(UnaryOp::Neg, result);
    let zero = e.f32(0.0);
    let is_negative = e.binary(BinaryOp::Lt, x, zero);
    e.select(is_negative, opposite, result)
}

/// `x * (1 + erf(x / √2)) / 2`.
pub(super) fn gelu(e: &mut Expression, x: Id) -> Id {
    let (scale, half, one) = (e.f32(std::f32::consts::FRAC_1_SQRT_2), e.f32(0.5), e.f32(1.0));
    let scaled = e.binary(BinaryOp::Mul, x, scale);
    let erf = erf(e, scaled);
    let sum = e.binary(BinaryOp::Add, one, erf);
    let halved = e.binary(BinaryOp::Mul, half, x);
    e.binary(BinaryOp::Mul, halved, sum)
}

/// `x * (1 + tanh(√(2 / π) * (x + 0.044715 x³))) / 2`.
pub(super) fn gelu_tanh(e: &mut Expression, x: Id) -> Id {
    let (half, one) = (e.f32(0.5), e.f32(1.0));
    let (cubic, scale) = (e.f32(0.044_715), e.f32(0.797_884_6));
    let square = e.binary(BinaryOp::Mul, x, x);
    let factor = e.binary(BinaryOp::Mul, cubic, square);
    let factor = e.binary(BinaryOp::Add, one, factor);
    let inner = e.binary(BinaryOp::Mul, x, factor);
    let scaled = e.binary(BinaryOp::Mul, scale, inner);
    let tanh = e.unary(UnaryOp::Tanh, scaled);
    let sum = e.binary(BinaryOp::Add, one, tanh);
    let halved = e.binary(BinaryOp::Mul, half, x);
    e.binary(BinaryOp::Mul, halved, sum)
}

/// `ln(1 + e^x)`, without overflow: `max(x, 0) + ln(1 + e^-|x|)`.
pub(super) fn softplus(e: &mut Expression, x: Id) -> Id {
    let (zero, one) = (e.f32(0.0), e.f32(1.0));
    let magnitude = e.unary(UnaryOp::Abs, x);
    let negative = e.unary(UnaryOp::Neg, magnitude);
    let power = e.unary(UnaryOp::Exp, negative);
    let sum = e.binary(BinaryOp::Add, one, power);
    let log = e.unary(UnaryOp::Log, sum);
    // 1 + e^-|x| has lost the bits that matter.
    let small = e.series(power, [1.0, -0.5, 1.0 / 3.0, -0.25, 0.2]);
    let log = if_small(e, power, 1.0 / 32.0, small, log);
    let positive = extremum(e, BinaryOp::Max, x, zero);
    e.binary(BinaryOp::Add, positive, log)
}

/// `e^x - 1`, also near 0.
pub(super) fn exp_m1(e: &mut Expression, x: Id) -> Id {
    let (power, one) = (e.unary(UnaryOp::Exp, x), e.f32(1.0));
    let less = e.binary(BinaryOp::Sub, power, one);
    let small = e.series(x, [1.0, 0.5, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0]);
    let magnitude = e.unary(UnaryOp::Abs, x);
    if_small(e, magnitude, 1.0 / 8.0, small, less)
}

fn if_small(e: &mut Expression, magnitude: Id, limit: f32, small: Id, other: Id) -> Id {
    let limit = e.f32(limit);
    let is_small = e.binary(BinaryOp::Lt, magnitude, limit);
    e.select(is_small, small, other)
}

/// The minimum or maximum of two numbers; NaN if one is NaN.
pub(super) fn extremum(e: &mut Expression, op: BinaryOp, a: Id, b: Id) -> Id {
    let result = e.binary(op, a, b);
    if e.ty(a) != Type::F32 {
        return result;
    }
    let (a_is_nan, b_is_nan) = (e.unary(UnaryOp::IsNan, a), e.unary(UnaryOp::IsNan, b));
    let result = e.select(b_is_nan, b, result);
    e.select(a_is_nan, a, result)
}

/// Whether a remainder with the sign of the dividend must move to that of the divisor.
fn has_wrong_sign(e: &mut Expression, remainder: Id, divisor: Id) -> Id {
    let zero = e.number_like(divisor, 0);
    let is_inexact = e.binary(BinaryOp::Ne, remainder, zero);
    let remainder_sign = e.binary(BinaryOp::Lt, remainder, zero);
    let divisor_sign = e.binary(BinaryOp::Lt, divisor, zero);
    let differs = e.binary(BinaryOp::Ne, remainder_sign, divisor_sign);
    e.binary(BinaryOp::And, is_inexact, differs)
}

/// Returns a result, or 0 if the divisor is 0.
fn unless_zero(e: &mut Expression, divisor: Id, result: Id) -> Id {
    let zero = e.number_like(divisor, 0);
    let is_zero = e.binary(BinaryOp::Eq, divisor, zero);
    e.select(is_zero, zero, result)
}

/// The quotient of integers, rounded down; 0 if the divisor is 0.
pub(super) fn floor_divide(e: &mut Expression, a: Id, b: Id) -> Id {
    let quotient = e.binary(BinaryOp::Div, a, b);
    let remainder = e.binary(BinaryOp::Rem, a, b);
    let is_wrong = has_wrong_sign(e, remainder, b);
    let one = e.number_like(a, 1);
    let lower = e.binary(BinaryOp::Sub, quotient, one);
    let result = e.select(is_wrong, lower, quotient);
    unless_zero(e, b, result)
}

/// The remainder of integers with the sign of the divisor; 0 if the divisor is 0.
pub(super) fn remainder(e: &mut Expression, a: Id, b: Id) -> Id {
    let remainder = e.binary(BinaryOp::Rem, a, b);
    let is_wrong = has_wrong_sign(e, remainder, b);
    let moved = e.binary(BinaryOp::Add, remainder, b);
    let result = e.select(is_wrong, moved, remainder);
    unless_zero(e, b, result)
}

/// `x` to the power `y` as IEEE 754 has it: the kernel IR's power is that of positive numbers.
pub(super) fn pow(e: &mut Expression, x: Id, y: Id) -> Id {
    let (zero, one, half) = (e.f32(0.0), e.f32(1.0), e.f32(0.5));
    let magnitude = e.unary(UnaryOp::Abs, x);
    let power = e.binary(BinaryOp::Pow, magnitude, y);
    let power = power_of_zero(e, magnitude, y, power);
    let floor = e.unary(UnaryOp::Floor, y);
    let is_integer = e.binary(BinaryOp::Eq, floor, y);
    let halved = e.binary(BinaryOp::Mul, y, half);
    let halved_floor = e.unary(UnaryOp::Floor, halved);
    let has_fraction = e.binary(BinaryOp::Ne, halved, halved_floor);
    let is_odd = e.binary(BinaryOp::And, is_integer, has_fraction);
    let bits = e.bitcast(Type::I32, x);
    let no_bits = e.number_like(bits, 0);
    let is_minus = e.binary(BinaryOp::Lt, bits, no_bits);
    let changes_sign = e.binary(BinaryOp::And, is_minus, is_odd);
    let opposite = e.unary(UnaryOp::Neg, power);
    let signed = e.select(changes_sign, opposite, power);
    let is_negative = e.binary(BinaryOp::Lt, x, zero);
    let is_infinite = e.unary(UnaryOp::IsInf, x);
    let is_finite = e.unary(UnaryOp::Not, is_infinite);
    let is_fraction = e.unary(UnaryOp::Not, is_integer);
    let is_undefined = e.binary(BinaryOp::And, is_negative, is_fraction);
    let is_undefined = e.binary(BinaryOp::And, is_undefined, is_finite);
    let nan = e.f32(f32::NAN);
    let result = e.select(is_undefined, nan, signed);
    let result = propagate_nan(e, x, y, result);
    let is_one = e.binary(BinaryOp::Eq, x, one);
    let to_zero = e.binary(BinaryOp::Eq, y, zero);
    let is_unit = e.binary(BinaryOp::Eq, magnitude, one);
    let to_infinity = e.unary(UnaryOp::IsInf, y);
    let stays = e.binary(BinaryOp::And, is_unit, to_infinity);
    let is_trivial = e.binary(BinaryOp::Or, is_one, to_zero);
    let is_trivial = e.binary(BinaryOp::Or, is_trivial, stays);
    e.select(is_trivial, one, result)
}

/// Replaces the power of zero, which devices compute from a logarithm.
fn power_of_zero(e: &mut Expression, magnitude: Id, y: Id, power: Id) -> Id {
    let (zero, infinity) = (e.f32(0.0), e.f32(f32::INFINITY));
    let is_zero = e.binary(BinaryOp::Eq, magnitude, zero);
    let is_inverse = e.binary(BinaryOp::Lt, y, zero);
    let of_zero = e.select(is_inverse, infinity, zero);
    e.select(is_zero, of_zero, power)
}

/// Returns NaN if an operand is NaN, else the result.
fn propagate_nan(e: &mut Expression, x: Id, y: Id, result: Id) -> Id {
    let (x_is_nan, y_is_nan) = (e.unary(UnaryOp::IsNan, x), e.unary(UnaryOp::IsNan, y));
    let result = e.select(x_is_nan, x, result);
    e.select(y_is_nan, y, result)
}

/// The error function on the host, with an error below 1e-8.
pub(super) fn erf_reference(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x.abs() > 4.5 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..120 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}
