//! Floats of 16 bits: converted, never computed with.

const INFINITY: u32 = 0x7c00;

/// The bits of the nearest `f16`, ties to even.
#[inline(always)]
pub(crate) fn f16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let size = bits & 0x7fff_ffff;
    let magnitude = if size < 0x3880_0000 { subnormal_bits(size) } else { normal_bits(size) };
    // A NaN keeps the head of its payload, and becomes quiet.
    let nan = 0x7e00 | (size >> 13 & 0x3ff);
    let magnitude = if size > 0x7f80_0000 { nan } else { magnitude };
    (bits >> 16 & 0x8000 | magnitude) as u16
}

/// The bits of the nearest `f16`, ties to even.
///
/// An `f32` on the way must not become a tie that the number is not: where it is not exact, it is
/// rounded to zero and its last bit set, which says that there was more.
#[inline(always)]
pub(crate) fn f16_bits_of_f64(x: f64) -> u16 {
    let near = x as f32;
    let back = f64::from(near);
    let towards_zero = near.to_bits() - u32::from(back.abs() > x.abs());
    let rounded = if back == x { near.to_bits() } else { towards_zero | 1 };
    f16_bits(f32::from_bits(rounded))
}

/// Of a size below 2^-14: in the sum with a half, a unit in the last place is the least `f16`.
#[inline(always)]
fn subnormal_bits(size: u32) -> u32 {
    (f32::from_bits(size) + 0.5).to_bits().wrapping_sub(0x3f00_0000)
}

/// Of any other: the exponent loses 127 - 15, a half of the last place kept is added, and whatever
/// exceeds the largest `f16` is infinite.
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
    // Infinities and NaN have the greatest exponent of both formats.
    let normal = if size >= INFINITY { normal.wrapping_add(112 << 23) } else { normal };
    f32::from_bits(sign | if size < 0x400 { subnormal } else { normal })
}

/// The nearest number that an `f16` can be.
#[inline(always)]
pub(crate) fn quantize_f16(x: f32) -> f32 {
    f32_of_f16(f16_bits(x))
}
