//! Inverse trigonometric functions.

use std::f32::consts::{FRAC_PI_2, PI};

use super::polynomial;

/// The rounding error of [`FRAC_PI_2`]; that of [`PI`] is twice that.
const EXCESS: f32 = 4.371_139e-8;

/// Argument reduction of the inverse sine of |x|. If the second value is true, the inverse sine is
/// π/2 minus twice the first one.
///
/// `asin s = s + s³ P(s²)`: s² in [0, 0.25], error 2^-27.3. From a half on, `asin x = π/2 - 2
/// asin(sqrt((1 - x) / 2))`. NaN above 1.
#[inline(always)]
fn reduced_asin(x: f32) -> (f32, bool) {
    const P: [f32; 5] = [0.042_166_326, 0.024_179_503, 0.045_470_38, 0.074_952_975, 0.166_667_52];
    let size = x.abs();
    let is_large = size > 0.5;
    let square = if is_large { 0.5 * (1.0 - size) } else { size * size };
    let s = if is_large { square.sqrt() } else { size };
    (s + s * square * polynomial(square, P), is_large)
}

/// `π/2 - x`.
#[inline(always)]
fn from_right_angle(x: f32) -> f32 {
    FRAC_PI_2 - (x + EXCESS)
}

/// `π - x`.
#[inline(always)]
fn from_half_turn(x: f32) -> f32 {
    PI - (x + 2.0 * EXCESS)
}

/// Inverse sine; NaN outside [-1, 1].
#[inline(always)]
pub(crate) fn asin(x: f32) -> f32 {
    let (part, is_large) = reduced_asin(x);
    let angle = if is_large { from_right_angle(2.0 * part) } else { part };
    angle.copysign(x)
}

/// Inverse cosine; NaN outside [-1, 1].
#[inline(always)]
pub(crate) fn acos(x: f32) -> f32 {
    let (part, is_large) = reduced_asin(x);
    let twice = 2.0 * part;
    let large = if x < 0.0 { from_half_turn(twice) } else { twice };
    if is_large { large } else { from_right_angle(part.copysign(x)) }
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
    let size = x.abs();
    let is_large = size > 1.0;
    let part = atan_to_one(if is_large { 1.0 / size } else { size });
    let angle = if is_large { from_right_angle(part) } else { part };
    angle.copysign(x)
}

/// The angle of the point (x, y), from -π to π; signs of zeros are significant.
#[inline(always)]
pub(crate) fn atan2(y: f32, x: f32) -> f32 {
    let (height, width) = (y.abs(), x.abs());
    let is_steep = height > width;
    let (over, under) =
        (if is_steep { width } else { height }, if is_steep { height } else { width });
    // For two infinities, 1.
    let ratio = if over == f32::INFINITY { 1.0 } else { over / under };
    let part = atan_to_one(if under == 0.0 { 0.0 } else { ratio });
    let angle = if is_steep { from_right_angle(part) } else { part };
    let angle = if x.is_sign_negative() { from_half_turn(angle) } else { angle };
    if x.is_nan() | y.is_nan() { f32::NAN } else { angle.copysign(y) }
}
