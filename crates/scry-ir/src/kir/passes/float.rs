//! Arithmetic of float constants.

use super::super::{BinaryOp, Const, Type, UnaryOp};
use super::const_eval::compare;

/// Returns the value of a float constant.
pub(super) fn value(constant: Const) -> f64 {
    match constant.ty {
        Type::F16 => from_f16(constant.bits as u16),
        Type::F32 => f64::from(f32::from_bits(constant.bits as u32)),
        _ => f64::from_bits(constant.bits),
    }
}

/// Rounds to a float type; NaN becomes the canonical quiet NaN.
pub(super) fn round(ty: Type, value: f64) -> Const {
    let bits = match ty {
        _ if value.is_nan() => round(ty, f64::INFINITY).bits | quiet_bit(ty),
        Type::F16 => u64::from(to_f16(value)),
        Type::F32 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    };
    Const { ty, bits }
}

/// Returns the bit that makes a NaN quiet.
fn quiet_bit(ty: Type) -> u64 {
    match ty {
        Type::F16 => 1 << 9,
        Type::F32 => 1 << 22,
        _ => 1 << 51,
    }
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

fn from_f16(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match i32::from(bits >> 10 & 0x1f) {
        0 => fraction * power_of_two(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + fraction) * power_of_two(exponent - 25),
    };
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}

/// Rounds to nearest, ties to even. A significand that is rounded up to the next power of two
/// carries into the exponent.
fn to_f16(value: f64) -> u16 {
    let sign = (value.to_bits() >> 48) as u16 & 0x8000;
    let magnitude = value.abs();
    let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
    // The midpoint between the largest f16, 65504, and the next power of two.
    sign | if magnitude >= 65520.0 {
        0x7c00
    } else if exponent < -14 {
        (magnitude * power_of_two(24)).round_ties_even() as u16
    } else {
        let fraction = (magnitude * power_of_two(10 - exponent)).round_ties_even() as u16;
        ((exponent + 15) as u16) * 1024 + (fraction - 1024)
    }
}

/// Returns the result of a unary operation; `None` for one that is not evaluated, such as `sin`.
pub(super) fn unary(op: UnaryOp, a: Const) -> Option<Const> {
    let x = value(a);
    let result = match op {
        UnaryOp::Neg => -x,
        UnaryOp::Abs => x.abs(),
        UnaryOp::Sign if x != 0.0 && !x.is_nan() => x.signum(),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Round => x.round_ties_even(),
        UnaryOp::Trunc => x.trunc(),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::QuantizeF16 => value(round(Type::F16, x)),
        UnaryOp::IsNan => return Some(Const::bool(x.is_nan())),
        UnaryOp::IsInf => return Some(Const::bool(x.is_infinite())),
        _ => return None,
    };
    Some(round(a.ty, result))
}

/// Returns the result of a binary operation; `None` for one that is not evaluated, such as `pow`.
pub(super) fn binary(op: BinaryOp, a: Const, b: Const) -> Option<Const> {
    let (x, y) = (value(a), value(b));
    let result = match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::Div => x / y,
        BinaryOp::Min => x.min(y),
        BinaryOp::Max => x.max(y),
        _ => return compare(op, x, y),
    };
    Some(round(a.ty, result))
}

/// Truncates, and saturates to the range that both types can represent; NaN becomes 0.
pub(super) fn to_integer(ty: Type, a: Const) -> Const {
    let precision = match a.ty {
        Type::F16 => 11,
        Type::F32 => 24,
        _ => 53,
    };
    let bits = ty.bits() as i32 - i32::from(ty.is_signed());
    // The distance of the float type's numbers just below `2^bits`, but at least 1.
    let spacing = power_of_two((bits - precision).max(0));
    let max_finite = if a.ty == Type::F16 { 65504.0 } else { f64::INFINITY };
    let max = (power_of_two(bits) - spacing).min(max_finite);
    let min = if ty.is_signed() { (-power_of_two(bits)).max(-max_finite) } else { 0.0 };
    let x = value(a);
    let clamped = if x.is_nan() { 0.0 } else { x.clamp(min, max) };
    let integer = if ty.is_signed() { clamped as i64 } else { clamped as u64 as i64 };
    Const::int(ty, integer)
}

/// Rounds an integer to the nearest float. The detour through `f64` does not round an `F16` twice:
/// an integer that `f64` cannot represent exactly is far above every `F16`.
pub(super) fn from_integer(ty: Type, a: Const) -> Const {
    match (ty, a.ty.is_signed()) {
        (Type::F32, true) => Const::f32(a.as_i64() as f32),
        (Type::F32, false) => Const::f32(a.bits as f32),
        (_, true) => round(ty, a.as_i64() as f64),
        (_, false) => round(ty, a.bits as f64),
    }
}
