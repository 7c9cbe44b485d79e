//! Tests of pack and unpack functions.

use half::f16;
use naga::MathFunction as F;
use proptest::prelude::*;

use super::{assert_evaluates, call, constants, scalar, vector};

#[test]
fn pack_norm_rounds_and_clamps() {
    let x = [-1f32, 1.0, 0.0, -0.5];
    // 127 * -0.5 = -63.5, which is rounded up to -63.
    assert_evaluates(F::Pack4x8snorm, &[vector(&x)], &[0xc100_7f81u32]);
    assert_evaluates(F::Pack4x8snorm, &[vector(&[-9f32, 9.0, -0.0, 0.5])], &[0x4000_7f81u32]);
    let x = [-1f32, 1.0, 0.5, 9.0];
    assert_evaluates(F::Pack4x8unorm, &[vector(&x)], &[0xff80_ff00u32]);
    assert_evaluates(F::Pack2x16snorm, &[vector(&[-2f32, 0.5])], &[0x4000_8001u32]);
    assert_evaluates(F::Pack2x16snorm, &[vector(&[1f32, -1.0])], &[0x8001_7fffu32]);
    assert_evaluates(F::Pack2x16unorm, &[vector(&[0.5f32, 7.0])], &[0xffff_8000u32]);
    assert_evaluates(F::Pack2x16unorm, &[vector(&[1f32, -7.0])], &[0x0000_ffffu32]);
}

#[test]
fn unpack_norm() {
    assert_evaluates(
        F::Unpack4x8snorm,
        &[scalar(0x8081_7f01u32)],
        &[1f32 / 127.0, 1.0, -1.0, -1.0],
    );
    assert_evaluates(
        F::Unpack4x8unorm,
        &[scalar(0x80ff_0001u32)],
        &[1f32 / 255.0, 0.0, 1.0, 128.0 / 255.0],
    );
    assert_evaluates(F::Unpack2x16snorm, &[scalar(0x8000_7fffu32)], &[1f32, -1.0]);
    assert_evaluates(F::Unpack2x16snorm, &[scalar(0x8001_0003u32)], &[3f32 / 32767.0, -1.0]);
    assert_evaluates(F::Unpack2x16unorm, &[scalar(0x8000_ffffu32)], &[1f32, 32768.0 / 65535.0]);
}

#[test]
fn pack_and_unpack_f16() {
    assert_evaluates(F::Pack2x16float, &[vector(&[1f32, -2.0])], &[0xc000_3c00u32]);
    assert_evaluates(F::Pack2x16float, &[vector(&[-0f32, 65504.0])], &[0x7bff_8000u32]);
    assert_evaluates(F::Unpack2x16float, &[scalar(0xc000_3c00u32)], &[1f32, -2.0]);
    // The smallest subnormal f16, and infinity.
    assert_evaluates(
        F::Unpack2x16float,
        &[scalar(0x7c00_0001u32)],
        &[2f32.powi(-24), f32::INFINITY],
    );
}

#[test]
fn pack_integers_truncates_or_clamps() {
    let x = [-1i32, 128, -129, 0x1234];
    assert_evaluates(F::Pack4xI8, &[vector(&x)], &[0x347f_80ffu32]);
    assert_evaluates(F::Pack4xI8Clamp, &[vector(&x)], &[0x7f80_7fffu32]);
    let x = [0u32, 255, 256, 0xabcd];
    assert_evaluates(F::Pack4xU8, &[vector(&x)], &[0xcd00_ff00u32]);
    assert_evaluates(F::Pack4xU8Clamp, &[vector(&x)], &[0xffff_ff00u32]);
    assert_evaluates(F::Pack4xU8Clamp, &[vector(&[u32::MAX, 1, 2, 3])], &[0x0302_01ffu32]);
    assert_evaluates(F::Pack4xI8Clamp, &[vector(&[i32::MIN, i32::MAX, 0, -7])], &[0xf900_7f80u32]);
    assert_evaluates(F::Unpack4xI8, &[scalar(0x807f_ff01u32)], &[1i32, -1, 127, -128]);
    assert_evaluates(F::Unpack4xU8, &[scalar(0x807f_ff01u32)], &[1u32, 255, 127, 128]);
}

proptest! {
    /// Packing an unpacked word restores the word, except that snorm has two encodings of -1.
    #[test]
    fn packing_undoes_unpacking(bytes: [u8; 4]) {
        let word = u32::from_le_bytes(bytes);
        for (unpack, pack) in [
            (F::Unpack4x8unorm, F::Pack4x8unorm),
            (F::Unpack2x16unorm, F::Pack2x16unorm),
            (F::Unpack4xI8, F::Pack4xI8),
            (F::Unpack4xI8, F::Pack4xI8Clamp),
            (F::Unpack4xU8, F::Pack4xU8),
            (F::Unpack4xU8, F::Pack4xU8Clamp),
        ] {
            prop_assert_eq!(round_trip(unpack, pack, word), word, "{:?}", pack);
        }
        let canonical = bytes.map(|byte| if byte == 0x80 { 0x81 } else { byte });
        let packed = round_trip(F::Unpack4x8snorm, F::Pack4x8snorm, word);
        prop_assert_eq!(packed.to_le_bytes(), canonical);
    }

    #[test]
    fn pack_f16_rounds_to_nearest(x in -65504f32..65504.0, y in -1f32..1.0) {
        let [low, high] = [x, y].map(|x| u32::from(f16::from_f32(x).to_bits()));
        let word = call(F::Pack2x16float, &[vector(&[x, y])]);
        prop_assert_eq!(word, constants(&[low | high << 16]));
    }
}

fn round_trip(unpack: F, pack: F, word: u32) -> u32 {
    let parts = call(unpack, &[scalar(word)]);
    let ty = parts[0].ty;
    let shape = super::Shape::Vector { len: parts.len() as u8, ty };
    call(pack, &[super::Operand { shape, parts }])[0].bits as u32
}
