//! Conversions of f16. Arithmetic on f16 values is done in f32.

const INFINITY: u32 = 0x7c00;

/// Returns the bits of the nearest `f16`, ties to even.
#[inline(always)]
pub(crate) fn f16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let abs = bits & 0x7fff_ffff;
    // 0x3880_0000 is 2^-14, the smallest normal `f16`.
    let magnitude = if abs < 0x3880_0000 { subnormal_bits(abs) } else { normal_bits(abs) };
    // A NaN keeps the high bits of its payload, and becomes quiet.
    let nan = 0x7e00 | (abs >> 13 & 0x3ff);
    let magnitude = if abs > 0x7f80_0000 { nan } else { magnitude };
    (bits >> 16 & 0x8000 | magnitude) as u16
}

/// Returns the bits of the nearest `f16`, ties to even.
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

/// Rounds a magnitude below 2^-14: the unit in the last place of the sum with 0.5 is the smallest
/// `f16`.
#[inline(always)]
fn subnormal_bits(abs: u32) -> u32 {
    (f32::from_bits(abs) + 0.5).to_bits().wrapping_sub(0x3f00_0000)
}

/// Rounds any other magnitude: rebiases the exponent, rounds to nearest, and overflows to infinity.
#[inline(always)]
fn normal_bits(abs: u32) -> u32 {
    let even = abs >> 13 & 1;
    let rounded = abs.wrapping_sub(112 << 23).wrapping_add(0xfff).wrapping_add(even) >> 13;
    if rounded > INFINITY { INFINITY } else { rounded }
}

/// Converts the bits of an `f16` to `f32`.
#[inline(always)]
pub(crate) fn f32_of_f16(bits: u16) -> f32 {
    let bits = u32::from(bits);
    let (sign, abs) = ((bits & 0x8000) << 16, bits & 0x7fff);
    let subnormal = (f32::from_bits(0x3f00_0000 | abs) - 0.5).to_bits();
    let normal = (abs << 13).wrapping_add(112 << 23);
    // Infinities and NaN have the maximum exponent in both formats.
    let normal = if abs >= INFINITY { normal.wrapping_add(112 << 23) } else { normal };
    f32::from_bits(sign | if abs < 0x400 { subnormal } else { normal })
}

/// Rounds to the nearest `f16`.
#[inline(always)]
pub(crate) fn quantize_f16(x: f32) -> f32 {
    f32_of_f16(f16_bits(x))
}
