//! 16-bit integers, which WGSL lacks: a `U16` is a `u32` below 65536, an `I16` an `i32` between
//! -32768 and 32767. In memory they are halves of words (`loads_stores.rs`).

use crate::kir::{BinaryOp, Reduction, Type, UnaryOp};

/// The bits of a 16-bit integer.
const BITS: u64 = 16;

/// Returns whether a type is a 16-bit integer.
pub(super) fn is_16_bit(ty: Type) -> bool {
    matches!(ty, Type::I16 | Type::U16)
}

/// Returns the 16-bit integer with the lower bits of an integer of the type that represents it.
pub(super) fn wrapped(ty: Type, x: &str) -> String {
    match ty {
        Type::I16 => format!("(({x}) << 16u) >> 16u"),
        _ => format!("({x}) & 0xffffu"),
    }
}

/// Returns a unary operation on a 16-bit integer as one on 32 bits; `None` if both are the same.
/// `full` is the operation on the type that represents the integer.
pub(super) fn unary(op: UnaryOp, ty: Type, x: &str, full: &str) -> Option<String> {
    let width = if ty == Type::I16 { "16i" } else { "16u" };
    match op {
        // The result may have more bits; -1, where no bit is found, has.
        UnaryOp::Neg | UnaryOp::Not | UnaryOp::Abs => Some(wrapped(ty, full)),
        UnaryOp::FirstLeadingBit | UnaryOp::FirstTrailingBit => Some(wrapped(ty, full)),
        UnaryOp::CountOnes => Some(format!("countOneBits({})", low_bits(ty, x))),
        UnaryOp::LeadingZeros => Some(format!("countLeadingZeros({}) - {width}", low_bits(ty, x))),
        UnaryOp::TrailingZeros => Some(format!("min(countTrailingZeros({x}), {width})")),
        UnaryOp::ReverseBits => Some(format!("reverseBits({x}) >> 16u")),
        _ => None,
    }
}

/// Returns the 16 bits of an integer in 32, without copies of its sign.
fn low_bits(ty: Type, x: &str) -> String {
    if ty == Type::I16 { format!("{x} & 0xffffi") } else { x.to_owned() }
}

/// Returns the second operand of a shift of 16-bit integers: modulo 16, as a constant if it is one.
pub(super) fn shift_amount(constant: Option<u64>, y: &str) -> String {
    match constant {
        Some(amount) => format!("{}u", amount % BITS),
        None => format!("({y} & 15u)"),
    }
}

/// Returns whether a binary operation on the representations of 16-bit integers may have a result
/// of more bits.
pub(super) fn may_overflow(op: BinaryOp) -> bool {
    use BinaryOp::{Add, Div, Mul, Shl, Sub};
    matches!(op, Add | Sub | Mul | Shl | Div)
}

/// Returns whether a reduction over a subgroup may have a result of more bits than its operands.
pub(super) fn may_overflow_in_subgroup(op: Reduction) -> bool {
    matches!(op, Reduction::Add | Reduction::Mul)
}

/// Returns a conversion to a 16-bit integer.
pub(super) fn converted(from: Type, to: Type, x: &str) -> String {
    match (from, to) {
        (Type::Bool, Type::I16) => format!("i32({x})"),
        (Type::Bool, _) => format!("u32({x})"),
        // The largest `f16` that is an `i16`.
        (Type::F16, Type::I16) => format!("clamp(i32({x}), -32768i, 32752i)"),
        (Type::F32, Type::I16) => format!("clamp(i32({x}), -32768i, 32767i)"),
        (Type::F16 | Type::F32, _) => format!("min(u32({x}), 65535u)"),
        (Type::I32, Type::I16) => wrapped(to, x),
        (_, Type::I16) => wrapped(to, &format!("i32({x})")),
        (Type::U32, _) => wrapped(to, x),
        _ => wrapped(to, &format!("u32({x})")),
    }
}

/// Returns the 16-bit integer of a type with the bits of a `u32`, whose upper half is zero.
pub(super) fn of_bits(ty: Type, bits: &str) -> String {
    match ty {
        Type::I16 => wrapped(ty, &format!("i32({bits})")),
        _ => bits.to_owned(),
    }
}

/// Returns the bits of a 16-bit integer as a `u32`, whose upper half is zero.
pub(super) fn bits_of(ty: Type, x: &str) -> String {
    match ty {
        Type::I16 => format!("(u32({x}) & 0xffffu)"),
        _ => x.to_owned(),
    }
}
