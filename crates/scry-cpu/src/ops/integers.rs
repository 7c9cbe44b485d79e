//! Operations on integers. Signed and unsigned types share those that do not depend on the sign.

use scry_ir::kir::{BinaryOp, Type, UnaryOp};

use super::copy;
use crate::lanes::{
    LaneOp, best_binary, best_unary, binary, plain_binary, rare_binary, rare_unary, unary,
};

/// Operations on 16-bit integers that are not promoted to 32 bits.
pub(super) fn unary_16(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::LeadingZeros => rare_unary(|a: u16| a.leading_zeros() as u16),
        UnaryOp::TrailingZeros => rare_unary(|a: u16| a.trailing_zeros() as u16),
        UnaryOp::CountOnes => rare_unary(|a: u16| a.count_ones() as u16),
        UnaryOp::ReverseBits => rare_unary(u16::reverse_bits),
        _ => return None,
    })
}

pub(super) fn unary_32(op: UnaryOp, signed: bool) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => unary(u32::wrapping_neg),
        UnaryOp::Not => unary(|a: u32| !a),
        UnaryOp::Abs if signed => unary(i32::wrapping_abs),
        UnaryOp::Abs => copy(Type::U32),
        UnaryOp::Sign if signed => best_unary(i32::signum),
        UnaryOp::Sign => best_unary(|a: u32| a.min(1)),
        UnaryOp::CountOnes => best_unary(u32::count_ones),
        UnaryOp::LeadingZeros => best_unary(u32::leading_zeros),
        UnaryOp::TrailingZeros => best_unary(u32::trailing_zeros),
        UnaryOp::ReverseBits => best_unary(u32::reverse_bits),
        // The position of the highest set bit; if there is none, 31 - 32 is the required -1.
        UnaryOp::FirstLeadingBit if signed => {
            best_unary(|a: i32| 31u32.wrapping_sub((a ^ (a >> 31)).leading_zeros()))
        }
        UnaryOp::FirstLeadingBit => best_unary(|a: u32| 31u32.wrapping_sub(a.leading_zeros())),
        UnaryOp::FirstTrailingBit => {
            best_unary(|a: u32| if a == 0 { u32::MAX } else { a.trailing_zeros() })
        }
        _ => return None,
    })
}

pub(super) fn unary_64(op: UnaryOp, signed: bool) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => rare_unary(u64::wrapping_neg),
        UnaryOp::Not => rare_unary(|a: u64| !a),
        UnaryOp::Abs if signed => rare_unary(i64::wrapping_abs),
        UnaryOp::Abs => copy(Type::U64),
        UnaryOp::Sign if signed => rare_unary(i64::signum),
        UnaryOp::Sign => rare_unary(|a: u64| a.min(1)),
        UnaryOp::CountOnes => rare_unary(|a: u64| u64::from(a.count_ones())),
        UnaryOp::LeadingZeros => rare_unary(|a: u64| u64::from(a.leading_zeros())),
        UnaryOp::TrailingZeros => rare_unary(|a: u64| u64::from(a.trailing_zeros())),
        UnaryOp::ReverseBits => rare_unary(u64::reverse_bits),
        UnaryOp::FirstLeadingBit if signed => {
            rare_unary(|a: i64| 63u64.wrapping_sub(u64::from((a ^ (a >> 63)).leading_zeros())))
        }
        UnaryOp::FirstLeadingBit => {
            rare_unary(|a: u64| 63u64.wrapping_sub(u64::from(a.leading_zeros())))
        }
        UnaryOp::FirstTrailingBit => {
            rare_unary(|a: u64| if a == 0 { u64::MAX } else { u64::from(a.trailing_zeros()) })
        }
        _ => return None,
    })
}

pub(super) fn binary_u32(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Div => best_binary(|a: u32, b: u32| a.checked_div(b).unwrap_or(a)),
        BinaryOp::Rem => best_binary(|a: u32, b: u32| a.checked_rem(b).unwrap_or(0)),
        BinaryOp::Shr => binary(u32::wrapping_shr),
        BinaryOp::Min => binary(|a: u32, b: u32| a.min(b)),
        BinaryOp::Max => binary(|a: u32, b: u32| a.max(b)),
        BinaryOp::Lt => binary(|a: u32, b: u32| a < b),
        BinaryOp::Le => binary(|a: u32, b: u32| a <= b),
        BinaryOp::Gt => binary(|a: u32, b: u32| a > b),
        BinaryOp::Ge => binary(|a: u32, b: u32| a >= b),
        BinaryOp::Dot4I8 => best_binary(|a: u32, b: u32| {
            let byte = |word: u32, nth: u32| i32::from((word >> (8 * nth)) as i8);
            byte(a, 0) * byte(b, 0)
                + byte(a, 1) * byte(b, 1)
                + byte(a, 2) * byte(b, 2)
                + byte(a, 3) * byte(b, 3)
        }),
        BinaryOp::Dot4U8 => best_binary(|a: u32, b: u32| {
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
        BinaryOp::Div => best_binary(|a: i32, b: i32| if b == 0 { a } else { a.wrapping_div(b) }),
        BinaryOp::Rem => best_binary(|a: i32, b: i32| if b == 0 { 0 } else { a.wrapping_rem(b) }),
        BinaryOp::Shr => binary(|a: i32, b: u32| a.wrapping_shr(b)),
        BinaryOp::Min => binary(|a: i32, b: i32| a.min(b)),
        BinaryOp::Max => binary(|a: i32, b: i32| a.max(b)),
        BinaryOp::Lt => binary(|a: i32, b: i32| a < b),
        BinaryOp::Le => binary(|a: i32, b: i32| a <= b),
        BinaryOp::Gt => binary(|a: i32, b: i32| a > b),
        BinaryOp::Ge => binary(|a: i32, b: i32| a >= b),
        _ => return sign_agnostic_32(op),
    })
}

fn sign_agnostic_32(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => binary(u32::wrapping_add),
        BinaryOp::Sub => binary(u32::wrapping_sub),
        BinaryOp::Mul => binary(u32::wrapping_mul),
        BinaryOp::And => binary(|a: u32, b: u32| a & b),
        BinaryOp::Or => binary(|a: u32, b: u32| a | b),
        BinaryOp::Xor => binary(|a: u32, b: u32| a ^ b),
        BinaryOp::Shl => binary(u32::wrapping_shl),
        BinaryOp::Eq => binary(|a: u32, b: u32| a == b),
        BinaryOp::Ne => binary(|a: u32, b: u32| a != b),
        _ => return None,
    })
}

pub(super) fn binary_u64(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Div => rare_binary(|a: u64, b: u64| a.checked_div(b).unwrap_or(a)),
        BinaryOp::Rem => rare_binary(|a: u64, b: u64| a.checked_rem(b).unwrap_or(0)),
        BinaryOp::Shr => plain_binary(|a: u64, b: u32| a.wrapping_shr(b)),
        BinaryOp::Min => rare_binary(|a: u64, b: u64| a.min(b)),
        BinaryOp::Max => rare_binary(|a: u64, b: u64| a.max(b)),
        BinaryOp::Lt => plain_binary(|a: u64, b: u64| a < b),
        BinaryOp::Le => rare_binary(|a: u64, b: u64| a <= b),
        BinaryOp::Gt => rare_binary(|a: u64, b: u64| a > b),
        BinaryOp::Ge => plain_binary(|a: u64, b: u64| a >= b),
        _ => return sign_agnostic_64(op),
    })
}

pub(super) fn binary_i64(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Div => rare_binary(|a: i64, b: i64| if b == 0 { a } else { a.wrapping_div(b) }),
        BinaryOp::Rem => rare_binary(|a: i64, b: i64| if b == 0 { 0 } else { a.wrapping_rem(b) }),
        BinaryOp::Shr => plain_binary(|a: i64, b: u32| a.wrapping_shr(b)),
        BinaryOp::Min => rare_binary(|a: i64, b: i64| a.min(b)),
        BinaryOp::Max => rare_binary(|a: i64, b: i64| a.max(b)),
        BinaryOp::Lt => plain_binary(|a: i64, b: i64| a < b),
        BinaryOp::Le => rare_binary(|a: i64, b: i64| a <= b),
        BinaryOp::Gt => rare_binary(|a: i64, b: i64| a > b),
        BinaryOp::Ge => plain_binary(|a: i64, b: i64| a >= b),
        _ => return sign_agnostic_64(op),
    })
}

fn sign_agnostic_64(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => plain_binary(u64::wrapping_add),
        BinaryOp::Sub => plain_binary(u64::wrapping_sub),
        BinaryOp::Mul => plain_binary(u64::wrapping_mul),
        BinaryOp::And => plain_binary(|a: u64, b: u64| a & b),
        BinaryOp::Or => plain_binary(|a: u64, b: u64| a | b),
        BinaryOp::Xor => plain_binary(|a: u64, b: u64| a ^ b),
        BinaryOp::Shl => plain_binary(|a: u64, b: u32| a.wrapping_shl(b)),
        BinaryOp::Eq => plain_binary(|a: u64, b: u64| a == b),
        BinaryOp::Ne => plain_binary(|a: u64, b: u64| a != b),
        _ => return None,
    })
}

/// Operations of 16-bit integers for subgroup reductions.
pub(super) fn binary_16(op: BinaryOp, signed: bool) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => rare_binary(u16::wrapping_add),
        BinaryOp::Mul => rare_binary(u16::wrapping_mul),
        BinaryOp::Min if signed => rare_binary(|a: i16, b: i16| a.min(b)),
        BinaryOp::Max if signed => rare_binary(|a: i16, b: i16| a.max(b)),
        BinaryOp::Min => rare_binary(|a: u16, b: u16| a.min(b)),
        BinaryOp::Max => rare_binary(|a: u16, b: u16| a.max(b)),
        BinaryOp::And => rare_binary(|a: u16, b: u16| a & b),
        BinaryOp::Or => rare_binary(|a: u16, b: u16| a | b),
        BinaryOp::Xor => rare_binary(|a: u16, b: u16| a ^ b),
        _ => return None,
    })
}
