//! Conversions between types.

use scry_ir::kir::Type;

use super::copy;
use crate::lanes::{F16, LaneOp, unary_for_baseline, unary_for_each_isa, unary_lane_by_lane};
use crate::math;

/// The largest `f32` that is at most `i32::MAX`, `u32::MAX`, `i64::MAX` and `u64::MAX`. Conversions
/// saturate there: WGSL clamps to the range of values that both types represent.
const I32_MAX: f32 = 2_147_483_520.0;
const U32_MAX: f32 = 4_294_967_040.0;
const I64_MAX: f32 = 9_223_371_487_098_961_920.0;
const U64_MAX: f32 = 18_446_742_974_197_923_840.0;

/// The largest `f64` that is at most `i64::MAX` and `u64::MAX`.
const I64_MAX_AS_F64: f64 = 9_223_372_036_854_774_784.0;
const U64_MAX_AS_F64: f64 = 18_446_744_073_709_549_568.0;

/// Returns the direct conversion, if there is one; others go through a wider type.
pub(crate) fn convert(from: Type, to: Type) -> Option<&'static dyn LaneOp> {
    match from {
        Type::Bool => from_bool(to),
        Type::U16 => from_u16(to),
        Type::I16 => from_i16(to),
        Type::U32 => from_u32(to),
        Type::I32 => from_i32(to),
        Type::U64 => from_u64(to),
        Type::I64 => from_i64(to),
        Type::F16 => from_f16(to),
        Type::F32 => from_f32(to),
        Type::F64 => from_f64(to),
        Type::Matrix(_) => None,
    }
}

fn from_bool(to: Type) -> Option<&'static dyn LaneOp> {
    Some(match to {
        Type::U16 | Type::I16 => unary_lane_by_lane(|a: bool| u16::from(a)),
        Type::U32 | Type::I32 => unary_for_baseline(|a: bool| u32::from(a)),
        Type::U64 | Type::I64 => unary_lane_by_lane(|a: bool| u64::from(a)),
        // 1.0 as an `f16`.
        Type::F16 => unary_lane_by_lane(|a: bool| F16(u16::from(a) * 0x3c00)),
        Type::F32 => unary_for_baseline(|a: bool| f32::from(u8::from(a))),
        Type::F64 => unary_lane_by_lane(|a: bool| f64::from(u8::from(a))),
        Type::Bool | Type::Matrix(_) => return None,
    })
}

fn from_u16(to: Type) -> Option<&'static dyn LaneOp> {
    Some(match to {
        Type::Bool => unary_lane_by_lane(|a: u16| a != 0),
        Type::I16 => copy(to),
        Type::U32 | Type::I32 => unary_for_baseline(|a: u16| u32::from(a)),
        Type::U64 | Type::I64 => unary_lane_by_lane(|a: u16| u64::from(a)),
        Type::F32 => unary_lane_by_lane(|a: u16| f32::from(a)),
        Type::F64 => unary_lane_by_lane(|a: u16| f64::from(a)),
        Type::U16 | Type::F16 | Type::Matrix(_) => return None,
    })
}

fn from_i16(to: Type) -> Option<&'static dyn LaneOp> {
    Some(match to {
        Type::Bool => unary_lane_by_lane(|a: i16| a != 0),
        Type::U16 => copy(to),
        Type::U32 | Type::I32 => unary_for_baseline(|a: i16| i32::from(a)),
        Type::U64 | Type::I64 => unary_lane_by_lane(|a: i16| i64::from(a)),
        Type::F32 => unary_lane_by_lane(|a: i16| f32::from(a)),
        Type::F64 => unary_lane_by_lane(|a: i16| f64::from(a)),
        Type::I16 | Type::F16 | Type::Matrix(_) => return None,
    })
}

fn from_u32(to: Type) -> Option<&'static dyn LaneOp> {
    Some(match to {
        Type::Bool => unary_for_baseline(|a: u32| a != 0),
        Type::U16 | Type::I16 => unary_for_baseline(|a: u32| a as u16),
        Type::I32 => copy(to),
        Type::U64 | Type::I64 => unary_for_baseline(|a: u32| u64::from(a)),
        Type::F32 => unary_for_each_isa(|a: u32| a as f32),
        Type::F64 => unary_for_baseline(|a: u32| f64::from(a)),
        Type::U32 | Type::F16 | Type::Matrix(_) => return None,
    })
}

fn from_i32(to: Type) -> Option<&'static dyn LaneOp> {
    Some(match to {
        Type::Bool => unary_for_baseline(|a: i32| a != 0),
        Type::U16 | Type::I16 => unary_for_baseline(|a: i32| a as u16),
        Type::U32 => copy(to),
        Type::U64 | Type::I64 => unary_for_baseline(|a: i32| i64::from(a)),
        Type::F32 => unary_for_each_isa(|a: i32| a as f32),
        Type::F64 => unary_for_baseline(|a: i32| f64::from(a)),
        Type::I32 | Type::F16 | Type::Matrix(_) => return None,
    })
}

fn from_u64(to: Type) -> Option<&'static dyn LaneOp> {
    Some(match to {
        Type::Bool => unary_lane_by_lane(|a: u64| a != 0),
        Type::U16 | Type::I16 => unary_lane_by_lane(|a: u64| a as u16),
        Type::U32 | Type::I32 => unary_for_baseline(|a: u64| a as u32),
        Type::I64 => copy(to),
        Type::F32 => unary_lane_by_lane(|a: u64| a as f32),
        Type::F64 => unary_lane_by_lane(|a: u64| a as f64),
        Type::U64 | Type::F16 | Type::Matrix(_) => return None,
    })
}

fn from_i64(to: Type) -> Option<&'static dyn LaneOp> {
    Some(match to {
        Type::Bool => unary_lane_by_lane(|a: i64| a != 0),
        Type::U16 | Type::I16 => unary_lane_by_lane(|a: i64| a as u16),
        Type::U32 | Type::I32 => unary_for_baseline(|a: i64| a as u32),
        Type::U64 => copy(to),
        Type::F32 => unary_lane_by_lane(|a: i64| a as f32),
        Type::F64 => unary_lane_by_lane(|a: i64| a as f64),
        Type::I64 | Type::F16 | Type::Matrix(_) => return None,
    })
}

/// Returns the smaller of `a` and `limit`; NaN stays NaN, which converts to the integer 0.
#[inline(always)]
fn clamp_to_max(a: f32, limit: f32) -> f32 {
    if a > limit { limit } else { a }
}

/// Converts an `f16` to `f32`, with infinities clamped to the largest finite `f16`.
#[inline(always)]
fn clamp_to_finite(a: F16) -> f32 {
    clamp_to_max(-clamp_to_max(-math::f32_of_f16(a.0), 65504.0), 65504.0)
}

fn from_f16(to: Type) -> Option<&'static dyn LaneOp> {
    Some(match to {
        Type::Bool => unary_lane_by_lane(|a: F16| a.0 & 0x7fff != 0),
        // The largest `f16` that is at most `i16::MAX`.
        Type::I16 => unary_lane_by_lane(|a: F16| clamp_to_max(clamp_to_finite(a), 32752.0) as i16),
        Type::U16 => unary_lane_by_lane(|a: F16| clamp_to_finite(a) as u16),
        Type::I32 => unary_lane_by_lane(|a: F16| clamp_to_finite(a) as i32),
        Type::U32 => unary_lane_by_lane(|a: F16| clamp_to_finite(a) as u32),
        Type::I64 => unary_lane_by_lane(|a: F16| clamp_to_finite(a) as i64),
        Type::U64 => unary_lane_by_lane(|a: F16| clamp_to_finite(a) as u64),
        Type::F32 => unary_for_each_isa(|a: F16| math::f32_of_f16(a.0)),
        Type::F16 | Type::F64 | Type::Matrix(_) => return None,
    })
}

fn from_f32(to: Type) -> Option<&'static dyn LaneOp> {
    Some(match to {
        Type::Bool => unary_for_baseline(|a: f32| a != 0.0),
        Type::U16 => unary_lane_by_lane(|a: f32| a as u16),
        Type::I16 => unary_lane_by_lane(|a: f32| a as i16),
        Type::U32 => unary_for_each_isa(|a: f32| clamp_to_max(a, U32_MAX) as u32),
        Type::I32 => unary_for_each_isa(|a: f32| clamp_to_max(a, I32_MAX) as i32),
        Type::U64 => unary_lane_by_lane(|a: f32| clamp_to_max(a, U64_MAX) as u64),
        Type::I64 => unary_lane_by_lane(|a: f32| clamp_to_max(a, I64_MAX) as i64),
        Type::F16 => unary_for_each_isa(|a: f32| F16(math::f16_bits(a))),
        Type::F64 => unary_for_baseline(|a: f32| f64::from(a)),
        Type::F32 | Type::Matrix(_) => return None,
    })
}

fn from_f64(to: Type) -> Option<&'static dyn LaneOp> {
    Some(match to {
        Type::Bool => unary_lane_by_lane(|a: f64| a != 0.0),
        Type::U16 => unary_lane_by_lane(|a: f64| a as u16),
        Type::I16 => unary_lane_by_lane(|a: f64| a as i16),
        Type::U32 => unary_lane_by_lane(|a: f64| a as u32),
        Type::I32 => unary_lane_by_lane(|a: f64| a as i32),
        Type::U64 => unary_lane_by_lane(|a: f64| {
            (if a > U64_MAX_AS_F64 { U64_MAX_AS_F64 } else { a }) as u64
        }),
        Type::I64 => unary_lane_by_lane(|a: f64| {
            (if a > I64_MAX_AS_F64 { I64_MAX_AS_F64 } else { a }) as i64
        }),
        Type::F32 => unary_for_baseline(|a: f64| a as f32),
        Type::F16 => unary_lane_by_lane(|a: f64| F16(math::f16_bits_of_f64(a))),
        Type::F64 | Type::Matrix(_) => return None,
    })
}
