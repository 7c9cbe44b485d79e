//! Pack and unpack functions; the first component is in the lowest bits.

use naga::MathFunction as F;

use super::numeric::clamp_to;
use crate::kir::lower::componentwise::number;
use crate::kir::lower::shape::Shaped;
use crate::kir::{BinaryOp, Builder, Type, UnaryOp, Value};

/// The component type of a packed word.
#[derive(Clone, Copy)]
enum Part {
    /// A number from -1 to 1, as a multiple of `1 / (2^(bits - 1) - 1)`.
    Snorm,
    /// A number from 0 to 1, as a multiple of `1 / (2^bits - 1)`.
    Unorm,
    /// An f16.
    Half,
    /// An integer, truncated.
    Integer(Type),
    /// An integer, clamped.
    Clamped(Type),
}

/// Returns `None` if this file does not lower the function, or not with such arguments.
pub(super) fn pack(b: &mut Builder, fun: F, args: &[Shaped<'_>]) -> Option<Vec<Value>> {
    let &[arg] = args else { return None };
    let (bits, part) = format(fun)?;
    if let &[word] = arg.values {
        Some((0..32 / bits).map(|nth| unpacked(b, word, part, bits, nth)).collect())
    } else {
        let parts: Vec<_> = arg.values.iter().map(|&x| packed(b, x, part, bits)).collect();
        Some(vec![joined(b, &parts, bits)?])
    }
}

/// Returns the bits per component, and its type.
fn format(fun: F) -> Option<(u32, Part)> {
    Some(match fun {
        F::Pack4x8snorm | F::Unpack4x8snorm => (8, Part::Snorm),
        F::Pack4x8unorm | F::Unpack4x8unorm => (8, Part::Unorm),
        F::Pack2x16snorm | F::Unpack2x16snorm => (16, Part::Snorm),
        F::Pack2x16unorm | F::Unpack2x16unorm => (16, Part::Unorm),
        F::Pack2x16float | F::Unpack2x16float => (16, Part::Half),
        F::Pack4xI8 | F::Unpack4xI8 => (8, Part::Integer(Type::I32)),
        F::Pack4xU8 | F::Unpack4xU8 => (8, Part::Integer(Type::U32)),
        F::Pack4xI8Clamp => (8, Part::Clamped(Type::I32)),
        F::Pack4xU8Clamp => (8, Part::Clamped(Type::U32)),
        _ => return None,
    })
}

/// Returns the value that the largest component represents.
fn greatest(bits: u32, signed: bool) -> f64 {
    ((1u32 << (bits - u32::from(signed))) - 1).into()
}

/// Converts the low `bits` of a `U32`, whose other bits are arbitrary.
fn packed(b: &mut Builder, x: Value, part: Part, bits: u32) -> Value {
    match part {
        Part::Snorm => {
            let clamped = clamp_to(b, x, -1.0, 1.0);
            rounded(b, clamped, greatest(bits, true), Type::I32)
        }
        Part::Unorm => {
            let clamped = clamp_to(b, x, 0.0, 1.0);
            rounded(b, clamped, greatest(bits, false), Type::U32)
        }
        Part::Half => {
            let half = b.convert(Type::F16, x);
            let half = b.bitcast(Type::U16, half);
            b.convert(Type::U32, half)
        }
        Part::Integer(_) => b.bitcast(Type::U32, x),
        Part::Clamped(ty) => {
            let high = greatest(bits, ty.is_signed());
            let low = if ty.is_signed() { -high - 1.0 } else { 0.0 };
            let clamped = clamp_to(b, x, low, high);
            b.bitcast(Type::U32, clamped)
        }
    }
}

/// Computes `floor(0.5 + factor * x)`, converted to an integer type.
///
/// A product just below the midpoint between two integers may be rounded to the midpoint; its
/// rounding error decides which of the two is correct.
fn rounded(b: &mut Builder, x: Value, factor: f64, ty: Type) -> Value {
    let factor = number(b, Type::F32, factor);
    let scaled = b.binary(BinaryOp::Mul, factor, x);
    let negated = b.unary(UnaryOp::Neg, scaled);
    let lost = b.fma(factor, x, negated);
    let (zero, half, one) =
        (number(b, Type::F32, 0.0), number(b, Type::F32, 0.5), number(b, Type::F32, 1.0));
    let fraction = b.unary(UnaryOp::Fract, scaled);
    let below = b.binary(BinaryOp::Lt, lost, zero);
    let above_half = b.binary(BinaryOp::Gt, fraction, half);
    let at_least_half = b.binary(BinaryOp::Ge, fraction, half);
    let up = b.select(below, above_half, at_least_half);
    let whole = b.unary(UnaryOp::Floor, scaled);
    let next = b.binary(BinaryOp::Add, whole, one);
    let whole = b.select(up, next, whole);
    let integer = b.convert(ty, whole);
    b.bitcast(Type::U32, integer)
}

/// Joins the components in one word; the shift truncates the last one.
fn joined(b: &mut Builder, parts: &[Value], bits: u32) -> Option<Value> {
    let (&last, others) = parts.split_last()?;
    let mask = b.u32((1 << bits) - 1);
    let shift = b.u32(bits);
    // From the top down, each step makes room for the next.
    let mut word = last;
    for &part in others.iter().rev() {
        let moved = b.binary(BinaryOp::Shl, word, shift);
        let low = b.binary(BinaryOp::And, part, mask);
        word = b.binary(BinaryOp::Or, moved, low);
    }
    Some(word)
}

fn unpacked(b: &mut Builder, word: Value, part: Part, bits: u32, nth: u32) -> Value {
    match part {
        Part::Snorm => {
            let integer = signed_field(b, word, bits, nth);
            let quotient = fraction(b, integer, greatest(bits, true));
            let least = number(b, Type::F32, -1.0);
            b.binary(BinaryOp::Max, quotient, least)
        }
        Part::Unorm => {
            let integer = field(b, word, bits, nth);
            fraction(b, integer, greatest(bits, false))
        }
        Part::Half => {
            let integer = field(b, word, bits, nth);
            let half = b.convert(Type::U16, integer);
            let half = b.bitcast(Type::F16, half);
            b.convert(Type::F32, half)
        }
        Part::Integer(ty) | Part::Clamped(ty) if ty.is_signed() => signed_field(b, word, bits, nth),
        Part::Integer(_) | Part::Clamped(_) => field(b, word, bits, nth),
    }
}

fn fraction(b: &mut Builder, integer: Value, greatest: f64) -> Value {
    let number_of = b.convert(Type::F32, integer);
    let divisor = number(b, Type::F32, greatest);
    b.binary(BinaryOp::Div, number_of, divisor)
}

/// The `nth` part as a `U32`.
fn field(b: &mut Builder, word: Value, bits: u32, nth: u32) -> Value {
    let (shift, mask) = (b.u32(nth * bits), b.u32((1 << bits) - 1));
    let low = b.binary(BinaryOp::Shr, word, shift);
    b.binary(BinaryOp::And, low, mask)
}

/// The `nth` part as an `I32` with its sign.
fn signed_field(b: &mut Builder, word: Value, bits: u32, nth: u32) -> Value {
    let (left, right) = (b.u32(32 - (nth + 1) * bits), b.u32(32 - bits));
    let top = b.binary(BinaryOp::Shl, word, left);
    let top = b.bitcast(Type::I32, top);
    b.binary(BinaryOp::Shr, top, right)
}
