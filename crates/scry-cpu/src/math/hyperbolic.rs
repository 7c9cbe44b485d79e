//! Hyperbolic functions and their inverses.

use std::f64::consts::LN_2;

use super::exponential::scaled_exp;
use super::{double, polynomial};

/// Below this, two terms of the series of an inverse function are accurate to 2^-40.
const TINY: f32 = 1.0 / 1024.0;

/// Hyperbolic sine: `x + x³ P(x²)` with x² in [0, 1], error 2^-27.5; else by the definition.
#[inline(always)]
pub(crate) fn sinh(x: f32) -> f32 {
    const P: [f32; 4] = [2.816_951_6e-6, 0.000_198_361_6, 0.008_333_35, 0.166_666_67];
    let (abs, square) = (x.abs(), x * x);
    let small = x + x * square * polynomial(square, P);
    let half = scaled_exp(abs, -1);
    let large = (half - 0.25 / half).copysign(x);
    if abs < 1.0 { small } else { large }
}

/// Hyperbolic cosine.
#[inline(always)]
pub(crate) fn cosh(x: f32) -> f32 {
    let half = scaled_exp(x.abs(), -1);
    half + 0.25 / half
}

/// Hyperbolic tangent: `x + x³ P(x²)` with x² in [0, 0.391], error 2^-26.8; else
/// `1 - 2 / (e^2x + 1)`.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    const P: [f32; 5] =
        [-0.005_704_992_5, 0.020_639_094, -0.053_739_72, 0.133_314_42, -0.333_332_8];
    let abs = x.abs();
    let square = abs * abs;
    let small = abs + abs * square * polynomial(square, P);
    let large = 1.0 - 2.0 / (scaled_exp(2.0 * abs, 0) + 1.0);
    let value = if abs < 0.625 { small } else { large };
    value.copysign(x)
}

/// Inverse hyperbolic sine.
#[inline(always)]
pub(crate) fn asinh(x: f32) -> f32 {
    let abs = x.abs();
    let wide = f64::from(abs);
    let large = (double::log2(wide + (wide * wide + 1.0).sqrt()) * LN_2) as f32;
    let small = abs - abs * abs * abs * (1.0 / 6.0);
    let value = if abs < TINY { small } else { large };
    // Infinities and NaN are unchanged.
    if abs < f32::INFINITY { value.copysign(x) } else { x }
}

/// Inverse hyperbolic cosine; NaN below 1.
#[inline(always)]
pub(crate) fn acosh(x: f32) -> f32 {
    let wide = f64::from(x);
    let root = ((wide - 1.0) * (wide + 1.0)).sqrt();
    let value = (double::log2(wide + root) * LN_2) as f32;
    let value = if x < f32::INFINITY { value } else { x };
    if x >= 1.0 { value } else { f32::NAN }
}

/// Inverse hyperbolic tangent; NaN outside [-1, 1].
#[inline(always)]
pub(crate) fn atanh(x: f32) -> f32 {
    let abs = x.abs();
    let wide = f64::from(abs);
    let large = (double::log2((1.0 + wide) / (1.0 - wide)) * (0.5 * LN_2)) as f32;
    let small = abs + abs * abs * abs * (1.0 / 3.0);
    let value = if abs < TINY { small } else { large };
    let edge = if abs == 1.0 { f32::INFINITY } else { f32::NAN };
    let value = if abs < 1.0 { value } else { edge };
    value.copysign(x)
}
