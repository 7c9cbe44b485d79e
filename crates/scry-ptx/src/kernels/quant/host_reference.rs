//! Quantisation and dequantisation on the host: the reference for tests of the kernels.

use half::f16;

use super::format::BlockFormat;
use super::scale_search::{self, Affine, inverse, round_clamped};
use crate::kernels::PlanError;

/// The largest `f16`.
pub(super) const MAX_F16: f32 = 65504.0;

/// Quantises weights: scales by least squares over each 32 weights (16 in `Q6K`; in `Q8_0` by the
/// largest magnitude), rounded to the stored precision, then the nearest integers. Scales beyond
/// the range of `f16` are clamped.
///
/// `Q4_0` and `Q4_1` have the bytes of GGML's reference, `quantize_row_q4_0_ref`: the scale is that
/// of the first weight with the largest magnitude, and of the range, and integers are those of the
/// scale before it is rounded. Unlike there, scales beyond the range of `f16` are clamped, and the
/// integers of a scale that rounds to 0 are those of zeros.
///
/// NaN does not change scales; it becomes the lowest integer.
///
/// # Errors
/// [`PlanError::Argument`] if the number of weights is not a multiple of the block length.
pub fn quantize(format: BlockFormat, weights: &[f32]) -> Result<Vec<u8>, PlanError> {
    let len = format.block_len();
    check_whole_blocks("quantize", "weights", "elements", [weights.len(), len])?;
    let encode = match format {
        BlockFormat::Q4_0 => encode_nibbles_around_8,
        BlockFormat::Q4_1 => encode_nibbles,
        BlockFormat::Q4K => |x: &[f32]| encode_affine::<4>(x),
        BlockFormat::Q5K => |x: &[f32]| encode_affine::<5>(x),
        BlockFormat::Q6K => encode_centred,
        BlockFormat::Q8_0 => encode_plain,
    };
    Ok(weights.chunks_exact(len).flat_map(encode).collect())
}

/// Dequantises blocks to weights.
///
/// # Errors
/// [`PlanError::Argument`] if the number of bytes is not a multiple of the block size.
pub fn dequantize(format: BlockFormat, blocks: &[u8]) -> Result<Vec<f32>, PlanError> {
    let bytes = format.block_bytes();
    check_whole_blocks("dequantize", "blocks", "bytes", [blocks.len(), bytes])?;
    let decode = match format {
        BlockFormat::Q4_0 => decode_nibbles_around_8,
        BlockFormat::Q4_1 => decode_nibbles,
        BlockFormat::Q4K => |block: &[u8]| decode_affine(block, None, &block[16..]),
        BlockFormat::Q5K => |block: &[u8]| decode_affine(block, Some(&block[16..48]), &block[48..]),
        BlockFormat::Q6K => decode_centred,
        BlockFormat::Q8_0 => decode_plain,
    };
    Ok(blocks.chunks_exact(bytes).flat_map(decode).collect())
}

fn check_whole_blocks(
    function: &str,
    argument: &'static str,
    unit: &str,
    [len, block]: [usize; 2],
) -> Result<(), PlanError> {
    if len.is_multiple_of(block) {
        return Ok(());
    }
    Err(PlanError::Argument {
        kernel: function.to_owned(),
        argument,
        problem: format!("has {len} {unit}, not a multiple of {block}"),
        help: "pass whole blocks",
    })
}

/// Rounds a scale to `f16`, clamped to its range; returns the stored bytes and the rounded value.
fn round_scale(scale: f32) -> ([u8; 2], f32) {
    let rounded = f16::from_f32(scale.clamp(-MAX_F16, MAX_F16));
    (rounded.to_le_bytes(), rounded.to_f32())
}

fn f16_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// Packs 8 scales and 8 offsets of 6 bits into 12 bytes:
///
/// - bytes 0 to 3: scales 0 to 3 in the low 6 bits, the upper 2 bits of scales 4 to 7 above;
/// - bytes 4 to 7: the same of the offsets;
/// - bytes 8 to 11: the low 4 bits of scales 4 to 7, and above them those of offsets 4 to 7.
fn pack_scales(scales: [u8; 8], offsets: [u8; 8]) -> [u8; 12] {
    let mut packed = [0; 12];
    for i in 0..4 {
        packed[i] = scales[i] | (scales[i + 4] >> 4) << 6;
        packed[i + 4] = offsets[i] | (offsets[i + 4] >> 4) << 6;
        packed[i + 8] = scales[i + 4] & 15 | offsets[i + 4] << 4;
    }
    packed
}

fn unpack_scale(packed: &[u8], group: usize) -> (u8, u8) {
    if group < 4 {
        return (packed[group] & 63, packed[group + 4] & 63);
    }
    let both = packed[group + 4];
    (both & 15 | (packed[group - 4] >> 6) << 4, both >> 4 | (packed[group] >> 6) << 4)
}

fn encode_affine<const BITS: u32>(x: &[f32]) -> Vec<u8> {
    let levels = ((1 << BITS) - 1) as f32;
    let fits: Vec<Affine> =
        x.chunks_exact(32).map(|x| scale_search::fit_affine(x, levels)).collect();
    let max_unit = |part: fn(&Affine) -> f32| fits.iter().map(part).fold(0.0, f32::max) / 63.0;
    let (d_bytes, d) = round_scale(max_unit(|fit| fit.scale));
    let (dmin_bytes, dmin) = round_scale(max_unit(|fit| fit.offset));
    let to_six_bits = |value: f32, unit: f32| round_clamped(value * inverse(unit), 0.0, 63.0) as u8;
    let scales = std::array::from_fn(|i| to_six_bits(fits[i].scale, d));
    let offsets = std::array::from_fn(|i| to_six_bits(fits[i].offset, dmin));
    let mut block = [&d_bytes[..], &dmin_bytes, &pack_scales(scales, offsets)].concat();
    let (mut low, mut high) = ([0u8; 128], [0u8; 32]);
    for (nth, x) in x.iter().enumerate() {
        let (group, at) = (nth / 32, nth % 32);
        let (scale, offset) = (d * f32::from(scales[group]), dmin * f32::from(offsets[group]));
        let q = round_clamped((x + offset) * inverse(scale), 0.0, levels) as u8;
        low[group / 2 * 32 + at] |= (q & 15) << (4 * (group % 2));
        high[at] |= (q >> 4) << group;
    }
    if BITS == 5 {
        block.extend(high);
    }
    block.extend(low);
    block
}

fn decode_affine(block: &[u8], high: Option<&[u8]>, low: &[u8]) -> Vec<f32> {
    let (d, dmin) = (f16_at(block, 0), f16_at(block, 2));
    let weight = |nth: usize| {
        let (group, at) = (nth / 32, nth % 32);
        let (scale, offset) = unpack_scale(&block[4..16], group);
        let nibble = low[group / 2 * 32 + at] >> (4 * (group % 2)) & 15;
        let q = nibble | high.map_or(0, |high| (high[at] >> group & 1) << 4);
        d * f32::from(scale) * f32::from(q) - dmin * f32::from(offset)
    };
    (0..256).map(weight).collect()
}

/// Returns where an integer of `Q6K` is stored: the byte with its low 4 bits and their shift, the
/// byte with its high 2 bits and their shift.
const fn six_bits(nth: usize) -> (usize, usize, usize, usize) {
    let (half, group, at) = (nth / 128, nth / 32 % 4, nth % 32);
    (64 * half + 32 * (group % 2) + at, 4 * (group / 2), 128 + 32 * half + at, 2 * group)
}

fn encode_centred(x: &[f32]) -> Vec<u8> {
    let fits: Vec<f32> = x.chunks_exact(16).map(|x| scale_search::fit_centred(x, 32.0)).collect();
    let (d_bytes, d) = round_scale(scale_search::extreme(&fits) / -128.0);
    let mut block = vec![0; 208];
    for (nth, fit) in fits.iter().enumerate() {
        block[192 + nth] = round_clamped(fit * inverse(d), -128.0, 127.0) as i8 as u8;
    }
    for (nth, x) in x.iter().enumerate() {
        let scale = d * f32::from(block[192 + nth / 16] as i8);
        let q = (round_clamped(x * inverse(scale), -32.0, 31.0) + 32.0) as u8;
        let (low, low_shift, high, high_shift) = six_bits(nth);
        block[low] |= (q & 15) << low_shift;
        block[high] |= (q >> 4) << high_shift;
    }
    block.extend(d_bytes);
    block
}

fn decode_centred(block: &[u8]) -> Vec<f32> {
    let d = f16_at(block, 208);
    let weight = |nth: usize| {
        let (low, low_shift, high, high_shift) = six_bits(nth);
        let q = block[low] >> low_shift & 15 | (block[high] >> high_shift & 3) << 4;
        d * f32::from(i16::from(block[192 + nth / 16] as i8) * (i16::from(q) - 32))
    };
    (0..256).map(weight).collect()
}

fn encode_plain(x: &[f32]) -> Vec<u8> {
    let (d_bytes, d) = round_scale(scale_search::extreme(x).abs() / 127.0);
    let q = x.iter().map(|x| round_clamped(x * inverse(d), -127.0, 127.0) as i8 as u8);
    d_bytes.into_iter().chain(q).collect()
}

fn decode_plain(block: &[u8]) -> Vec<f32> {
    let d = f16_at(block, 0);
    block[2..].iter().map(|q| d * f32::from(*q as i8)).collect()
}

/// Packs the integers of 32 weights: weight `i` with weight `i + 16`.
fn pack_nibbles(x: &[f32], integer: impl Fn(f32) -> f32) -> impl Iterator<Item = u8> {
    let q: Vec<u8> = x.iter().map(|x| truncated_clamped(integer(*x))).collect();
    (0..16).map(move |nth| q[nth] | q[nth + 16] << 4)
}

/// Truncates to an integer from 0 to 15; NaN becomes 0.
fn truncated_clamped(value: f32) -> u8 {
    value.clamp(0.0, 15.0) as u8
}

/// Returns the integers of 32 weights.
fn unpack_nibbles(q: &[u8]) -> impl Iterator<Item = f32> {
    (0..32).map(|nth| f32::from(q[nth % 16] >> (4 * (nth / 16)) & 15))
}

/// Returns the inverse of a scale before it is rounded; 0 if it rounds to 0.
fn inverse_unless_lost(scale: f32, rounded: f32) -> f32 {
    if rounded == 0.0 { 0.0 } else { 1.0 / scale }
}

fn encode_nibbles_around_8(x: &[f32]) -> Vec<u8> {
    let first_largest = |a: f32, b: &f32| if b.abs() > a.abs() { *b } else { a };
    let scale = (x.iter().fold(0.0, first_largest) / -8.0).clamp(-MAX_F16, MAX_F16);
    let (d_bytes, d) = round_scale(scale);
    let inverse = inverse_unless_lost(scale, d);
    d_bytes.into_iter().chain(pack_nibbles(x, |x| x * inverse + 8.5)).collect()
}

fn decode_nibbles_around_8(block: &[u8]) -> Vec<f32> {
    let d = f16_at(block, 0);
    unpack_nibbles(&block[2..]).map(|q| d * (q - 8.0)).collect()
}

fn encode_nibbles(x: &[f32]) -> Vec<u8> {
    // Of equal numbers, which zeros with different signs are, the first one.
    let low = x.iter().fold(f32::INFINITY, |low, x| if *x < low { *x } else { low });
    let high = x.iter().fold(f32::NEG_INFINITY, |high, x| if *x > high { *x } else { high });
    // There is no range without numbers (all are NaN), nor between infinities with the same sign.
    let range = if low < high { high - low } else { 0.0 };
    let low = if low > high { 0.0 } else { low.clamp(-MAX_F16, MAX_F16) };
    let scale = (range / 15.0).min(MAX_F16);
    let ((d_bytes, d), (m_bytes, _)) = (round_scale(scale), round_scale(low));
    let inverse = inverse_unless_lost(scale, d);
    let q = pack_nibbles(x, |x| (x - low) * inverse + 0.5);
    d_bytes.into_iter().chain(m_bytes).chain(q).collect()
}

fn decode_nibbles(block: &[u8]) -> Vec<f32> {
    let (d, m) = (f16_at(block, 0), f16_at(block, 2));
    unpack_nibbles(&block[4..]).map(|q| d * q + m).collect()
}
