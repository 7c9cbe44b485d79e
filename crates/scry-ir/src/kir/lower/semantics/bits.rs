//! Bit manipulation functions.

use naga::MathFunction as F;
use proptest::prelude::*;

use super::{Operand, Scalar, call, constants, gives, scalar, vector};

#[test]
fn counts() {
    let x = [0u32, 1, 0x8000_0000, 0x00f0_0100];
    gives(F::CountOneBits, &[vector(&x)], &[0u32, 1, 1, 5]);
    gives(F::CountLeadingZeros, &[vector(&x)], &[32u32, 31, 0, 8]);
    gives(F::CountTrailingZeros, &[vector(&x)], &[32u32, 0, 31, 8]);
    gives(F::CountOneBits, &[vector(&[-1i32, i32::MIN])], &[32i32, 1]);
    gives(F::CountLeadingZeros, &[vector(&[-1i32, 1, 0])], &[0i32, 31, 32]);
    gives(F::CountTrailingZeros, &[vector(&[-1i32, i32::MIN, 0])], &[0i32, 31, 32]);
    gives(F::CountLeadingZeros, &[scalar(1i64)], &[63i64]);
    gives(F::CountTrailingZeros, &[vector(&[0u64, 1 << 40])], &[64u64, 40]);
}

#[test]
fn positions() {
    let x = [0u32, 1, u32::MAX, 0x00f0_0100];
    gives(F::FirstTrailingBit, &[vector(&x)], &[u32::MAX, 0, 0, 8]);
    gives(F::FirstLeadingBit, &[vector(&x)], &[u32::MAX, 0, 31, 23]);
    // For signed numbers, the highest bit that differs from the sign bit.
    gives(F::FirstLeadingBit, &[vector(&[0i32, -1, -2, i32::MIN])], &[-1i32, -1, 0, 30]);
    gives(F::FirstTrailingBit, &[vector(&[0i32, -1, -2, i32::MIN])], &[-1i32, 0, 1, 31]);
}

#[test]
fn reversal() {
    gives(
        F::ReverseBits,
        &[vector(&[1u32, 0x8000_0001, 0xa])],
        &[0x8000_0000u32, 0x8000_0001, 0x5000_0000],
    );
    gives(F::ReverseBits, &[vector(&[1i32, -1])], &[i32::MIN, -1]);
}

#[test]
fn dot_products_of_bytes() {
    // (-128)² + (-1)² + 127 * 2 + 3 * (-4)
    let (x, y) = (0x037f_ff80u32, 0xfc02_ff80u32);
    gives(F::Dot4I8Packed, &[scalar(x), scalar(y)], &[16384 + 1 + 254 - 12]);
    gives(F::Dot4U8Packed, &[scalar(x), scalar(y)], &[128u32 * 128 + 255 * 255 + 254 + 3 * 252]);
    gives(F::Dot4U8Packed, &[scalar(u32::MAX), scalar(u32::MAX)], &[4u32 * 255 * 255]);
}

fn field(offset: u32, count: u32) -> [Operand; 2] {
    [scalar(offset), scalar(count)]
}

#[test]
fn extraction() {
    let get = |x: Operand, [offset, count]: [Operand; 2]| call(F::ExtractBits, &[x, offset, count]);
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
            get(scalar(x), field(offset, count)),
            constants(&[unsigned]),
            "{offset} {count}"
        );
        let bits = get(scalar(x as i32), field(offset, count));
        assert_eq!(bits, constants(&[signed]), "{offset} {count}");
    }
    assert_eq!(get(scalar(-1i64), field(60, 9)), constants(&[-1i64]));
    assert_eq!(get(vector(&[0xffu32, 0x100]), field(4, 8)), constants(&[0xfu32, 0x10]));
}

#[test]
fn insertion() {
    let put = |x: Operand, new: Operand, [offset, count]: [Operand; 2]| {
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
        let word = put(scalar(0x8765_4321u32), scalar(u32::MAX), field(offset, count));
        assert_eq!(word, constants(&[expected]), "{offset} {count}");
        let word = put(scalar(0x8765_4321u32 as i32), scalar(-1i32), field(offset, count));
        assert_eq!(word, constants(&[expected as i32]), "{offset} {count}");
    }
    let words = put(vector(&[-1i16, 0]), vector(&[0i16, 3]), field(15, 4));
    assert_eq!(words, constants(&[i16::MAX, i16::MIN]));
}

/// The definition in the specification, bit by bit; `width` is that of the word.
fn extracted(x: u64, width: u32, signed: bool, offset: u32, count: u32) -> u64 {
    let offset = offset.min(width);
    let count = count.min(width - offset);
    let bit = |nth: u32| x >> nth & 1;
    (0..width).fold(0, |bits, nth| {
        let inside = nth < count;
        let sign = if signed && count > 0 { bit(offset + count - 1) } else { 0 };
        bits | (if inside { bit(offset + nth) } else { sign }) << nth
    })
}

fn inserted(x: u64, new: u64, width: u32, offset: u32, count: u32) -> u64 {
    let offset = offset.min(width);
    let end = offset + count.min(width - offset);
    (0..width).fold(0, |bits, nth| {
        let inside = (offset..end).contains(&nth);
        bits | (if inside { new >> (nth - offset) } else { x >> nth } & 1) << nth
    })
}

fn check_fields<T: Scalar>(x: T, new: T, offset: u32, count: u32) {
    let (word, other) = (x.constant(), new.constant());
    let (width, signed) = (word.ty.bits(), word.ty.is_signed());
    let [at, bits] = field(offset, count);
    let result = call(F::ExtractBits, &[scalar(x), at, bits]);
    assert_eq!(result[0].bits, extracted(word.bits, width, signed, offset, count));
    let [at, bits] = field(offset, count);
    let result = call(F::InsertBits, &[scalar(x), scalar(new), at, bits]);
    assert_eq!(result[0].bits, inserted(word.bits, other.bits, width, offset, count));
}

proptest! {
    #[test]
    fn fields_are_as_specified(x: u64, new: u64, offset in 0..70u32, count in 0..70u32) {
        check_fields(x as u32, new as u32, offset, count);
        check_fields(x as i32, new as i32, offset, count);
        check_fields(x, new, offset, count);
        check_fields(x as i64, new as i64, offset, count);
        check_fields(x as u16, new as u16, offset, count);
        check_fields(x as i16, new as i16, offset, count);
    }
}
