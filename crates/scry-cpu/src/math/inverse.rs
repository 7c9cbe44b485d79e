//! Inverse trigonometric functions.

use std::f32::consts::{FRAC_PI_2, PI};

use super::polynomial;

/// [`FRAC_PI_2`] minus π/2. [`PI`] minus π is twice as much.
const FRAC_PI_2_ERROR: f32 = 4.371_139e-8;

/// Argument reduction of the inverse sine of |x|. The inverse sine is the first result, or if the
/// second one is true, π/2 minus twice the first.
///
/// `asin s = s + s³ P(s²)`: s² in [0, 0.25], error 2^-27.3. Above 0.5, `asin x = π/2 - 2
/// asin(sqrt((1 - x) / 2))`. NaN above 1.
#[inline(always)]
fn reduce_asin(x: f32) -> (f32, bool) {
    const P: [f32; 5] = [0.042_166_326, 0.024_179_503, 0.045_470_38, 0.074_952_975, 0.166_667_52];
    let abs = x.abs();
    let is_large = abs > 0.5;
    let square = if is_large { 0.5 * (1.0 - abs) } else { abs * abs };
    let s = if is_large { square.sqrt() } else { abs };
    (s + s * square * polynomial(square, P), is_large)
}

/// `π/2 - x`.
#[inline(always)]
fn frac_pi_2_minus(x: f32) -> f32 {
    FRAC_PI_2 - (x + FRAC_PI_2_ERROR)
}

/// `π - x`.
#[inline(always)]
fn pi_minus(x: f32) -> f32 {
    PI - (x + 2.0 * FRAC_PI_2_ERROR)
}

/// Inverse sine; NaN outside [-1, 1].
#[inline(always)]
pub(crate) fn asin(x: f32) -> f32 {
    let (part, is_large) = reduce_asin(x);
    let angle = if is_large { frac_pi_2_minus(2.0 * part) } else { part };
    angle.copysign(x)
}

/// Inverse cosine; NaN outside [-1, 1].
#[inline(always)]
pub(crate) fn acos(x: f32) -> f32 {
    let (part, is_large) = reduce_asin(x);
    let twice = 2.0 * part;
    let large = if x < 0.0 { pi_minus(twice) } else { twice };
    if is_large { large } else { frac_pi_2_minus(part.copysign(x)) }
}

/// `atan t = t + t³ P(t²)`: t in [0, 1], error 2^-27.
#[inline(always)]
fn atan_to_one(t: f32) -> f32 {
    const P: [f32; 9] = [
        -0.001_793_645_4,
        0.010_914_721,
        -0.031_178_081,
        0.057_957_854,
        -0.084_034_674,
        0.109_521_925,
        -0.142_642_44,
        0.199_985_49,
        -0.333_333,
    ];
    let square = t * t;
    t + t * square * polynomial(square, P)
}

/// Inverse tangent.
#[inline(always)]
pub(crate) fn atan(x: f32) -> f32 {
    let abs = x.abs();
    let is_large = abs > 1.0;
    let part = atan_to_one(if is_large { 1.0 / abs } else { abs });
    let angle = if is_large { frac_pi_2_minus(part) } else { part };
    angle.copysign(x)
}

/// The angle of the point (x, y), from -π to π; signs of zeros are significant.
#[inline(always)]
pub(crate) fn atan2(y: f32, x: f32) -> f32 {
    let (height, width) = (y.abs(), x.abs());
    let is_steep = height > width;
    let (min, max) = (if is_steep { width } else { height }, if is_steep { height } else { width });
    // The ratio of two infinities is 1.
    let ratio = if min == f32::INFINITY { 1.0 } else { min / max };
    let part = atan_to_one(if max == 0.0 { 0.0 } else { ratio });
    let angle = if is_steep { frac_pi_2_minus(part) } else { part };
    let angle = if x.is_sign_negative() { pi_minus(angle) } else { angle };
    if x.is_nan() | y.is_nan() { f32::NAN } else { angle.copysign(y) }
}
