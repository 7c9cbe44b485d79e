//! Floats.

use scry_ir::kir::{BinaryOp, UnaryOp};

use crate::lanes::{F16, LaneOp, one, two};
use crate::math;

/// What of binary16 is not computed in 32 bits: what only looks at bits.
pub(super) fn unary_16(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => one(|a: F16| F16(a.0 ^ 0x8000)),
        UnaryOp::Abs => one(|a: F16| F16(a.0 & 0x7fff)),
        _ => return None,
    })
}

pub(super) fn unary_32(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => one(|a: f32| -a),
        UnaryOp::Abs => one(f32::abs),
        UnaryOp::Sign => one(math::sign),
        UnaryOp::Floor => one(math::floor),
        UnaryOp::Ceil => one(math::ceil),
        UnaryOp::Round => one(math::round_even),
        UnaryOp::Trunc => one(math::trunc),
        UnaryOp::Fract => one(math::fract),
        UnaryOp::Sqrt => one(f32::sqrt),
        UnaryOp::InverseSqrt => one(math::inverse_sqrt),
        UnaryOp::Exp => one(math::exp),
        UnaryOp::Exp2 => one(math::exp2),
        UnaryOp::Log => one(math::log),
        UnaryOp::Log2 => one(math::log2),
        UnaryOp::FrexpFraction => one(math::frexp_fraction),
        UnaryOp::FrexpExponent => one(math::frexp_exponent),
        UnaryOp::QuantizeF16 => one(math::quantize_f16),
        UnaryOp::IsNan => one(f32::is_nan),
        UnaryOp::IsInf => one(f32::is_infinite),
        _ => return trigonometry_32(op),
    })
}

fn trigonometry_32(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Sin => one(math::sin),
        UnaryOp::Cos => one(math::cos),
        UnaryOp::Tan => one(math::tan),
        UnaryOp::Asin => one(math::asin),
        UnaryOp::Acos => one(math::acos),
        UnaryOp::Atan => one(math::atan),
        UnaryOp::Sinh => one(math::sinh),
        UnaryOp::Cosh => one(math::cosh),
        UnaryOp::Tanh => one(math::tanh),
        UnaryOp::Asinh => one(math::asinh),
        UnaryOp::Acosh => one(math::acosh),
        UnaryOp::Atanh => one(math::atanh),
        _ => return None,
    })
}

pub(super) fn binary_32(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => two(|a: f32, b: f32| a + b),
        BinaryOp::Sub => two(|a: f32, b: f32| a - b),
        BinaryOp::Mul => two(|a: f32, b: f32| a * b),
        BinaryOp::Div => two(|a: f32, b: f32| a / b),
        BinaryOp::Rem => two(math::rem),
        BinaryOp::Min => two(math::min),
        BinaryOp::Max => two(math::max),
        BinaryOp::Eq => two(|a: f32, b: f32| a == b),
        BinaryOp::Ne => two(|a: f32, b: f32| a != b),
        BinaryOp::Lt => two(|a: f32, b: f32| a < b),
        BinaryOp::Le => two(|a: f32, b: f32| a <= b),
        BinaryOp::Gt => two(|a: f32, b: f32| a > b),
        BinaryOp::Ge => two(|a: f32, b: f32| a >= b),
        BinaryOp::Pow => two(math::pow),
        BinaryOp::Atan2 => two(math::atan2),
        BinaryOp::Ldexp => two(math::ldexp),
        _ => return None,
    })
}

pub(super) fn unary_64(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => one(|a: f64| -a),
        UnaryOp::Abs => one(f64::abs),
        UnaryOp::Sign => one(math::f64::sign),
        UnaryOp::Floor => one(math::f64::floor),
        UnaryOp::Ceil => one(math::f64::ceil),
        UnaryOp::Round => one(math::f64::round_even),
        UnaryOp::Trunc => one(math::f64::trunc),
        UnaryOp::Fract => one(math::f64::fract),
        UnaryOp::Sqrt => one(f64::sqrt),
        UnaryOp::InverseSqrt => one(math::f64::inverse_sqrt),
        UnaryOp::Exp => one(math::f64::exp),
        UnaryOp::Exp2 => one(math::f64::exp2),
        UnaryOp::Log => one(math::f64::log),
        UnaryOp::Log2 => one(math::f64::log2),
        UnaryOp::FrexpFraction => one(math::f64::frexp_fraction),
        UnaryOp::FrexpExponent => one(math::f64::frexp_exponent),
        UnaryOp::IsNan => one(f64::is_nan),
        UnaryOp::IsInf => one(f64::is_infinite),
        _ => return trigonometry_64(op),
    })
}

fn trigonometry_64(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Sin => one(math::f64::sin),
        UnaryOp::Cos => one(math::f64::cos),
        UnaryOp::Tan => one(math::f64::tan),
        UnaryOp::Asin => one(math::f64::asin),
        UnaryOp::Acos => one(math::f64::acos),
        UnaryOp::Atan => one(math::f64::atan),
        UnaryOp::Sinh => one(math::f64::sinh),
        UnaryOp::Cosh => one(math::f64::cosh),
        UnaryOp::Tanh => one(math::f64::tanh),
        UnaryOp::Asinh => one(math::f64::asinh),
        UnaryOp::Acosh => one(math::f64::acosh),
        UnaryOp::Atanh => one(math::f64::atanh),
        _ => return None,
    })
}

pub(super) fn binary_64(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => two(|a: f64, b: f64| a + b),
        BinaryOp::Sub => two(|a: f64, b: f64| a - b),
        BinaryOp::Mul => two(|a: f64, b: f64| a * b),
        BinaryOp::Div => two(|a: f64, b: f64| a / b),
        BinaryOp::Rem => two(math::f64::rem),
        BinaryOp::Min => two(math::f64::min),
        BinaryOp::Max => two(math::f64::max),
        BinaryOp::Eq => two(|a: f64, b: f64| a == b),
        BinaryOp::Ne => two(|a: f64, b: f64| a != b),
        BinaryOp::Lt => two(|a: f64, b: f64| a < b),
        BinaryOp::Le => two(|a: f64, b: f64| a <= b),
        BinaryOp::Gt => two(|a: f64, b: f64| a > b),
        BinaryOp::Ge => two(|a: f64, b: f64| a >= b),
        BinaryOp::Pow => two(math::f64::pow),
        BinaryOp::Atan2 => two(math::f64::atan2),
        BinaryOp::Ldexp => two(math::f64::ldexp),
        _ => return None,
    })
}

/// What a subgroup combines binary16 numbers with.
pub(super) fn binary_16(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    fn combine(a: F16, b: F16, f: impl Fn(f32, f32) -> f32) -> F16 {
        F16(math::f16_bits(f(math::f32_of_f16(a.0), math::f32_of_f16(b.0))))
    }
    Some(match op {
        BinaryOp::Add => two(|a: F16, b: F16| combine(a, b, |a, b| a + b)),
        BinaryOp::Mul => two(|a: F16, b: F16| combine(a, b, |a, b| a * b)),
        BinaryOp::Min => two(|a: F16, b: F16| combine(a, b, math::min)),
        BinaryOp::Max => two(|a: F16, b: F16| combine(a, b, math::max)),
        _ => return None,
    })
}
