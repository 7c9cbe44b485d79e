//! Operations on floats.

use scry_ir::kir::{BinaryOp, UnaryOp};

use crate::lanes::{
    F16, LaneOp, best_one, best_two, one, plain_one, plain_two, rare_one, rare_two, two,
};
use crate::math;

/// Operations on `f16` that only inspect bits, and need no promotion to 32 bits.
pub(super) fn unary_16(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => rare_one(|a: F16| F16(a.0 ^ 0x8000)),
        UnaryOp::Abs => rare_one(|a: F16| F16(a.0 & 0x7fff)),
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
        UnaryOp::InverseSqrt => best_one(math::inverse_sqrt),
        UnaryOp::Exp => best_one(math::exp),
        UnaryOp::Exp2 => best_one(math::exp2),
        UnaryOp::Log => best_one(math::log),
        UnaryOp::Log2 => best_one(math::log2),
        UnaryOp::FrexpFraction => one(math::frexp_fraction),
        UnaryOp::FrexpExponent => best_one(math::frexp_exponent),
        UnaryOp::QuantizeF16 => best_one(math::quantize_f16),
        UnaryOp::IsNan => one(f32::is_nan),
        UnaryOp::IsInf => one(f32::is_infinite),
        _ => return trigonometry_32(op),
    })
}

fn trigonometry_32(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Sin => best_one(math::sin),
        UnaryOp::Cos => best_one(math::cos),
        UnaryOp::Tan => best_one(math::tan),
        UnaryOp::Asin => best_one(math::asin),
        UnaryOp::Acos => best_one(math::acos),
        UnaryOp::Atan => best_one(math::atan),
        UnaryOp::Sinh => best_one(math::sinh),
        UnaryOp::Cosh => best_one(math::cosh),
        UnaryOp::Tanh => best_one(math::tanh),
        UnaryOp::Asinh => best_one(math::asinh),
        UnaryOp::Acosh => best_one(math::acosh),
        UnaryOp::Atanh => best_one(math::atanh),
        _ => return None,
    })
}

pub(super) fn binary_32(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => two(|a: f32, b: f32| a + b),
        BinaryOp::Sub => two(|a: f32, b: f32| a - b),
        BinaryOp::Mul => two(|a: f32, b: f32| a * b),
        BinaryOp::Div => two(|a: f32, b: f32| a / b),
        BinaryOp::Rem => best_two(math::rem),
        BinaryOp::Min => two(math::min),
        BinaryOp::Max => two(math::max),
        BinaryOp::Eq => two(|a: f32, b: f32| a == b),
        BinaryOp::Ne => two(|a: f32, b: f32| a != b),
        BinaryOp::Lt => two(|a: f32, b: f32| a < b),
        BinaryOp::Le => two(|a: f32, b: f32| a <= b),
        BinaryOp::Gt => two(|a: f32, b: f32| a > b),
        BinaryOp::Ge => two(|a: f32, b: f32| a >= b),
        BinaryOp::Pow => best_two(math::pow),
        BinaryOp::Atan2 => best_two(math::atan2),
        BinaryOp::Ldexp => best_two(math::ldexp),
        _ => return None,
    })
}

pub(super) fn unary_64(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => plain_one(|a: f64| -a),
        UnaryOp::Abs => plain_one(f64::abs),
        UnaryOp::Sign => rare_one(math::f64::sign),
        UnaryOp::Floor => rare_one(math::f64::floor),
        UnaryOp::Ceil => rare_one(math::f64::ceil),
        UnaryOp::Round => rare_one(math::f64::round_even),
        UnaryOp::Trunc => rare_one(math::f64::trunc),
        UnaryOp::Fract => rare_one(math::f64::fract),
        UnaryOp::Sqrt => plain_one(f64::sqrt),
        UnaryOp::InverseSqrt => rare_one(math::f64::inverse_sqrt),
        UnaryOp::Exp => rare_one(math::f64::exp),
        UnaryOp::Exp2 => rare_one(math::f64::exp2),
        UnaryOp::Log => rare_one(math::f64::log),
        UnaryOp::Log2 => rare_one(math::f64::log2),
        UnaryOp::FrexpFraction => rare_one(math::f64::frexp_fraction),
        UnaryOp::FrexpExponent => rare_one(math::f64::frexp_exponent),
        UnaryOp::IsNan => rare_one(f64::is_nan),
        UnaryOp::IsInf => rare_one(f64::is_infinite),
        _ => return trigonometry_64(op),
    })
}

fn trigonometry_64(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Sin => rare_one(math::f64::sin),
        UnaryOp::Cos => rare_one(math::f64::cos),
        UnaryOp::Tan => rare_one(math::f64::tan),
        UnaryOp::Asin => rare_one(math::f64::asin),
        UnaryOp::Acos => rare_one(math::f64::acos),
        UnaryOp::Atan => rare_one(math::f64::atan),
        UnaryOp::Sinh => rare_one(math::f64::sinh),
        UnaryOp::Cosh => rare_one(math::f64::cosh),
        UnaryOp::Tanh => rare_one(math::f64::tanh),
        UnaryOp::Asinh => rare_one(math::f64::asinh),
        UnaryOp::Acosh => rare_one(math::f64::acosh),
        UnaryOp::Atanh => rare_one(math::f64::atanh),
        _ => return None,
    })
}

pub(super) fn binary_64(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => plain_two(|a: f64, b: f64| a + b),
        BinaryOp::Sub => plain_two(|a: f64, b: f64| a - b),
        BinaryOp::Mul => plain_two(|a: f64, b: f64| a * b),
        BinaryOp::Div => plain_two(|a: f64, b: f64| a / b),
        BinaryOp::Rem => rare_two(math::f64::rem),
        BinaryOp::Min => plain_two(math::f64::min),
        BinaryOp::Max => plain_two(math::f64::max),
        BinaryOp::Eq => plain_two(|a: f64, b: f64| a == b),
        BinaryOp::Ne => plain_two(|a: f64, b: f64| a != b),
        BinaryOp::Lt => plain_two(|a: f64, b: f64| a < b),
        BinaryOp::Le => plain_two(|a: f64, b: f64| a <= b),
        BinaryOp::Gt => plain_two(|a: f64, b: f64| a > b),
        BinaryOp::Ge => plain_two(|a: f64, b: f64| a >= b),
        BinaryOp::Pow => rare_two(math::f64::pow),
        BinaryOp::Atan2 => rare_two(math::f64::atan2),
        BinaryOp::Ldexp => rare_two(math::f64::ldexp),
        _ => return None,
    })
}

/// Operations of `f16` for subgroup reductions.
pub(super) fn binary_16(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    fn combine(a: F16, b: F16, f: impl Fn(f32, f32) -> f32) -> F16 {
        F16(math::f16_bits(f(math::f32_of_f16(a.0), math::f32_of_f16(b.0))))
    }
    Some(match op {
        BinaryOp::Add => rare_two(|a: F16, b: F16| combine(a, b, |a, b| a + b)),
        BinaryOp::Mul => rare_two(|a: F16, b: F16| combine(a, b, |a, b| a * b)),
        BinaryOp::Min => rare_two(|a: F16, b: F16| combine(a, b, math::min)),
        BinaryOp::Max => rare_two(|a: F16, b: F16| combine(a, b, math::max)),
        _ => return None,
    })
}
