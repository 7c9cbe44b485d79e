//! Integers. What does not depend on the sign is the same operation for both kinds.

use scry_ir::kir::{BinaryOp, UnaryOp};

use crate::lanes::{LaneOp, one, two};

/// What of 16-bit integers is not computed in 32 bits.
pub(super) fn unary_16(op: UnaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::LeadingZeros => one(|a: u16| a.leading_zeros() as u16),
        UnaryOp::TrailingZeros => one(|a: u16| a.trailing_zeros() as u16),
        UnaryOp::CountOnes => one(|a: u16| a.count_ones() as u16),
        UnaryOp::ReverseBits => one(u16::reverse_bits),
        _ => return None,
    })
}

pub(super) fn unary_32(op: UnaryOp, signed: bool) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => one(u32::wrapping_neg),
        UnaryOp::Not => one(|a: u32| !a),
        UnaryOp::Abs if signed => one(i32::wrapping_abs),
        UnaryOp::Abs => one(|a: u32| a),
        UnaryOp::Sign if signed => one(i32::signum),
        UnaryOp::Sign => one(|a: u32| a.min(1)),
        UnaryOp::CountOnes => one(u32::count_ones),
        UnaryOp::LeadingZeros => one(u32::leading_zeros),
        UnaryOp::TrailingZeros => one(u32::trailing_zeros),
        UnaryOp::ReverseBits => one(u32::reverse_bits),
        // The position of the highest one; with none, 31 - 32 is the -1 that is wanted.
        UnaryOp::FirstLeadingBit if signed => {
            one(|a: i32| 31u32.wrapping_sub((a ^ (a >> 31)).leading_zeros()))
        }
        UnaryOp::FirstLeadingBit => one(|a: u32| 31u32.wrapping_sub(a.leading_zeros())),
        UnaryOp::FirstTrailingBit => {
            one(|a: u32| if a == 0 { u32::MAX } else { a.trailing_zeros() })
        }
        _ => return None,
    })
}

pub(super) fn unary_64(op: UnaryOp, signed: bool) -> Option<&'static dyn LaneOp> {
    Some(match op {
        UnaryOp::Neg => one(u64::wrapping_neg),
        UnaryOp::Not => one(|a: u64| !a),
        UnaryOp::Abs if signed => one(i64::wrapping_abs),
        UnaryOp::Abs => one(|a: u64| a),
        UnaryOp::Sign if signed => one(i64::signum),
        UnaryOp::Sign => one(|a: u64| a.min(1)),
        UnaryOp::CountOnes => one(|a: u64| u64::from(a.count_ones())),
        UnaryOp::LeadingZeros => one(|a: u64| u64::from(a.leading_zeros())),
        UnaryOp::TrailingZeros => one(|a: u64| u64::from(a.trailing_zeros())),
        UnaryOp::ReverseBits => one(u64::reverse_bits),
        UnaryOp::FirstLeadingBit if signed => {
            one(|a: i64| 63u64.wrapping_sub(u64::from((a ^ (a >> 63)).leading_zeros())))
        }
        UnaryOp::FirstLeadingBit => one(|a: u64| 63u64.wrapping_sub(u64::from(a.leading_zeros()))),
        UnaryOp::FirstTrailingBit => {
            one(|a: u64| if a == 0 { u64::MAX } else { u64::from(a.trailing_zeros()) })
        }
        _ => return None,
    })
}

pub(super) fn binary_u32(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Div => two(|a: u32, b: u32| a.checked_div(b).unwrap_or(a)),
        BinaryOp::Rem => two(|a: u32, b: u32| a.checked_rem(b).unwrap_or(0)),
        BinaryOp::Shr => two(u32::wrapping_shr),
        BinaryOp::Min => two(|a: u32, b: u32| a.min(b)),
        BinaryOp::Max => two(|a: u32, b: u32| a.max(b)),
        BinaryOp::Lt => two(|a: u32, b: u32| a < b),
        BinaryOp::Le => two(|a: u32, b: u32| a <= b),
        BinaryOp::Gt => two(|a: u32, b: u32| a > b),
        BinaryOp::Ge => two(|a: u32, b: u32| a >= b),
        BinaryOp::Dot4I8 => two(|a: u32, b: u32| {
            let byte = |word: u32, nth: u32| i32::from((word >> (8 * nth)) as i8);
            byte(a, 0) * byte(b, 0)
                + byte(a, 1) * byte(b, 1)
                + byte(a, 2) * byte(b, 2)
                + byte(a, 3) * byte(b, 3)
        }),
        BinaryOp::Dot4U8 => two(|a: u32, b: u32| {
            let byte = |word: u32, nth: u32| (word >> (8 * nth)) & 0xff;
            byte(a, 0) * byte(b, 0)
                + byte(a, 1) * byte(b, 1)
                + byte(a, 2) * byte(b, 2)
                + byte(a, 3) * byte(b, 3)
        }),
        _ => return bits_32(op),
    })
}

pub(super) fn binary_i32(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Div => two(|a: i32, b: i32| if b == 0 { a } else { a.wrapping_div(b) }),
        BinaryOp::Rem => two(|a: i32, b: i32| if b == 0 { 0 } else { a.wrapping_rem(b) }),
        BinaryOp::Shr => two(|a: i32, b: u32| a.wrapping_shr(b)),
        BinaryOp::Min => two(|a: i32, b: i32| a.min(b)),
        BinaryOp::Max => two(|a: i32, b: i32| a.max(b)),
        BinaryOp::Lt => two(|a: i32, b: i32| a < b),
        BinaryOp::Le => two(|a: i32, b: i32| a <= b),
        BinaryOp::Gt => two(|a: i32, b: i32| a > b),
        BinaryOp::Ge => two(|a: i32, b: i32| a >= b),
        _ => return bits_32(op),
    })
}

fn bits_32(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => two(u32::wrapping_add),
        BinaryOp::Sub => two(u32::wrapping_sub),
        BinaryOp::Mul => two(u32::wrapping_mul),
        BinaryOp::And => two(|a: u32, b: u32| a & b),
        BinaryOp::Or => two(|a: u32, b: u32| a | b),
        BinaryOp::Xor => two(|a: u32, b: u32| a ^ b),
        BinaryOp::Shl => two(u32::wrapping_shl),
        BinaryOp::Eq => two(|a: u32, b: u32| a == b),
        BinaryOp::Ne => two(|a: u32, b: u32| a != b),
        _ => return None,
    })
}

pub(super) fn binary_u64(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Div => two(|a: u64, b: u64| a.checked_div(b).unwrap_or(a)),
        BinaryOp::Rem => two(|a: u64, b: u64| a.checked_rem(b).unwrap_or(0)),
        BinaryOp::Shr => two(|a: u64, b: u32| a.wrapping_shr(b)),
        BinaryOp::Min => two(|a: u64, b: u64| a.min(b)),
        BinaryOp::Max => two(|a: u64, b: u64| a.max(b)),
        BinaryOp::Lt => two(|a: u64, b: u64| a < b),
        BinaryOp::Le => two(|a: u64, b: u64| a <= b),
        BinaryOp::Gt => two(|a: u64, b: u64| a > b),
        BinaryOp::Ge => two(|a: u64, b: u64| a >= b),
        _ => return bits_64(op),
    })
}

pub(super) fn binary_i64(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Div => two(|a: i64, b: i64| if b == 0 { a } else { a.wrapping_div(b) }),
        BinaryOp::Rem => two(|a: i64, b: i64| if b == 0 { 0 } else { a.wrapping_rem(b) }),
        BinaryOp::Shr => two(|a: i64, b: u32| a.wrapping_shr(b)),
        BinaryOp::Min => two(|a: i64, b: i64| a.min(b)),
        BinaryOp::Max => two(|a: i64, b: i64| a.max(b)),
        BinaryOp::Lt => two(|a: i64, b: i64| a < b),
        BinaryOp::Le => two(|a: i64, b: i64| a <= b),
        BinaryOp::Gt => two(|a: i64, b: i64| a > b),
        BinaryOp::Ge => two(|a: i64, b: i64| a >= b),
        _ => return bits_64(op),
    })
}

fn bits_64(op: BinaryOp) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => two(u64::wrapping_add),
        BinaryOp::Sub => two(u64::wrapping_sub),
        BinaryOp::Mul => two(u64::wrapping_mul),
        BinaryOp::And => two(|a: u64, b: u64| a & b),
        BinaryOp::Or => two(|a: u64, b: u64| a | b),
        BinaryOp::Xor => two(|a: u64, b: u64| a ^ b),
        BinaryOp::Shl => two(|a: u64, b: u32| a.wrapping_shl(b)),
        BinaryOp::Eq => two(|a: u64, b: u64| a == b),
        BinaryOp::Ne => two(|a: u64, b: u64| a != b),
        _ => return None,
    })
}

/// What a subgroup combines 16-bit integers with.
pub(super) fn binary_16(op: BinaryOp, signed: bool) -> Option<&'static dyn LaneOp> {
    Some(match op {
        BinaryOp::Add => two(u16::wrapping_add),
        BinaryOp::Mul => two(u16::wrapping_mul),
        BinaryOp::Min if signed => two(|a: i16, b: i16| a.min(b)),
        BinaryOp::Max if signed => two(|a: i16, b: i16| a.max(b)),
        BinaryOp::Min => two(|a: u16, b: u16| a.min(b)),
        BinaryOp::Max => two(|a: u16, b: u16| a.max(b)),
        BinaryOp::And => two(|a: u16, b: u16| a & b),
        BinaryOp::Or => two(|a: u16, b: u16| a | b),
        BinaryOp::Xor => two(|a: u16, b: u16| a ^ b),
        _ => return None,
    })
}
