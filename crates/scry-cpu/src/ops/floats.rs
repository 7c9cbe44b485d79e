//! Operations on floats.

use scry_ir::kir::{BinaryOp, UnaryOp};

use crate::lanes::{
    F16, LaneOp, binary_for_baseline, binary_for_best_isa, binary_for_each_isa,
    binary_lane_by_lane, unary_for_baseline, unary_for_best_isa, unary_for_each_isa,
    unary_lane_by_lane,
};
use crate::math;

/// Operations on `f16` that only change the sign bit, and need no promotion to 32 bits.
pub(super) fn unary_16(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => unary_lane_by_lane(|a: F16| F16(a.0 ^ 0x8000)),
        UnaryOp::Abs => unary_lane_by_lane(|a: F16| F16(a.0 & 0x7fff)),
        _ => return None,
    })
}

pub(super) fn unary_32(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => unary_for_each_isa(|a: f32| -a),
        UnaryOp::Abs => unary_for_each_isa(f32::abs),
        UnaryOp::Sign => unary_for_each_isa(math::sign),
        UnaryOp::Floor => unary_for_each_isa(math::floor),
        UnaryOp::Ceil => unary_for_each_isa(math::ceil),
        UnaryOp::Round => unary_for_each_isa(math::round_even),
        UnaryOp::Trunc => unary_for_each_isa(math::trunc),
        UnaryOp::Fract => unary_for_each_isa(math::fract),
        UnaryOp::Sqrt => unary_for_each_isa(f32::sqrt),
        UnaryOp::InverseSqrt => unary_for_best_isa(math::inverse_sqrt),
        UnaryOp::Exp => unary_for_best_isa(math::exp),
        UnaryOp::Exp2 => unary_for_best_isa(math::exp2),
        UnaryOp::Log => unary_for_best_isa(math::log),
        UnaryOp::Log2 => unary_for_best_isa(math::log2),
        UnaryOp::FrexpFraction => unary_for_each_isa(math::frexp_fraction),
        UnaryOp::FrexpExponent => unary_for_best_isa(math::frexp_exponent),
        UnaryOp::QuantizeF16 => unary_for_best_isa(math::quantize_f16),
        UnaryOp::IsNan => unary_for_each_isa(f32::is_nan),
        UnaryOp::IsInf => unary_for_each_isa(f32::is_infinite),
        _ => return trigonometry_32(op),
    })
}

fn trigonometry_32(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Sin => unary_for_best_isa(math::sin),
        UnaryOp::Cos => unary_for_best_isa(math::cos),
        UnaryOp::Tan => unary_for_best_isa(math::tan),
        UnaryOp::Asin => unary_for_best_isa(math::asin),
        UnaryOp::Acos => unary_for_best_isa(math::acos),
        UnaryOp::Atan => unary_for_best_isa(math::atan),
        UnaryOp::Sinh => unary_for_best_isa(math::sinh),
        UnaryOp::Cosh => unary_for_best_isa(math::cosh),
        UnaryOp::Tanh => unary_for_best_isa(math::tanh),
        UnaryOp::Asinh => unary_for_best_isa(math::asinh),
        UnaryOp::Acosh => unary_for_best_isa(math::acosh),
        UnaryOp::Atanh => unary_for_best_isa(math::atanh),
        _ => return None,
    })
}

pub(super) fn binary_32(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => binary_for_each_isa(|a: f32, b: f32| a + b),
        BinaryOp::Sub => binary_for_each_isa(|a: f32, b: f32| a - b),
        BinaryOp::Mul => binary_for_each_isa(|a: f32, b: f32| a * b),
        BinaryOp::Div => binary_for_each_isa(|a: f32, b: f32| a / b),
        BinaryOp::Rem => binary_for_best_isa(math::rem),
        BinaryOp::Min => binary_for_each_isa(math::min),
        BinaryOp::Max => binary_for_each_isa(math::max),
        BinaryOp::Eq => binary_for_each_isa(|a: f32, b: f32| a == b),
        BinaryOp::Ne => binary_for_each_isa(|a: f32, b: f32| a != b),
        BinaryOp::Lt => binary_for_each_isa(|a: f32, b: f32| a < b),
        BinaryOp::Le => binary_for_each_isa(|a: f32, b: f32| a <= b),
        BinaryOp::Gt => binary_for_each_isa(|a: f32, b: f32| a > b),
        BinaryOp::Ge => binary_for_each_isa(|a: f32, b: f32| a >= b),
        BinaryOp::Pow => binary_for_best_isa(math::pow),
        BinaryOp::Atan2 => binary_for_best_isa(math::atan2),
        BinaryOp::Ldexp => binary_for_best_isa(math::ldexp),
        _ => return None,
    })
}

pub(super) fn unary_64(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => unary_for_baseline(|a: f64| -a),
        UnaryOp::Abs => unary_for_baseline(f64::abs),
        UnaryOp::Sign => unary_lane_by_lane(math::f64::sign),
        UnaryOp::Floor => unary_lane_by_lane(math::f64::floor),
        UnaryOp::Ceil => unary_lane_by_lane(math::f64::ceil),
        UnaryOp::Round => unary_lane_by_lane(math::f64::round_even),
        UnaryOp::Trunc => unary_lane_by_lane(math::f64::trunc),
        UnaryOp::Fract => unary_lane_by_lane(math::f64::fract),
        UnaryOp::Sqrt => unary_for_baseline(f64::sqrt),
        UnaryOp::InverseSqrt => unary_lane_by_lane(math::f64::inverse_sqrt),
        UnaryOp::Exp => unary_lane_by_lane(math::f64::exp),
        UnaryOp::Exp2 => unary_lane_by_lane(math::f64::exp2),
        UnaryOp::Log => unary_lane_by_lane(math::f64::log),
        UnaryOp::Log2 => unary_lane_by_lane(math::f64::log2),
        UnaryOp::FrexpFraction => unary_lane_by_lane(math::f64::frexp_fraction),
        UnaryOp::FrexpExponent => unary_lane_by_lane(math::f64::frexp_exponent),
        UnaryOp::IsNan => unary_lane_by_lane(f64::is_nan),
        UnaryOp::IsInf => unary_lane_by_lane(f64::is_infinite),
        _ => return trigonometry_64(op),
    })
}

fn trigonometry_64(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Sin => unary_lane_by_lane(math::f64::sin),
        UnaryOp::Cos => unary_lane_by_lane(math::f64::cos),
        UnaryOp::Tan => unary_lane_by_lane(math::f64::tan),
        UnaryOp::Asin => unary_lane_by_lane(math::f64::asin),
        UnaryOp::Acos => unary_lane_by_lane(math::f64::acos),
        UnaryOp::Atan => unary_lane_by_lane(math::f64::atan),
        UnaryOp::Sinh => unary_lane_by_lane(math::f64::sinh),
        UnaryOp::Cosh => unary_lane_by_lane(math::f64::cosh),
        UnaryOp::Tanh => unary_lane_by_lane(math::f64::tanh),
        UnaryOp::Asinh => unary_lane_by_lane(math::f64::asinh),
        UnaryOp::Acosh => unary_lane_by_lane(math::f64::acosh),
        UnaryOp::Atanh => unary_lane_by_lane(math::f64::atanh),
        _ => return None,
    })
}

pub(super) fn binary_64(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => binary_for_baseline(|a: f64, b: f64| a + b),
        BinaryOp::Sub => binary_for_baseline(|a: f64, b: f64| a - b),
        BinaryOp::Mul => binary_for_baseline(|a: f64, b: f64| a * b),
        BinaryOp::Div => binary_for_baseline(|a: f64, b: f64| a / b),
        BinaryOp::Rem => binary_lane_by_lane(math::f64::rem),
        BinaryOp::Min => binary_for_baseline(math::f64::min),
        BinaryOp::Max => binary_for_baseline(math::f64::max),
        BinaryOp::Eq => binary_for_baseline(|a: f64, b: f64| a == b),
        BinaryOp::Ne => binary_for_baseline(|a: f64, b: f64| a != b),
        BinaryOp::Lt => binary_for_baseline(|a: f64, b: f64| a < b),
        BinaryOp::Le => binary_for_baseline(|a: f64, b: f64| a <= b),
        BinaryOp::Gt => binary_for_baseline(|a: f64, b: f64| a > b),
        BinaryOp::Ge => binary_for_baseline(|a: f64, b: f64| a >= b),
        BinaryOp::Pow => binary_lane_by_lane(math::f64::pow),
        BinaryOp::Atan2 => binary_lane_by_lane(math::f64::atan2),
        BinaryOp::Ldexp => binary_lane_by_lane(math::f64::ldexp),
        _ => return None,
    })
}

/// Operations of `f16` for subgroup reductions.
pub(super) fn binary_16(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    fn combine(a: F16, b: F16, f: impl Fn(f32, f32) -> f32) -> F16 {
        F16(math::f16_bits(f(math::f32_of_f16(a.0), math::f32_of_f16(b.0))))
    }
    Some(match op {
        BinaryOp::Add => binary_lane_by_lane(|a: F16, b: F16| combine(a, b, |a, b| a + b)),
        BinaryOp::Mul => binary_lane_by_lane(|a: F16, b: F16| combine(a, b, |a, b| a * b)),
        BinaryOp::Min => binary_lane_by_lane(|a: F16, b: F16| combine(a, b, math::min)),
        BinaryOp::Max => binary_lane_by_lane(|a: F16, b: F16| combine(a, b, math::max)),
        _ => return None,
    })
}
