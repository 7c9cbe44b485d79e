//! Tests of bit manipulation functions.

use naga::MathFunction as F;
use proptest::prelude::*;

use super::{Operand, Scalar, assert_evaluates, call, constants, scalar, vector};

#[test]
fn bit_and_zero_counts() {
    let x = [0u32, 1, 0x8000_0000, 0x00f0_0100];
    assert_evaluates(F::CountOneBits, &[vector(&x)], &[0u32, 1, 1, 5]);
    assert_evaluates(F::CountLeadingZeros, &[vector(&x)], &[32u32, 31, 0, 8]);
    assert_evaluates(F::CountTrailingZeros, &[vector(&x)], &[32u32, 0, 31, 8]);
    assert_evaluates(F::CountOneBits, &[vector(&[-1i32, i32::MIN])], &[32i32, 1]);
    assert_evaluates(F::CountLeadingZeros, &[vector(&[-1i32, 1, 0])], &[0i32, 31, 32]);
    assert_evaluates(F::CountTrailingZeros, &[vector(&[-1i32, i32::MIN, 0])], &[0i32, 31, 32]);
    assert_evaluates(F::CountLeadingZeros, &[scalar(1i64)], &[63i64]);
    assert_evaluates(F::CountTrailingZeros, &[vector(&[0u64, 1 << 40])], &[64u64, 40]);
}

#[test]
fn first_leading_and_trailing_bits() {
    let x = [0u32, 1, u32::MAX, 0x00f0_0100];
    assert_evaluates(F::FirstTrailingBit, &[vector(&x)], &[u32::MAX, 0, 0, 8]);
    assert_evaluates(F::FirstLeadingBit, &[vector(&x)], &[u32::MAX, 0, 31, 23]);
    // For signed numbers, the highest bit that differs from the sign bit.
    assert_evaluates(F::FirstLeadingBit, &[vector(&[0i32, -1, -2, i32::MIN])], &[-1i32, -1, 0, 30]);
    assert_evaluates(F::FirstTrailingBit, &[vector(&[0i32, -1, -2, i32::MIN])], &[-1i32, 0, 1, 31]);
}

#[test]
fn reverse_bits() {
    assert_evaluates(
        F::ReverseBits,
        &[vector(&[1u32, 0x8000_0001, 0xa])],
        &[0x8000_0000u32, 0x8000_0001, 0x5000_0000],
    );
    assert_evaluates(F::ReverseBits, &[vector(&[1i32, -1])], &[i32::MIN, -1]);
}

#[test]
fn dot_products_of_packed_bytes() {
    // (-128)² + (-1)² + 127 * 2 + 3 * (-4)
    let (x, y) = (0x037f_ff80u32, 0xfc02_ff80u32);
    assert_evaluates(F::Dot4I8Packed, &[scalar(x), scalar(y)], &[16384 + 1 + 254 - 12]);
    assert_evaluates(
        F::Dot4U8Packed,
        &[scalar(x), scalar(y)],
        &[128u32 * 128 + 255 * 255 + 254 + 3 * 252],
    );
    assert_evaluates(F::Dot4U8Packed, &[scalar(u32::MAX), scalar(u32::MAX)], &[4u32 * 255 * 255]);
}

fn field(offset: u32, count: u32) -> [Operand; 2] {
    [scalar(offset), scalar(count)]
}

#[test]
fn extract_bits_clamps_offset_and_count() {
    let extract =
        |x: Operand, [offset, count]: [Operand; 2]| call(F::ExtractBits, &[x, offset, count]);
    let x = 0x8765_4321u32;
    for (offset, count, unsigned, signed) in [
        (0, 32, x, x as i32),
        (4, 8, 0x32, 0x32),
        (28, 4, 0x8, -8),
        (28, 99, 0x8, -8),
        (16, 16, 0x8765, -0x789b),
        (0, 0, 0, 0),
        (31, 0, 0, 0),
        (32, 1, 0, 0),
        (u32::MAX, u32::MAX, 0, 0),
        (0, u32::MAX, x, x as i32),
    ] {
        assert_eq!(
            extract(scalar(x), field(offset, count)),
            constants(&[unsigned]),
            "{offset} {count}"
        );
        let bits = extract(scalar(x as i32), field(offset, count));
        assert_eq!(bits, constants(&[signed]), "{offset} {count}");
    }
    assert_eq!(extract(scalar(-1i64), field(60, 9)), constants(&[-1i64]));
    assert_eq!(extract(vector(&[0xffu32, 0x100]), field(4, 8)), constants(&[0xfu32, 0x10]));
}

#[test]
fn insert_bits_clamps_offset_and_count() {
    let insert = |x: Operand, new: Operand, [offset, count]: [Operand; 2]| {
        call(F::InsertBits, &[x, new, offset, count])
    };
    for (offset, count, expected) in [
        (0, 32, u32::MAX),
        (4, 8, 0x8765_4ff1),
        (28, 4, 0xf765_4321),
        (28, 99, 0xf765_4321),
        (0, 0, 0x8765_4321),
        (32, 1, 0x8765_4321),
        (u32::MAX, u32::MAX, 0x8765_4321),
        (0, u32::MAX, u32::MAX),
    ] {
        let word = insert(scalar(0x8765_4321u32), scalar(u32::MAX), field(offset, count));
        assert_eq!(word, constants(&[expected]), "{offset} {count}");
        let word = insert(scalar(0x8765_4321u32 as i32), scalar(-1i32), field(offset, count));
        assert_eq!(word, constants(&[expected as i32]), "{offset} {count}");
    }
    let words = insert(vector(&[-1i16, 0]), vector(&[0i16, 3]), field(15, 4));
    assert_eq!(words, constants(&[i16::MAX, i16::MIN]));
}

/// Returns `extractBits` as the specification defines it, bit by bit, for words of `width` bits.
fn reference_extract(x: u64, width: u32, signed: bool, offset: u32, count: u32) -> u64 {
    let offset = offset.min(width);
    let count = count.min(width - offset);
    let bit = |bit_index: u32| x >> bit_index & 1;
    (0..width).fold(0, |bits, bit_index| {
        let inside = bit_index < count;
        let sign = if signed && count > 0 { bit(offset + count - 1) } else { 0 };
        bits | (if inside { bit(offset + bit_index) } else { sign }) << bit_index
    })
}

/// Returns `insertBits` as the specification defines it, bit by bit, for words of `width` bits.
fn reference_insert(x: u64, new: u64, width: u32, offset: u32, count: u32) -> u64 {
    let offset = offset.min(width);
    let end = offset + count.min(width - offset);
    (0..width).fold(0, |bits, bit_index| {
        let inside = (offset..end).contains(&bit_index);
        bits | (if inside { new >> (bit_index - offset) } else { x >> bit_index } & 1) << bit_index
    })
}

fn assert_matches_specification<T: Scalar>(x: T, new: T, offset: u32, count: u32) {
    let (word, other) = (x.constant(), new.constant());
    let (width, signed) = (word.ty.bits(), word.ty.is_signed());
    let [at, bits] = field(offset, count);
    let result = call(F::ExtractBits, &[scalar(x), at, bits]);
    assert_eq!(result[0].bits, reference_extract(word.bits, width, signed, offset, count));
    let [at, bits] = field(offset, count);
    let result = call(F::InsertBits, &[scalar(x), scalar(new), at, bits]);
    assert_eq!(result[0].bits, reference_insert(word.bits, other.bits, width, offset, count));
}

proptest! {
    #[test]
    fn bit_fields_match_specification(x: u64, new: u64, offset in 0..70u32, count in 0..70u32) {
        assert_matches_specification(x as u32, new as u32, offset, count);
        assert_matches_specification(x as i32, new as i32, offset, count);
        assert_matches_specification(x, new, offset, count);
        assert_matches_specification(x as i64, new as i64, offset, count);
        assert_matches_specification(x as u16, new as u16, offset, count);
        assert_matches_specification(x as i16, new as i16, offset, count);
    }
}
