//! Operations on integers. Signed and unsigned types share those that do not depend on the sign.

use scry_ir::kir::{BinaryOp, Type, UnaryOp};

use super::copy;
use crate::lanes::{
    LaneOp, binary_for_baseline, binary_for_best_isa, binary_for_each_isa, binary_lane_by_lane,
    unary_for_best_isa, unary_for_each_isa, unary_lane_by_lane,
};

/// Operations on 16-bit integers that are not promoted to 32 bits.
pub(super) fn unary_16(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::LeadingZeros => unary_lane_by_lane(|a: u16| a.leading_zeros() as u16),
        UnaryOp::TrailingZeros => unary_lane_by_lane(|a: u16| a.trailing_zeros() as u16),
        UnaryOp::CountOnes => unary_lane_by_lane(|a: u16| a.count_ones() as u16),
        UnaryOp::ReverseBits => unary_lane_by_lane(u16::reverse_bits),
        _ => return None,
    })
}

pub(super) fn unary_32(op: UnaryOp, signed: bool) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => unary_for_each_isa(u32::wrapping_neg),
        UnaryOp::Not => unary_for_each_isa(|a: u32| !a),
        UnaryOp::Abs if signed => unary_for_each_isa(i32::wrapping_abs),
        UnaryOp::Abs => copy(Type::U32),
        UnaryOp::Sign if signed => unary_for_best_isa(i32::signum),
        UnaryOp::Sign => unary_for_best_isa(|a: u32| a.min(1)),
        UnaryOp::CountOnes => unary_for_best_isa(u32::count_ones),
        UnaryOp::LeadingZeros => unary_for_best_isa(u32::leading_zeros),
        UnaryOp::TrailingZeros => unary_for_best_isa(u32::trailing_zeros),
        UnaryOp::ReverseBits => unary_for_best_isa(u32::reverse_bits),
        // The position of the highest set bit; if there is none, 31 - 32 is the required -1.
        UnaryOp::FirstLeadingBit if signed => {
            unary_for_best_isa(|a: i32| 31u32.wrapping_sub((a ^ (a >> 31)).leading_zeros()))
        }
        UnaryOp::FirstLeadingBit => {
            unary_for_best_isa(|a: u32| 31u32.wrapping_sub(a.leading_zeros()))
        }
        UnaryOp::FirstTrailingBit => {
            unary_for_best_isa(|a: u32| if a == 0 { u32::MAX } else { a.trailing_zeros() })
        }
        _ => return None,
    })
}

pub(super) fn unary_64(op: UnaryOp, signed: bool) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => unary_lane_by_lane(u64::wrapping_neg),
        UnaryOp::Not => unary_lane_by_lane(|a: u64| !a),
        UnaryOp::Abs if signed => unary_lane_by_lane(i64::wrapping_abs),
        UnaryOp::Abs => copy(Type::U64),
        UnaryOp::Sign if signed => unary_lane_by_lane(i64::signum),
        UnaryOp::Sign => unary_lane_by_lane(|a: u64| a.min(1)),
        UnaryOp::CountOnes => unary_lane_by_lane(|a: u64| u64::from(a.count_ones())),
        UnaryOp::LeadingZeros => unary_lane_by_lane(|a: u64| u64::from(a.leading_zeros())),
        UnaryOp::TrailingZeros => unary_lane_by_lane(|a: u64| u64::from(a.trailing_zeros())),
        UnaryOp::ReverseBits => unary_lane_by_lane(u64::reverse_bits),
        UnaryOp::FirstLeadingBit if signed => unary_lane_by_lane(|a: i64| {
            63u64.wrapping_sub(u64::from((a ^ (a >> 63)).leading_zeros()))
        }),
        UnaryOp::FirstLeadingBit => {
            unary_lane_by_lane(|a: u64| 63u64.wrapping_sub(u64::from(a.leading_zeros())))
        }
        UnaryOp::FirstTrailingBit => {
            unary_lane_by_lane(
                |a: u64| if a == 0 { u64::MAX } else { u64::from(a.trailing_zeros()) },
            )
        }
        _ => return None,
    })
}

pub(super) fn binary_u32(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Div => binary_for_best_isa(|a: u32, b: u32| a.checked_div(b).unwrap_or(a)),
        BinaryOp::Rem => binary_for_best_isa(|a: u32, b: u32| a.checked_rem(b).unwrap_or(0)),
        BinaryOp::Shr => binary_for_each_isa(u32::wrapping_shr),
        BinaryOp::Min => binary_for_each_isa(|a: u32, b: u32| a.min(b)),
        BinaryOp::Max => binary_for_each_isa(|a: u32, b: u32| a.max(b)),
        BinaryOp::Lt => binary_for_each_isa(|a: u32, b: u32| a < b),
        BinaryOp::Le => binary_for_each_isa(|a: u32, b: u32| a <= b),
        BinaryOp::Gt => binary_for_each_isa(|a: u32, b: u32| a > b),
        BinaryOp::Ge => binary_for_each_isa(|a: u32, b: u32| a >= b),
        BinaryOp::Dot4I8 => binary_for_best_isa(|a: u32, b: u32| {
            let byte = |word: u32, nth: u32| i32::from((word >> (8 * nth)) as i8);
            byte(a, 0) * byte(b, 0)
                + byte(a, 1) * byte(b, 1)
                + byte(a, 2) * byte(b, 2)
                + byte(a, 3) * byte(b, 3)
        }),
        BinaryOp::Dot4U8 => binary_for_best_isa(|a: u32, b: u32| {
            let byte = |word: u32, nth: u32| (word >> (8 * nth)) & 0xff;
            byte(a, 0) * byte(b, 0)
                + byte(a, 1) * byte(b, 1)
                + byte(a, 2) * byte(b, 2)
                + byte(a, 3) * byte(b, 3)
        }),
        _ => return sign_agnostic_32(op),
    })
}

pub(super) fn binary_i32(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Div => {
            binary_for_best_isa(|a: i32, b: i32| if b == 0 { a } else { a.wrapping_div(b) })
        }
        BinaryOp::Rem => {
            binary_for_best_isa(|a: i32, b: i32| if b == 0 { 0 } else { a.wrapping_rem(b) })
        }
        BinaryOp::Shr => binary_for_each_isa(|a: i32, b: u32| a.wrapping_shr(b)),
        BinaryOp::Min => binary_for_each_isa(|a: i32, b: i32| a.min(b)),
        BinaryOp::Max => binary_for_each_isa(|a: i32, b: i32| a.max(b)),
        BinaryOp::Lt => binary_for_each_isa(|a: i32, b: i32| a < b),
        BinaryOp::Le => binary_for_each_isa(|a: i32, b: i32| a <= b),
        BinaryOp::Gt => binary_for_each_isa(|a: i32, b: i32| a > b),
        BinaryOp::Ge => binary_for_each_isa(|a: i32, b: i32| a >= b),
        _ => return sign_agnostic_32(op),
    })
}

fn sign_agnostic_32(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => binary_for_each_isa(u32::wrapping_add),
        BinaryOp::Sub => binary_for_each_isa(u32::wrapping_sub),
        BinaryOp::Mul => binary_for_each_isa(u32::wrapping_mul),
        BinaryOp::And => binary_for_each_isa(|a: u32, b: u32| a & b),
        BinaryOp::Or => binary_for_each_isa(|a: u32, b: u32| a | b),
        BinaryOp::Xor => binary_for_each_isa(|a: u32, b: u32| a ^ b),
        BinaryOp::Shl => binary_for_each_isa(u32::wrapping_shl),
        BinaryOp::Eq => binary_for_each_isa(|a: u32, b: u32| a == b),
        BinaryOp::Ne => binary_for_each_isa(|a: u32, b: u32| a != b),
        _ => return None,
    })
}

pub(super) fn binary_u64(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Div => binary_lane_by_lane(|a: u64, b: u64| a.checked_div(b).unwrap_or(a)),
        BinaryOp::Rem => binary_lane_by_lane(|a: u64, b: u64| a.checked_rem(b).unwrap_or(0)),
        BinaryOp::Shr => binary_for_baseline(|a: u64, b: u32| a.wrapping_shr(b)),
        BinaryOp::Min => binary_lane_by_lane(|a: u64, b: u64| a.min(b)),
        BinaryOp::Max => binary_lane_by_lane(|a: u64, b: u64| a.max(b)),
        BinaryOp::Lt => binary_for_baseline(|a: u64, b: u64| a < b),
        BinaryOp::Le => binary_lane_by_lane(|a: u64, b: u64| a <= b),
        BinaryOp::Gt => binary_lane_by_lane(|a: u64, b: u64| a > b),
        BinaryOp::Ge => binary_for_baseline(|a: u64, b: u64| a >= b),
        _ => return sign_agnostic_64(op),
    })
}

pub(super) fn binary_i64(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Div => {
            binary_lane_by_lane(|a: i64, b: i64| if b == 0 { a } else { a.wrapping_div(b) })
        }
        BinaryOp::Rem => {
            binary_lane_by_lane(|a: i64, b: i64| if b == 0 { 0 } else { a.wrapping_rem(b) })
        }
        BinaryOp::Shr => binary_for_baseline(|a: i64, b: u32| a.wrapping_shr(b)),
        BinaryOp::Min => binary_lane_by_lane(|a: i64, b: i64| a.min(b)),
        BinaryOp::Max => binary_lane_by_lane(|a: i64, b: i64| a.max(b)),
        BinaryOp::Lt => binary_for_baseline(|a: i64, b: i64| a < b),
        BinaryOp::Le => binary_lane_by_lane(|a: i64, b: i64| a <= b),
        BinaryOp::Gt => binary_lane_by_lane(|a: i64, b: i64| a > b),
        BinaryOp::Ge => binary_for_baseline(|a: i64, b: i64| a >= b),
        _ => return sign_agnostic_64(op),
    })
}

fn sign_agnostic_64(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => binary_for_baseline(u64::wrapping_add),
        BinaryOp::Sub => binary_for_baseline(u64::wrapping_sub),
        BinaryOp::Mul => binary_for_baseline(u64::wrapping_mul),
        BinaryOp::And => binary_for_baseline(|a: u64, b: u64| a & b),
        BinaryOp::Or => binary_for_baseline(|a: u64, b: u64| a | b),
        BinaryOp::Xor => binary_for_baseline(|a: u64, b: u64| a ^ b),
        BinaryOp::Shl => binary_for_baseline(|a: u64, b: u32| a.wrapping_shl(b)),
        BinaryOp::Eq => binary_for_baseline(|a: u64, b: u64| a == b),
        BinaryOp::Ne => binary_for_baseline(|a: u64, b: u64| a != b),
        _ => return None,
    })
}

/// Operations of 16-bit integers for subgroup reductions.
pub(super) fn binary_16(op: BinaryOp, signed: bool) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => binary_lane_by_lane(u16::wrapping_add),
        BinaryOp::Mul => binary_lane_by_lane(u16::wrapping_mul),
        BinaryOp::Min if signed => binary_lane_by_lane(|a: i16, b: i16| a.min(b)),
        BinaryOp::Max if signed => binary_lane_by_lane(|a: i16, b: i16| a.max(b)),
        BinaryOp::Min => binary_lane_by_lane(|a: u16, b: u16| a.min(b)),
        BinaryOp::Max => binary_lane_by_lane(|a: u16, b: u16| a.max(b)),
        BinaryOp::And => binary_lane_by_lane(|a: u16, b: u16| a & b),
        BinaryOp::Or => binary_lane_by_lane(|a: u16, b: u16| a | b),
        BinaryOp::Xor => binary_lane_by_lane(|a: u16, b: u16| a ^ b),
        _ => return None,
    })
}
