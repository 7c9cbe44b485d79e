//! Sign, exponent and fraction of floats; minimum and maximum.

const SIGN: u32 = 0x8000_0000;
const FRACTION: u32 = 0x007f_ffff;
const EXPONENT: u32 = 0x7f80_0000;

/// Minimum; if one operand is NaN, the other one.
#[inline(always)]
pub(crate) fn min(x: f32, y: f32) -> f32 {
    let smaller = if x < y { x } else { y };
    if y.is_nan() { x } else { smaller }
}

/// Maximum; if one operand is NaN, the other one.
#[inline(always)]
pub(crate) fn max(x: f32, y: f32) -> f32 {
    let larger = if x > y { x } else { y };
    if y.is_nan() { x } else { larger }
}

/// Returns -1 or 1; zeros and NaN are unchanged.
#[inline(always)]
pub(crate) fn sign(x: f32) -> f32 {
    if (x > 0.0) | (x < 0.0) { 1f32.copysign(x) } else { x }
}

/// `x * 2^e`, rounded once.
///
/// With exponents beyond ±277 the result is zero or infinite for any `f32`; within, the product is
/// exact in double precision.
#[inline(always)]
pub(crate) fn ldexp(x: f32, e: i32) -> f32 {
    let e = if e < -300 { -300 } else { e };
    let e = if e > 300 { 300 } else { e };
    let biased = u64::from(e.wrapping_add(1023) as u32);
    (f64::from(x) * f64::from_bits(biased << 52)) as f32
}

/// Scales a subnormal number by 2^24; returns the bits, and the exponent of the scale.
#[inline(always)]
fn scale_subnormal(x: f32) -> (u32, i32) {
    let is_small = x.abs() < f32::MIN_POSITIVE;
    let scaled = if is_small { x * 16_777_216.0 } else { x };
    (scaled.to_bits(), if is_small { 24 } else { 0 })
}

/// `f` of `x = f * 2^e` with `|f|` in [0.5, 1). Zeros, infinities and NaN are unchanged.
#[inline(always)]
pub(crate) fn frexp_fraction(x: f32) -> f32 {
    let (bits, _) = scale_subnormal(x);
    let fraction = f32::from_bits(bits & (SIGN | FRACTION) | 0x3f00_0000);
    if is_finite_nonzero(x) { fraction } else { x }
}

/// `e` of `x = f * 2^e` as in [`frexp_fraction`]; 0 for zeros, infinities and NaN.
#[inline(always)]
pub(crate) fn frexp_exponent(x: f32) -> i32 {
    let (bits, added) = scale_subnormal(x);
    let exponent = ((bits & EXPONENT) >> 23) as i32;
    let exponent = exponent.wrapping_sub(126).wrapping_sub(added);
    if is_finite_nonzero(x) { exponent } else { 0 }
}

#[inline(always)]
fn is_finite_nonzero(x: f32) -> bool {
    (x != 0.0) & (x.abs() < f32::INFINITY)
}
