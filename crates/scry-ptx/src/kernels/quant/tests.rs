//! Tests of the block layouts, byte by byte, and of quantisation errors.

use half::f16;
use proptest::prelude::*;

use super::{BlockFormat, dequantize, quantize};

fn f16_bytes(value: f32) -> [u8; 2] {
    f16::from_f32(value).to_le_bytes()
}

/// The header of a block of `Q4K` or `Q5K` with the scales 4, 8, … 32 and the offsets 40, 35, … 5.
fn header_with_ramps(d: f32, dmin: f32) -> Vec<u8> {
    let mut block = [f16_bytes(d), f16_bytes(dmin)].concat();
    // Scales 4, 8, 12, 16, 20, 24, 28, 32 are below 64, the last four 0b010100, 0b011000,
    // 0b011100, 0b100000: upper bits 01, 01, 01, 10 over the first four.
    block.extend([4 | 1 << 6, 8 | 1 << 6, 12 | 1 << 6, 16 | 2 << 6]);
    // Offsets 40, 35, 30, 25, 20, 15, 10, 5: upper bits of the last four 01, 00, 00, 00.
    block.extend([40 | 1 << 6, 35, 30, 25]);
    // Low bits of scales 20, 24, 28, 32: 4, 8, 12, 0. Of offsets 20, 15, 10, 5: 4, 15, 10, 5.
    block.extend([4 | 4 << 4, 8 | 15 << 4, 12 | 10 << 4, 5 << 4]);
    block
}

#[test]
fn q4k_stores_group_pairs_in_nibbles() {
    let mut block = header_with_ramps(0.5, 0.25);
    // Byte `i` of a pair of groups: weight `i` of the first group in the low nibble, weight `i` of
    // the second one in the high nibble.
    block.extend((0..128u32).map(|at| ((at % 16) | (15 - at % 16) << 4) as u8));
    let weights = dequantize(BlockFormat::Q4K, &block).unwrap();
    for (nth, weight) in weights.into_iter().enumerate() {
        let (group, at) = (nth / 32, nth % 32);
        let q = if group % 2 == 0 { at % 16 } else { 15 - at % 16 };
        let expected = 0.5 * (4 * (group + 1) * q) as f32 - 0.25 * (5 * (8 - group)) as f32;
        assert_eq!(weight, expected, "weight {nth}");
    }
}

#[test]
fn q5k_stores_fifth_bits_separately() {
    let mut block = header_with_ramps(2.0, 1.0);
    // Bit `g` of byte `i` is the highest one of weight `i` of group `g`: set where `g + 1` divides
    // `i`.
    let high =
        |at: usize| (0..8).filter(|group| at.is_multiple_of(group + 1)).fold(0, |b, g| b | 1 << g);
    block.extend((0..32).map(high).map(|bits: u32| bits as u8));
    block.extend((0..128u32).map(|at| ((at % 16) | (at / 8) << 4) as u8));
    let weights = dequantize(BlockFormat::Q5K, &block).unwrap();
    for (nth, weight) in weights.into_iter().enumerate() {
        let (group, at) = (nth / 32, nth % 32);
        let byte = group / 2 * 32 + at;
        let low = if group % 2 == 0 { byte % 16 } else { byte / 8 };
        let q = low + if at % (group + 1) == 0 { 16 } else { 0 };
        let expected = 2.0 * (4 * (group + 1) * q) as f32 - (5 * (8 - group)) as f32;
        assert_eq!(weight, expected, "weight {nth}");
    }
}

#[test]
fn q6k_stores_four_groups_per_byte() {
    let mut block = Vec::new();
    // Low bits, for each half of the block: groups 0 and 1 in the low nibbles, groups 2 and 3 in
    // the high nibbles of 32 bytes each.
    block.extend((0..128u32).map(|at| ((at % 16) | ((at / 3 % 16) << 4)) as u8));
    // High bits, for each half: those of groups 0 to 3, from the lowest bits up.
    block.extend(
        (0..64u32)
            .map(|at| ((at % 4) | ((at / 4 % 4) << 2) | ((at / 5 % 4) << 4) | (2 << 6)) as u8),
    );
    // Scales of 16 weights each, signed.
    block.extend((0..16i32).map(|nth| (nth * 15 - 112) as i8 as u8));
    block.extend(f16_bytes(0.125));
    let weights = dequantize(BlockFormat::Q6K, &block).unwrap();
    for (nth, weight) in weights.into_iter().enumerate() {
        let (half, group, at) = (nth / 128, nth % 128 / 32, nth % 32);
        let (low, high) = (64 * half + 32 * (group % 2) + at, 32 * half + at);
        let low = if group < 2 { low % 16 } else { low / 3 % 16 };
        let high = [high % 4, high / 4 % 4, high / 5 % 4, 2][group];
        let scale = (nth / 16) as i32 * 15 - 112;
        assert_eq!(weight, 0.125 * (scale * ((16 * high + low) as i32 - 32)) as f32, "{nth}");
    }
}

#[test]
fn q8_0_has_scale_and_bytes() {
    let mut block = f16_bytes(-0.75).to_vec();
    block.extend((0..32).map(|nth| (nth * 8 - 128) as i8 as u8));
    let weights = dequantize(BlockFormat::Q8_0, &block).unwrap();
    let expected: Vec<f32> = (0..32).map(|nth| -0.75 * (nth * 8 - 128) as f32).collect();
    assert_eq!(weights, expected);
}

#[test]
fn q4_0_and_q4_1_pair_distant_weights() {
    // Byte `i` has weight `i` in its low bits and weight `i + 16` in its high bits.
    let q: Vec<u8> = (0..16).map(|nth| nth | (15 - nth) << 4).collect();
    let integer = |nth: usize| if nth < 16 { nth as f32 } else { (31 - nth) as f32 };
    let around_8 = [&f16_bytes(-0.75)[..], &q].concat();
    let expected: Vec<f32> = (0..32).map(|nth| -0.75 * (integer(nth) - 8.0)).collect();
    assert_eq!(dequantize(BlockFormat::Q4_0, &around_8).unwrap(), expected);
    let above = [&f16_bytes(0.5)[..], &f16_bytes(-3.25), &q].concat();
    let expected: Vec<f32> = (0..32).map(|nth| 0.5 * integer(nth) - 3.25).collect();
    assert_eq!(dequantize(BlockFormat::Q4_1, &above).unwrap(), expected);
}

/// `quantize_row_q4_0_ref` of GGML, for one block.
fn ggml_q4_0(x: &[f32]) -> Vec<u8> {
    let (mut magnitude, mut largest) = (0.0f32, 0.0f32);
    for v in x {
        if magnitude < v.abs() {
            (magnitude, largest) = (v.abs(), *v);
        }
    }
    let d = largest / -8.0;
    let id = if d == 0.0 { 0.0 } else { 1.0 / d };
    let q = |v: f32| ((v * id + 8.5) as i8 as u8).min(15);
    let mut block = f16_bytes(d).to_vec();
    block.extend((0..16).map(|j| q(x[j]) | q(x[16 + j]) << 4));
    block
}

/// `quantize_row_q4_1_ref` of GGML, for one block.
fn ggml_q4_1(x: &[f32]) -> Vec<u8> {
    let (mut min, mut max) = (f32::MAX, f32::MIN);
    for v in x {
        min = if *v < min { *v } else { min };
        max = if *v > max { *v } else { max };
    }
    let d = (max - min) / 15.0;
    let id = if d == 0.0 { 0.0 } else { 1.0 / d };
    let q = |v: f32| (((v - min) * id + 0.5) as i8 as u8).min(15);
    let mut block = [f16_bytes(d), f16_bytes(min)].concat();
    block.extend((0..16).map(|j| q(x[j]) | q(x[16 + j]) << 4));
    block
}

#[test]
fn largest_magnitude_ties_match_ggml() {
    let with = |changes: &[(usize, f32)]| {
        let mut x = [0.25f32; 32];
        changes.iter().for_each(|(at, value)| x[*at] = *value);
        x
    };
    let mut steps = [0.0; 32];
    // Halves of steps: ties of the rounding to integers.
    (0..32).for_each(|nth| steps[nth] = (nth as f32 - 16.0) / 2.0);
    let cases = [
        with(&[(3, 2.0), (20, -2.0)]),
        with(&[(3, -2.0), (20, 2.0)]),
        with(&[(31, -0.25)]),
        with(&[(0, -0.0), (1, 0.0)]),
        [0.0; 32],
        [-0.0; 32],
        // The scale is a subnormal f16.
        with(&[]).map(|x| x * 1e-5),
        with(&[(9, -3.0)]).map(|x| x * 1e-6),
        steps,
    ];
    for x in cases {
        assert_eq!(quantize(BlockFormat::Q4_0, &x).unwrap(), ggml_q4_0(&x), "{x:?}");
        assert_eq!(quantize(BlockFormat::Q4_1, &x).unwrap(), ggml_q4_1(&x), "{x:?}");
    }
    // The sign of the scale is that of the first of the largest ones, reversed.
    assert_eq!(ggml_q4_0(&with(&[(3, 2.0), (20, -2.0)]))[1] >> 7, 1);
    assert_eq!(ggml_q4_0(&with(&[(3, -2.0), (20, 2.0)]))[1] >> 7, 0);
    assert_eq!(ggml_q4_0(&[0.0; 32])[..3], [0, 0x80, 0x88]);
}

#[test]
fn extreme_scales_have_defined_integers() {
    let block = |format, changes: &[(usize, f32)]| {
        let mut x = [1.0f32; 32];
        changes.iter().for_each(|(at, value)| x[*at] = *value);
        dequantize(format, &quantize(format, &x).unwrap()).unwrap()
    };
    for (value, expected) in [(f32::INFINITY, 524_032.0), (f32::NEG_INFINITY, -524_032.0)] {
        let weights = block(BlockFormat::Q4_0, &[(5, value)]);
        assert_eq!((weights[5], weights[6]), (expected, 0.0));
    }
    let weights = block(BlockFormat::Q4_1, &[(5, f32::INFINITY), (6, f32::NEG_INFINITY)]);
    // Zero is closest to -65504 + 65504.
    assert_eq!((weights[5], weights[6], weights[7]), (917_056.0, -65504.0, 0.0));
    for format in [BlockFormat::Q4_0, BlockFormat::Q4_1] {
        let with_nan = block(format, &[(0, f32::NAN), (1, -1.0)]);
        let without = block(format, &[(0, -1.0), (1, -1.0)]);
        assert_eq!(with_nan[1..], without[1..], "{format:?}");
        // The lowest integer, which is that of the first of the largest ones in Q4_0.
        assert!(with_nan[0].abs() == 1.0, "{format:?}: {}", with_nan[0]);
        let all_nan = dequantize(format, &quantize(format, &[f32::NAN; 32]).unwrap()).unwrap();
        assert!(all_nan.iter().all(|x| *x == 0.0), "{format:?}");
        // The scale rounds to 0: these are zeros, or the least one.
        let tiny = [1e-9f32, -1e-9].map(|x| [x; 32]).concat();
        let blocks = quantize(format, &tiny).unwrap();
        let q = if format == BlockFormat::Q4_0 { 0x88 } else { 0 };
        assert!(blocks.ends_with(&[q; 16]), "{format:?}");
        let denormal = quantize(format, &[f32::from_bits(1); 32]).unwrap();
        assert!(denormal.ends_with(&[q; 16]), "{format:?}");
    }
}

/// The weights are representable exactly in each format.
#[test]
fn representable_weights_round_trip() {
    // Every group uses all integers, the first one the largest scale and offset, 63.
    let affine = |levels: usize| -> Vec<f32> {
        let weight = |nth: usize| {
            let (group, at) = (nth / 32, nth % 32);
            let (scale, offset) = (63 - 5 * group, 63 - 9 * group);
            0.5 * (scale * (at % (levels + 1))) as f32 - 0.25 * offset as f32
        };
        (0..256).map(weight).collect()
    };
    let centred: Vec<f32> = (0..256i32)
        .map(|nth| {
            let scale = 128 - nth / 16 * 8;
            -0.25 * (scale * (nth % 16 * 4 - 32)) as f32
        })
        .collect();
    let plain: Vec<f32> = (0..32).map(|nth| 0.125 * (nth * 8 - 127) as f32).collect();
    let around_8: Vec<f32> = (0..32).map(|nth| 0.125 * ((nth * 5 % 16) - 8) as f32).collect();
    let above: Vec<f32> = (0..32).map(|nth| 0.125 * (nth * 5 % 16) as f32 - 1.5).collect();
    let cases = [
        (BlockFormat::Q4_0, around_8),
        (BlockFormat::Q4_1, above),
        (BlockFormat::Q4K, affine(15)),
        (BlockFormat::Q5K, affine(31)),
        (BlockFormat::Q6K, centred),
        (BlockFormat::Q8_0, plain),
    ];
    for (format, weights) in cases {
        let blocks = quantize(format, &weights).unwrap();
        assert_eq!(blocks.len(), format.block_bytes());
        assert_eq!(dequantize(format, &blocks).unwrap(), weights, "{format:?}");
    }
}

#[test]
fn extreme_weights_are_quantised() {
    for format in BlockFormat::ALL {
        let len = format.block_len();
        let round_trip =
            |weights: &[f32]| dequantize(format, &quantize(format, weights).unwrap()).unwrap();
        assert_eq!(round_trip(&vec![0.0; 2 * len]), vec![0.0; 2 * len]);
        for constant in [1.0, -1.0] {
            let error = round_trip(&vec![constant; len]).into_iter().map(|w| (w - constant).abs());
            assert!(error.fold(0.0, f32::max) < 2e-3, "{format:?} {constant}");
        }
        let clamped = round_trip(&vec![f32::MAX; len]);
        assert!(clamped.iter().all(|w| w.is_finite() && *w >= 65504.0), "{format:?}");
        let mixed: Vec<f32> =
            (0..len).map(|i| if i % 2 == 0 { f32::MAX } else { f32::MIN }).collect();
        assert!(round_trip(&mixed).iter().all(|w| w.is_finite()), "{format:?}");
    }
}

#[test]
fn partial_blocks_are_rejected() {
    let error = quantize(BlockFormat::Q4K, &[0.0; 255]).unwrap_err().to_string();
    assert_eq!(
        error,
        "`quantize`: weights has 255 elements, not a multiple of 256; help: pass whole blocks"
    );
    assert!(dequantize(BlockFormat::Q8_0, &[0; 33]).is_err());
    assert!(quantize(BlockFormat::Q5K, &[]).unwrap().is_empty());
}

/// Maximum error of a format relative to the largest weight of a block: one and a half steps of
/// scales that are themselves rounded; about half a step in `Q8_0` and `Q4_1`, and in `Q4_0` a
/// step, since there is no integer 16.
fn max_error(format: BlockFormat) -> f32 {
    match format {
        BlockFormat::Q4_0 => 1.01 / 8.0,
        BlockFormat::Q4_1 => 2.0 * 0.51 / 15.0,
        BlockFormat::Q4K => 2.0 * 1.5 / 15.0,
        BlockFormat::Q5K => 2.0 * 1.5 / 31.0,
        BlockFormat::Q6K => 1.5 / 32.0,
        BlockFormat::Q8_0 => 0.51 / 127.0,
    }
}

/// Approximate root-mean-square error of normally distributed weights, relative to their root mean
/// square.
fn expected_rms_error(format: BlockFormat) -> f32 {
    match format {
        BlockFormat::Q4_0 => 0.1,
        BlockFormat::Q4_1 => 0.09,
        BlockFormat::Q4K => 0.085,
        BlockFormat::Q5K => 0.042,
        BlockFormat::Q6K => 0.021,
        BlockFormat::Q8_0 => 0.0065,
    }
}

#[test]
fn normal_weights_have_small_errors() {
    let mut state = 1u32;
    let mut uniform = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    };
    let weights: Vec<f32> =
        (0..4096).map(|_| (0..12).map(|_| uniform()).sum::<f32>() - 6.0).collect();
    let square = |values: &[f32]| values.iter().map(|v| v * v).sum::<f32>();
    for format in BlockFormat::ALL {
        let dequantised = dequantize(format, &quantize(format, &weights).unwrap()).unwrap();
        let errors: Vec<f32> = dequantised.iter().zip(&weights).map(|(a, b)| a - b).collect();
        let relative_error = (square(&errors) / square(&weights)).sqrt();
        assert!(
            relative_error < expected_rms_error(format)
                && relative_error > 0.5 * expected_rms_error(format),
            "{format:?} {relative_error}"
        );
    }
}

proptest! {
    #[test]
    fn errors_are_bounded(
        weights in prop::collection::vec(-1.0f32..1.0, 256),
        spread in 0..12i32,
        shift in -2.0f32..2.0,
    ) {
        let scaled =
            |(nth, w): (usize, &f32)| (w + shift) * 2f32.powi(nth as i32 / 32 * spread / 8);
        let weights: Vec<f32> = weights.iter().enumerate().map(scaled).collect();
        for format in BlockFormat::ALL {
            let dequantised = dequantize(format, &quantize(format, &weights).unwrap()).unwrap();
            let len = format.block_len();
            for (block, dequantised) in weights.chunks(len).zip(dequantised.chunks(len)) {
                let largest = block.iter().fold(0f32, |a, b| a.max(b.abs()));
                let limit = max_error(format) * largest;
                for (a, b) in block.iter().zip(dequantised) {
                    prop_assert!((a - b).abs() <= limit, "{format:?} {a} {b}");
                }
            }
        }
    }

    #[test]
    fn requantised_blocks_stay_close(
        bytes in prop::collection::vec(any::<u8>(), 210),
    ) {
        for format in BlockFormat::ALL {
            let mut block = bytes[..format.block_bytes()].to_vec();
            let floats: &[usize] = match format {
                BlockFormat::Q6K => &[208],
                BlockFormat::Q4_0 | BlockFormat::Q8_0 => &[0],
                BlockFormat::Q4_1 | BlockFormat::Q4K | BlockFormat::Q5K => &[0, 2],
            };
            for &at in floats {
                block[at..at + 2].copy_from_slice(&f16_bytes(0.01));
            }
            let weights = dequantize(format, &block).unwrap();
            let dequantised = dequantize(format, &quantize(format, &weights).unwrap()).unwrap();
            let largest = weights.iter().fold(0f32, |a, b| a.max(b.abs()));
            for (a, b) in weights.iter().zip(&dequantised) {
                prop_assert!((a - b).abs() <= max_error(format) * largest, "{format:?} {a} {b}");
            }
        }
    }
}
