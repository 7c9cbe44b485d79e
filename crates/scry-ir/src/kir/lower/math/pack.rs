//! Pack and unpack functions; the first component is in the lowest bits.

use naga::MathFunction as F;

use super::numeric::clamp_to;
use crate::kir::lower::componentwise::numeric_constant;
use crate::kir::lower::shape::Shaped;
use crate::kir::{BinaryOp, Builder, Type, UnaryOp, Value};

/// The format of a component of a packed word.
#[derive(Clone, Copy)]
enum Format {
    /// A number from -1 to 1, as a multiple of `1 / (2^(bits - 1) - 1)`.
    Snorm,
    /// A number from 0 to 1, as a multiple of `1 / (2^bits - 1)`.
    Unorm,
    /// An f16.
    F16,
    /// An integer, truncated.
    Integer(Type),
    /// An integer, clamped.
    Clamped(Type),
}

/// Lowers a pack or unpack function; returns `None` for other functions and arguments.
pub(super) fn pack(b: &mut Builder, fun: F, args: &[Shaped<'_>]) -> Option<Vec<Value>> {
    let &[arg] = args else { return None };
    let (bits, format) = packed_format(fun)?;
    // The argument of an unpack function is a scalar, that of a pack function is a vector.
    if let &[word] = arg.values {
        Some((0..32 / bits).map(|index| unpack_component(b, word, format, bits, index)).collect())
    } else {
        let encode = |&x: &Value| encode_component(b, x, format, bits);
        let components: Vec<_> = arg.values.iter().map(encode).collect();
        Some(vec![concatenate(b, &components, bits)?])
    }
}

/// Returns the bits of a component, and its format.
fn packed_format(fun: F) -> Option<(u32, Format)> {
    Some(match fun {
        F::Pack4x8snorm | F::Unpack4x8snorm => (8, Format::Snorm),
        F::Pack4x8unorm | F::Unpack4x8unorm => (8, Format::Unorm),
        F::Pack2x16snorm | F::Unpack2x16snorm => (16, Format::Snorm),
        F::Pack2x16unorm | F::Unpack2x16unorm => (16, Format::Unorm),
        F::Pack2x16float | F::Unpack2x16float => (16, Format::F16),
        F::Pack4xI8 | F::Unpack4xI8 => (8, Format::Integer(Type::I32)),
        F::Pack4xU8 | F::Unpack4xU8 => (8, Format::Integer(Type::U32)),
        F::Pack4xI8Clamp => (8, Format::Clamped(Type::I32)),
        F::Pack4xU8Clamp => (8, Format::Clamped(Type::U32)),
        _ => return None,
    })
}

/// Returns the largest integer of this many bits; snorm and unorm represent 1 by it.
fn max_integer(bits: u32, signed: bool) -> f64 {
    ((1u32 << (bits - u32::from(signed))) - 1).into()
}

/// Emits a `U32` with the encoded component in its low `bits`; its other bits are arbitrary.
fn encode_component(b: &mut Builder, x: Value, format: Format, bits: u32) -> Value {
    match format {
        Format::Snorm => {
            let clamped = clamp_to(b, x, -1.0, 1.0);
            scale_and_round(b, clamped, max_integer(bits, true), Type::I32)
        }
        Format::Unorm => {
            let clamped = clamp_to(b, x, 0.0, 1.0);
            scale_and_round(b, clamped, max_integer(bits, false), Type::U32)
        }
        Format::F16 => {
            let float = b.convert(Type::F16, x);
            let integer = b.bitcast(Type::U16, float);
            b.convert(Type::U32, integer)
        }
        Format::Integer(_) => b.bitcast(Type::U32, x),
        Format::Clamped(ty) => {
            let high = max_integer(bits, ty.is_signed());
            let low = if ty.is_signed() { -high - 1.0 } else { 0.0 };
            let clamped = clamp_to(b, x, low, high);
            b.bitcast(Type::U32, clamped)
        }
    }
}

/// Emits `floor(0.5 + factor * x)`, converted to an integer type.
///
/// A product just below the midpoint between two integers may be rounded to the midpoint. The sign
/// of the rounding error of the product then decides between the two integers.
fn scale_and_round(b: &mut Builder, x: Value, factor: f64, ty: Type) -> Value {
    let factor = numeric_constant(b, Type::F32, factor);
    let scaled = b.binary(BinaryOp::Mul, factor, x);
    let negated = b.unary(UnaryOp::Neg, scaled);
    let error = b.fma(factor, x, negated);
    let (zero, half, one) = (
        numeric_constant(b, Type::F32, 0.0),
        numeric_constant(b, Type::F32, 0.5),
        numeric_constant(b, Type::F32, 1.0),
    );
    let fraction = b.unary(UnaryOp::Fract, scaled);
    let is_below = b.binary(BinaryOp::Lt, error, zero);
    let above_half = b.binary(BinaryOp::Gt, fraction, half);
    let at_least_half = b.binary(BinaryOp::Ge, fraction, half);
    let rounds_up = b.select(is_below, above_half, at_least_half);
    let floor = b.unary(UnaryOp::Floor, scaled);
    let next = b.binary(BinaryOp::Add, floor, one);
    let rounded = b.select(rounds_up, next, floor);
    let integer = b.convert(ty, rounded);
    b.bitcast(Type::U32, integer)
}

/// Concatenates the low `bits` of each component to a word; the shifts truncate the last one.
fn concatenate(b: &mut Builder, components: &[Value], bits: u32) -> Option<Value> {
    let (&last, others) = components.split_last()?;
    let mask = b.u32((1 << bits) - 1);
    let shift = b.u32(bits);
    // From the last component to the first, each of which is inserted below the others.
    let mut word = last;
    for &component in others.iter().rev() {
        let shifted = b.binary(BinaryOp::Shl, word, shift);
        let low = b.binary(BinaryOp::And, component, mask);
        word = b.binary(BinaryOp::Or, shifted, low);
    }
    Some(word)
}

fn unpack_component(b: &mut Builder, word: Value, format: Format, bits: u32, index: u32) -> Value {
    match format {
        Format::Snorm => {
            let integer = signed_field(b, word, bits, index);
            let quotient = divide(b, integer, max_integer(bits, true));
            let minus_one = numeric_constant(b, Type::F32, -1.0);
            b.binary(BinaryOp::Max, quotient, minus_one)
        }
        Format::Unorm => {
            let integer = field(b, word, bits, index);
            divide(b, integer, max_integer(bits, false))
        }
        Format::F16 => {
            let integer = field(b, word, bits, index);
            let integer = b.convert(Type::U16, integer);
            let float = b.bitcast(Type::F16, integer);
            b.convert(Type::F32, float)
        }
        Format::Integer(ty) | Format::Clamped(ty) if ty.is_signed() => {
            signed_field(b, word, bits, index)
        }
        Format::Integer(_) | Format::Clamped(_) => field(b, word, bits, index),
    }
}

fn divide(b: &mut Builder, integer: Value, divisor: f64) -> Value {
    let dividend = b.convert(Type::F32, integer);
    let divisor = numeric_constant(b, Type::F32, divisor);
    b.binary(BinaryOp::Div, dividend, divisor)
}

/// Emits component `index` as a `U32`.
fn field(b: &mut Builder, word: Value, bits: u32, index: u32) -> Value {
    let (shift, mask) = (b.u32(index * bits), b.u32((1 << bits) - 1));
    let low = b.binary(BinaryOp::Shr, word, shift);
    b.binary(BinaryOp::And, low, mask)
}

/// Emits component `index` as an `I32`, with sign extension.
fn signed_field(b: &mut Builder, word: Value, bits: u32, index: u32) -> Value {
    let (left, right) = (b.u32(32 - (index + 1) * bits), b.u32(32 - bits));
    let top = b.binary(BinaryOp::Shl, word, left);
    let top = b.bitcast(Type::I32, top);
    b.binary(BinaryOp::Shr, top, right)
}
