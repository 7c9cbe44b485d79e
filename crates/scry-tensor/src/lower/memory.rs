//! Elements as they are stored, and as kernels compute with them.
//!
//! 16-bit floats and bools share words of 32 bits. They are converted exactly, with subnormal
//! numbers; rounding is to nearest, ties to even, and NaN stays NaN.

use scry_gpu::kir::{BinaryOp, Builder, Type, Value};

use crate::dtype::DType;

/// How `f16` is converted from and to `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversions {
    /// By an instruction, on devices where it keeps subnormal numbers and rounds to nearest.
    Native,
    /// By about 15 integer operations, which every device computes exactly.
    Integers,
}

/// The bits of the exponent of an infinite `f32`.
const INFINITY: u32 = 0x7f80_0000;
const ABSOLUTE: u32 = 0x7fff_ffff;

/// Loads the element at a position.
pub(super) fn decode(
    b: &mut Builder,
    conversions: Conversions,
    buffer: u32,
    dtype: DType,
    position: Value,
) -> Value {
    match dtype {
        // Of the type of the buffer: a result that is also an operand has words.
        DType::F32 | DType::I32 if buffer == 0 => {
            let place = b.element(buffer, position);
            let word = b.load(Type::U32, place, 1)[0];
            b.bitcast(dtype.computed(), word)
        }
        DType::F16 => {
            let bits = part_of_word(b, buffer, position, 1);
            f16_to_f32(b, conversions, bits)
        }
        DType::BF16 => {
            let bits = part_of_word(b, buffer, position, 1);
            let bits = binary(b, BinaryOp::Shl, bits, 16);
            b.bitcast(Type::F32, bits)
        }
        DType::Bool => {
            let byte = part_of_word(b, buffer, position, 2);
            binary(b, BinaryOp::Ne, byte, 0)
        }
        _ => {
            let place = b.element(buffer, position);
            b.load(dtype.computed(), place, 1)[0]
        }
    }
}

/// Returns the bits of a value as an element is stored, in the low bits of a word.
pub(super) fn encode(
    b: &mut Builder,
    conversions: Conversions,
    dtype: DType,
    value: Value,
) -> Value {
    match dtype {
        DType::F16 => f32_to_f16(b, conversions, value),
        DType::BF16 => f32_to_bf16(b, value),
        DType::Bool => b.convert(Type::U32, value),
        _ => b.bitcast(Type::U32, value),
    }
}

/// Returns a number as it is after it was stored as an element of 16 bits.
pub(super) fn round(
    b: &mut Builder,
    conversions: Conversions,
    dtype: DType,
    value: Value,
) -> Value {
    match dtype {
        DType::F16 => {
            let bits = f32_to_f16(b, conversions, value);
            f16_to_f32(b, conversions, bits)
        }
        DType::BF16 => {
            let bits = f32_to_bf16(b, value);
            let bits = binary(b, BinaryOp::Shl, bits, 16);
            b.bitcast(Type::F32, bits)
        }
        _ => value,
    }
}

/// Loads one of `2^log2_count` elements of a word.
fn part_of_word(b: &mut Builder, buffer: u32, position: Value, log2_count: u32) -> Value {
    let index = binary(b, BinaryOp::Shr, position, log2_count);
    let place = b.element(buffer, index);
    let word = b.load(Type::U32, place, 1)[0];
    let nth = binary(b, BinaryOp::And, position, (1 << log2_count) - 1);
    let shift = binary(b, BinaryOp::Shl, nth, 5 - log2_count);
    let moved = b.binary(BinaryOp::Shr, word, shift);
    binary(b, BinaryOp::And, moved, u32::MAX >> (32 - (32 >> log2_count)))
}

/// Adds an operation with a constant.
fn binary(b: &mut Builder, op: BinaryOp, a: Value, constant: u32) -> Value {
    let constant = b.u32(constant);
    b.binary(op, a, constant)
}

/// Returns a magnitude with a sign bit.
fn with_sign(b: &mut Builder, a: Value, sign: Value) -> Value {
    b.binary(BinaryOp::Or, a, sign)
}

fn f16_to_f32(b: &mut Builder, conversions: Conversions, bits: Value) -> Value {
    if conversions == Conversions::Native {
        let bits = b.convert(Type::U16, bits);
        let number = b.bitcast(Type::F16, bits);
        return b.convert(Type::F32, number);
    }
    let sign = binary(b, BinaryOp::And, bits, 0x8000);
    let sign = binary(b, BinaryOp::Shl, sign, 16);
    let magnitude = binary(b, BinaryOp::And, bits, 0x7fff);
    let shifted = binary(b, BinaryOp::Shl, magnitude, 13);
    // The bias of the exponent is 127 instead of 15.
    let normal = binary(b, BinaryOp::Add, shifted, 112 << 23);
    let special = binary(b, BinaryOp::Add, shifted, 224 << 23);
    // A subnormal number m * 2^-24 is (1 + m / 2^10) * 2^-14 - 2^-14, without subnormal `f32`.
    let raised = binary(b, BinaryOp::Add, shifted, 113 << 23);
    let raised = b.bitcast(Type::F32, raised);
    let smallest = b.f32(f32::from_bits(113 << 23));
    let subnormal = b.binary(BinaryOp::Sub, raised, smallest);
    let subnormal = b.bitcast(Type::U32, subnormal);
    let is_subnormal = binary(b, BinaryOp::Lt, magnitude, 0x400);
    let is_special = binary(b, BinaryOp::Ge, magnitude, 0x7c00);
    let finite = b.select(is_subnormal, subnormal, normal);
    let result = b.select(is_special, special, finite);
    let result = with_sign(b, result, sign);
    b.bitcast(Type::F32, result)
}

fn f32_to_f16(b: &mut Builder, conversions: Conversions, value: Value) -> Value {
    if conversions == Conversions::Native {
        let number = b.convert(Type::F16, value);
        let bits = b.bitcast(Type::U16, number);
        return b.convert(Type::U32, bits);
    }
    let bits = b.bitcast(Type::U32, value);
    let sign = binary(b, BinaryOp::Shr, bits, 16);
    let sign = binary(b, BinaryOp::And, sign, 0x8000);
    let magnitude = binary(b, BinaryOp::And, bits, ABSOLUTE);
    let is_nan = binary(b, BinaryOp::Gt, magnitude, INFINITY);
    let (nan, infinity) = (b.u32(0x7e00), b.u32(0x7c00));
    let special = b.select(is_nan, nan, infinity);
    // In 0.5 + x, one unit in the last place is 2^-24, as in subnormal `f16`.
    let small = b.bitcast(Type::F32, magnitude);
    let half = b.f32(0.5);
    let small = b.binary(BinaryOp::Add, small, half);
    let small = b.bitcast(Type::U32, small);
    let subnormal = binary(b, BinaryOp::Sub, small, 0.5f32.to_bits());
    let rounded = round_to_even(b, magnitude, 13);
    let normal = binary(b, BinaryOp::Sub, rounded, 112 << 10);
    let is_subnormal = binary(b, BinaryOp::Lt, magnitude, 113 << 23);
    let finite = b.select(is_subnormal, subnormal, normal);
    // From 65520 on, numbers round to infinity.
    let is_special = binary(b, BinaryOp::Ge, magnitude, 65520f32.to_bits());
    let result = b.select(is_special, special, finite);
    with_sign(b, result, sign)
}

fn f32_to_bf16(b: &mut Builder, value: Value) -> Value {
    let bits = b.bitcast(Type::U32, value);
    let magnitude = binary(b, BinaryOp::And, bits, ABSOLUTE);
    let is_nan = binary(b, BinaryOp::Gt, magnitude, INFINITY);
    let rounded = round_to_even(b, bits, 16);
    let truncated = binary(b, BinaryOp::Shr, bits, 16);
    let quiet = binary(b, BinaryOp::Or, truncated, 0x40);
    b.select(is_nan, quiet, rounded)
}

/// Drops the lowest `shift` bits, rounding to nearest, ties to even.
fn round_to_even(b: &mut Builder, bits: Value, shift: u32) -> Value {
    let last = binary(b, BinaryOp::Shr, bits, shift);
    let is_odd = binary(b, BinaryOp::And, last, 1);
    let raised = binary(b, BinaryOp::Add, bits, (1 << (shift - 1)) - 1);
    let raised = b.binary(BinaryOp::Add, raised, is_odd);
    binary(b, BinaryOp::Shr, raised, shift)
}
