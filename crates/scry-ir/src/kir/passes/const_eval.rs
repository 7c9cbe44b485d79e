//! Constant evaluation of instructions.
//!
//! Integers follow the definitions of [`BinaryOp`] and [`UnaryOp`]. Floats are computed as `f64`
//! and then rounded to their type. Double rounding is harmless: the precision of `f64`, 53 bits, is
//! at least twice that of the narrower types plus two bits, so sums, products, quotients and square
//! roots are correctly rounded.

use super::super::{BinaryOp, Const, Inst, Type, UnaryOp, Value};
use super::float;

/// Returns the result of an instruction with constant operands. Quotients and square roots of
/// floats are correctly rounded, although WGSL allows an error; other results are the same on all
/// targets. Returns `None` for other functions whose result WGSL does not specify exactly (such as
/// `sin`), for NaN (whose bits may differ), and where a zero may have either sign.
pub(crate) fn eval(
    ty: Type,
    inst: &Inst,
    constant: impl Fn(Value) -> Option<Const>,
) -> Option<Const> {
    let get = |value: &Value| constant(*value);
    match inst {
        Inst::Const(constant) => Some(*constant),
        Inst::Unary(op, a) => unless_nan(unary(*op, get(a)?)?),
        Inst::Binary(op, a, b) => {
            let (a, b) = (get(a)?, get(b)?);
            if is_min_max_of_signed_zeros(*op, a, b) {
                return None;
            }
            unless_nan(binary(*op, a, b)?)
        }
        Inst::Fma(a, b, c) => fma(get(a)?, get(b)?, get(c)?),
        Inst::Select(condition, a, b) => get(if get(condition)?.bits == 0 { b } else { a }),
        Inst::Convert(a) => convert_without_overflow(ty, get(a)?),
        Inst::Bitcast(a) => Some(Const { ty, bits: get(a)?.bits }),
        _ => None,
    }
}

/// Returns the result, or `None` if it is NaN.
fn unless_nan(result: Const) -> Option<Const> {
    (!result.ty.is_float() || !float::value(result).is_nan()).then_some(result)
}

/// Returns whether an operation is the minimum or maximum of zeros of different sign.
fn is_min_max_of_signed_zeros(op: BinaryOp, a: Const, b: Const) -> bool {
    matches!(op, BinaryOp::Min | BinaryOp::Max)
        && a.ty.is_float()
        && a.bits != b.bits
        && float::value(a) == float::value(b)
}

/// Returns `a * b + c`, if rounding once and rounding twice have the same result.
fn fma(a: Const, b: Const, c: Const) -> Option<Const> {
    let fused = match a.ty {
        Type::F32 => Const::f32(f32_of(a).mul_add(f32_of(b), f32_of(c))),
        Type::F64 => Const::f64(f64::from_bits(a.bits).mul_add(float::value(b), float::value(c))),
        _ => return None,
    };
    let unfused = binary(BinaryOp::Add, binary(BinaryOp::Mul, a, b)?, c)?;
    if unfused == fused { unless_nan(unfused) } else { None }
}

fn f32_of(constant: Const) -> f32 {
    f32::from_bits(constant.bits as u32)
}

/// Returns the result of a conversion; `None` if it is NaN, or infinite for a finite number.
fn convert_without_overflow(ty: Type, a: Const) -> Option<Const> {
    let result = convert(ty, a);
    if ty.is_float() && float::value(result).is_infinite() && !is_infinite(a) {
        return None;
    }
    unless_nan(result)
}

fn is_infinite(a: Const) -> bool {
    a.ty.is_float() && float::value(a).is_infinite()
}

/// Returns the result of a unary operation; `None` for one that is not evaluated, such as `sin`.
pub(super) fn unary(op: UnaryOp, a: Const) -> Option<Const> {
    match a.ty {
        Type::Bool => (op == UnaryOp::Not).then(|| Const::bool(a.bits == 0)),
        ty if ty.is_float() => float::unary(op, a),
        _ => integer_unary(op, a),
    }
}

fn integer_unary(op: UnaryOp, a: Const) -> Option<Const> {
    let (ty, x, width) = (a.ty, a.as_i64(), a.ty.bits());
    let result = match op {
        UnaryOp::Neg => x.wrapping_neg(),
        UnaryOp::Not => !x,
        UnaryOp::Abs if ty.is_signed() => x.wrapping_abs(),
        UnaryOp::Sign if ty.is_signed() => x.signum(),
        UnaryOp::CountOnes => i64::from(a.bits.count_ones()),
        UnaryOp::LeadingZeros => i64::from(a.bits.leading_zeros() + width) - 64,
        UnaryOp::TrailingZeros => i64::from(a.bits.trailing_zeros().min(width)),
        UnaryOp::ReverseBits => (a.bits.reverse_bits() >> (64 - width)) as i64,
        UnaryOp::FirstLeadingBit => 63 - i64::from(invert_if_negative(a).leading_zeros()),
        UnaryOp::FirstTrailingBit if a.bits == 0 => -1,
        UnaryOp::FirstTrailingBit => i64::from(a.bits.trailing_zeros()),
        _ => return None,
    };
    Some(Const::int(ty, result))
}

/// Returns the bits of an integer, inverted if it is negative. The highest one bit is the result of
/// WGSL's `firstLeadingBit`.
fn invert_if_negative(a: Const) -> u64 {
    let x = a.as_i64();
    if a.ty.is_signed() && x < 0 { !x as u64 } else { a.bits }
}

/// Returns the result of a binary operation; `None` for one that is not evaluated, such as `pow`.
pub(super) fn binary(op: BinaryOp, a: Const, b: Const) -> Option<Const> {
    match a.ty {
        Type::Bool => boolean(op, a.bits != 0, b.bits != 0),
        ty if ty.is_float() => float::binary(op, a, b),
        ty if ty.is_signed() => signed(op, a, b),
        _ => unsigned(op, a, b),
    }
}

fn boolean(op: BinaryOp, a: bool, b: bool) -> Option<Const> {
    Some(Const::bool(match op {
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor | BinaryOp::Ne => a ^ b,
        BinaryOp::Eq => a == b,
        _ => return None,
    }))
}

/// Returns the result of a comparison; `None` for other operations.
pub(super) fn compare<T: PartialOrd>(op: BinaryOp, a: T, b: T) -> Option<Const> {
    Some(Const::bool(match op {
        BinaryOp::Eq => a == b,
        BinaryOp::Ne => a != b,
        BinaryOp::Lt => a < b,
        BinaryOp::Le => a <= b,
        BinaryOp::Gt => a > b,
        BinaryOp::Ge => a >= b,
        _ => return None,
    }))
}

fn signed(op: BinaryOp, a: Const, b: Const) -> Option<Const> {
    let (x, y) = (a.as_i64(), b.as_i64());
    let result = match op {
        BinaryOp::Div if y == 0 => x,
        BinaryOp::Div => x.wrapping_div(y),
        BinaryOp::Rem if y == 0 => 0,
        BinaryOp::Rem => x.wrapping_rem(y),
        BinaryOp::Min => x.min(y),
        BinaryOp::Max => x.max(y),
        BinaryOp::Shr => x >> shift_amount(a, b),
        _ if op.is_comparison() => return compare(op, x, y),
        _ => return sign_agnostic(op, a, b),
    };
    Some(Const::int(a.ty, result))
}

fn unsigned(op: BinaryOp, a: Const, b: Const) -> Option<Const> {
    let (x, y) = (a.bits, b.bits);
    let result = match op {
        BinaryOp::Div => x.checked_div(y).unwrap_or(x),
        BinaryOp::Rem => x.checked_rem(y).unwrap_or(0),
        BinaryOp::Min => x.min(y),
        BinaryOp::Max => x.max(y),
        BinaryOp::Shr => x >> shift_amount(a, b),
        _ if op.is_comparison() => return compare(op, x, y),
        _ => return sign_agnostic(op, a, b),
    };
    Some(Const::int(a.ty, result as i64))
}

/// Returns the result of an operation that is the same for signed and unsigned integers.
fn sign_agnostic(op: BinaryOp, a: Const, b: Const) -> Option<Const> {
    let (x, y) = (a.bits, b.bits);
    let result = match op {
        BinaryOp::Add => x.wrapping_add(y),
        BinaryOp::Sub => x.wrapping_sub(y),
        BinaryOp::Mul => x.wrapping_mul(y),
        BinaryOp::And => x & y,
        BinaryOp::Or => x | y,
        BinaryOp::Xor => x ^ y,
        BinaryOp::Shl => x << shift_amount(a, b),
        BinaryOp::Dot4U8 => dot(x, y, i64::from),
        BinaryOp::Dot4I8 => {
            return Some(Const::int(Type::I32, dot(x, y, |byte| i64::from(byte as i8)) as i64));
        }
        _ => return None,
    };
    Some(Const::int(a.ty, result as i64))
}

fn shift_amount(a: Const, amount: Const) -> u32 {
    amount.bits as u32 % a.ty.bits()
}

fn dot(a: u64, b: u64, extend: impl Fn(u8) -> i64) -> u64 {
    let byte = |word: u64, index: usize| extend(word.to_le_bytes()[index]);
    (0..4).map(|index| byte(a, index) * byte(b, index)).sum::<i64>() as u64
}

/// Converts a constant to another type, as [`Inst::Convert`] does.
pub(super) fn convert(ty: Type, a: Const) -> Const {
    match (a.ty, ty) {
        (from, Type::Bool) if from.is_float() => Const::bool(float::value(a) != 0.0),
        (_, Type::Bool) => Const::bool(a.bits != 0),
        (from, _) if from.is_float() && ty.is_float() => float::round(ty, float::value(a)),
        (from, _) if from.is_float() => float::to_integer(ty, a),
        (_, _) if ty.is_float() => float::from_integer(ty, a),
        _ => Const::int(ty, a.as_i64()),
    }
}
