//! Operations on floats.

use scry_ir::kir::{BinaryOp, UnaryOp};

use crate::lanes::{
    F16, LaneOp, best_binary, best_unary, binary, plain_binary, plain_unary, rare_binary,
    rare_unary, unary,
};
use crate::math;

/// Operations on `f16` that only change the sign bit, and need no promotion to 32 bits.
pub(super) fn unary_16(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => rare_unary(|a: F16| F16(a.0 ^ 0x8000)),
        UnaryOp::Abs => rare_unary(|a: F16| F16(a.0 & 0x7fff)),
        _ => return None,
    })
}

pub(super) fn unary_32(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => unary(|a: f32| -a),
        UnaryOp::Abs => unary(f32::abs),
        UnaryOp::Sign => unary(math::sign),
        UnaryOp::Floor => unary(math::floor),
        UnaryOp::Ceil => unary(math::ceil),
        UnaryOp::Round => unary(math::round_even),
        UnaryOp::Trunc => unary(math::trunc),
        UnaryOp::Fract => unary(math::fract),
        UnaryOp::Sqrt => unary(f32::sqrt),
        UnaryOp::InverseSqrt => best_unary(math::inverse_sqrt),
        UnaryOp::Exp => best_unary(math::exp),
        UnaryOp::Exp2 => best_unary(math::exp2),
        UnaryOp::Log => best_unary(math::log),
        UnaryOp::Log2 => best_unary(math::log2),
        UnaryOp::FrexpFraction => unary(math::frexp_fraction),
        UnaryOp::FrexpExponent => best_unary(math::frexp_exponent),
        UnaryOp::QuantizeF16 => best_unary(math::quantize_f16),
        UnaryOp::IsNan => unary(f32::is_nan),
        UnaryOp::IsInf => unary(f32::is_infinite),
        _ => return trigonometry_32(op),
    })
}

fn trigonometry_32(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Sin => best_unary(math::sin),
        UnaryOp::Cos => best_unary(math::cos),
        UnaryOp::Tan => best_unary(math::tan),
        UnaryOp::Asin => best_unary(math::asin),
        UnaryOp::Acos => best_unary(math::acos),
        UnaryOp::Atan => best_unary(math::atan),
        UnaryOp::Sinh => best_unary(math::sinh),
        UnaryOp::Cosh => best_unary(math::cosh),
        UnaryOp::Tanh => best_unary(math::tanh),
        UnaryOp::Asinh => best_unary(math::asinh),
        UnaryOp::Acosh => best_unary(math::acosh),
        UnaryOp::Atanh => best_unary(math::atanh),
        _ => return None,
    })
}

pub(super) fn binary_32(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => binary(|a: f32, b: f32| a + b),
        BinaryOp::Sub => binary(|a: f32, b: f32| a - b),
        BinaryOp::Mul => binary(|a: f32, b: f32| a * b),
        BinaryOp::Div => binary(|a: f32, b: f32| a / b),
        BinaryOp::Rem => best_binary(math::rem),
        BinaryOp::Min => binary(math::min),
        BinaryOp::Max => binary(math::max),
        BinaryOp::Eq => binary(|a: f32, b: f32| a == b),
        BinaryOp::Ne => binary(|a: f32, b: f32| a != b),
        BinaryOp::Lt => binary(|a: f32, b: f32| a < b),
        BinaryOp::Le => binary(|a: f32, b: f32| a <= b),
        BinaryOp::Gt => binary(|a: f32, b: f32| a > b),
        BinaryOp::Ge => binary(|a: f32, b: f32| a >= b),
        BinaryOp::Pow => best_binary(math::pow),
        BinaryOp::Atan2 => best_binary(math::atan2),
        BinaryOp::Ldexp => best_binary(math::ldexp),
        _ => return None,
    })
}

pub(super) fn unary_64(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => plain_unary(|a: f64| -a),
        UnaryOp::Abs => plain_unary(f64::abs),
        UnaryOp::Sign => rare_unary(math::f64::sign),
        UnaryOp::Floor => rare_unary(math::f64::floor),
        UnaryOp::Ceil => rare_unary(math::f64::ceil),
        UnaryOp::Round => rare_unary(math::f64::round_even),
        UnaryOp::Trunc => rare_unary(math::f64::trunc),
        UnaryOp::Fract => rare_unary(math::f64::fract),
        UnaryOp::Sqrt => plain_unary(f64::sqrt),
        UnaryOp::InverseSqrt => rare_unary(math::f64::inverse_sqrt),
        UnaryOp::Exp => rare_unary(math::f64::exp),
        UnaryOp::Exp2 => rare_unary(math::f64::exp2),
        UnaryOp::Log => rare_unary(math::f64::log),
        UnaryOp::Log2 => rare_unary(math::f64::log2),
        UnaryOp::FrexpFraction => rare_unary(math::f64::frexp_fraction),
        UnaryOp::FrexpExponent => rare_unary(math::f64::frexp_exponent),
        UnaryOp::IsNan => rare_unary(f64::is_nan),
        UnaryOp::IsInf => rare_unary(f64::is_infinite),
        _ => return trigonometry_64(op),
    })
}

fn trigonometry_64(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Sin => rare_unary(math::f64::sin),
        UnaryOp::Cos => rare_unary(math::f64::cos),
        UnaryOp::Tan => rare_unary(math::f64::tan),
        UnaryOp::Asin => rare_unary(math::f64::asin),
        UnaryOp::Acos => rare_unary(math::f64::acos),
        UnaryOp::Atan => rare_unary(math::f64::atan),
        UnaryOp::Sinh => rare_unary(math::f64::sinh),
        UnaryOp::Cosh => rare_unary(math::f64::cosh),
        UnaryOp::Tanh => rare_unary(math::f64::tanh),
        UnaryOp::Asinh => rare_unary(math::f64::asinh),
        UnaryOp::Acosh => rare_unary(math::f64::acosh),
        UnaryOp::Atanh => rare_unary(math::f64::atanh),
        _ => return None,
    })
}

pub(super) fn binary_64(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => plain_binary(|a: f64, b: f64| a + b),
        BinaryOp::Sub => plain_binary(|a: f64, b: f64| a - b),
        BinaryOp::Mul => plain_binary(|a: f64, b: f64| a * b),
        BinaryOp::Div => plain_binary(|a: f64, b: f64| a / b),
        BinaryOp::Rem => rare_binary(math::f64::rem),
        BinaryOp::Min => plain_binary(math::f64::min),
        BinaryOp::Max => plain_binary(math::f64::max),
        BinaryOp::Eq => plain_binary(|a: f64, b: f64| a == b),
        BinaryOp::Ne => plain_binary(|a: f64, b: f64| a != b),
        BinaryOp::Lt => plain_binary(|a: f64, b: f64| a < b),
        BinaryOp::Le => plain_binary(|a: f64, b: f64| a <= b),
        BinaryOp::Gt => plain_binary(|a: f64, b: f64| a > b),
        BinaryOp::Ge => plain_binary(|a: f64, b: f64| a >= b),
        BinaryOp::Pow => rare_binary(math::f64::pow),
        BinaryOp::Atan2 => rare_binary(math::f64::atan2),
        BinaryOp::Ldexp => rare_binary(math::f64::ldexp),
        _ => return None,
    })
}

/// Operations of `f16` for subgroup reductions.
pub(super) fn binary_16(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    fn combine(a: F16, b: F16, f: impl Fn(f32, f32) -> f32) -> F16 {
        F16(math::f16_bits(f(math::f32_of_f16(a.0), math::f32_of_f16(b.0))))
    }
    Some(match op {
        BinaryOp::Add => rare_binary(|a: F16, b: F16| combine(a, b, |a, b| a + b)),
        BinaryOp::Mul => rare_binary(|a: F16, b: F16| combine(a, b, |a, b| a * b)),
        BinaryOp::Min => rare_binary(|a: F16, b: F16| combine(a, b, math::min)),
        BinaryOp::Max => rare_binary(|a: F16, b: F16| combine(a, b, math::max)),
        _ => return None,
    })
}
