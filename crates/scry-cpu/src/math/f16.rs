//! Conversions of f16, which is never computed with.

const INFINITY: u32 = 0x7c00;

/// The bits of the nearest `f16`, ties to even.
#[inline(always)]
pub(crate) fn f16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let size = bits & 0x7fff_ffff;
    let magnitude = if size < 0x3880_0000 { subnormal_bits(size) } else { normal_bits(size) };
    // A NaN keeps the high bits of its payload, and becomes quiet.
    let nan = 0x7e00 | (size >> 13 & 0x3ff);
    let magnitude = if size > 0x7f80_0000 { nan } else { magnitude };
    (bits >> 16 & 0x8000 | magnitude) as u16
}

/// The bits of the nearest `f16`, ties to even.
///
/// The intermediate `f32` is rounded to odd, to avoid double rounding: if it is inexact, it is
/// rounded towards zero and its last bit set.
#[inline(always)]
pub(crate) fn f16_bits_of_f64(x: f64) -> u16 {
    let near = x as f32;
    let back = f64::from(near);
    let towards_zero = near.to_bits() - u32::from(back.abs() > x.abs());
    let rounded = if back == x { near.to_bits() } else { towards_zero | 1 };
    f16_bits(f32::from_bits(rounded))
}

/// For magnitudes below 2^-14: the unit in the last place of the sum with 0.5 is the smallest
/// `f16`.
#[inline(always)]
fn subnormal_bits(size: u32) -> u32 {
    (f32::from_bits(size) + 0.5).to_bits().wrapping_sub(0x3f00_0000)
}

/// For other magnitudes: rebiases the exponent, rounds to nearest, and overflows to infinity.
#[inline(always)]
fn normal_bits(size: u32) -> u32 {
    let even = size >> 13 & 1;
    let rounded = size.wrapping_sub(112 << 23).wrapping_add(0xfff).wrapping_add(even) >> 13;
    if rounded > INFINITY { INFINITY } else { rounded }
}

/// Converts the bits of an `f16` to `f32`.
#[inline(always)]
pub(crate) fn f32_of_f16(half: u16) -> f32 {
    let bits = u32::from(half);
    let (sign, size) = ((bits & 0x8000) << 16, bits & 0x7fff);
    let subnormal = (f32::from_bits(0x3f00_0000 | size) - 0.5).to_bits();
    let normal = (size << 13).wrapping_add(112 << 23);
    // Infinities and NaN have the maximum exponent in both formats.
    let normal = if size >= INFINITY { normal.wrapping_add(112 << 23) } else { normal };
    f32::from_bits(sign | if size < 0x400 { subnormal } else { normal })
}

/// Rounds to the nearest `f16`.
#[inline(always)]
pub(crate) fn quantize_f16(x: f32) -> f32 {
    f32_of_f16(f16_bits(x))
}
