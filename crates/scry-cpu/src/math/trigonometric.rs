//! Sine, cosine, tangent.

use std::f64::consts::FRAC_PI_2;

use super::{double, polynomial};

/// The quadrant of an angle, and sine and cosine of the remainder.
struct Angle {
    quadrant: u32,
    sin: f32,
    cos: f32,
}

/// Reduces an angle, and computes sine and cosine of the remainder.
///
/// `sin r = r + r³ S(r²)`, error 2^-26.9; `cos r = 1 - r²/2 + r⁴ C(r²)`, error 2^-32.6; both for
/// r in [-π/4, π/4].
#[inline(always)]
fn angle(x: f32) -> Angle {
    const S: [f32; 3] = [-0.000_195_152_18, 0.008_332_16, -0.166_666_55];
    const C: [f32; 3] = [2.443_308_4e-5, -0.001_388_731_5, 0.041_666_646];
    let (quadrant, r) = reduce(x);
    let square = r * r;
    Angle {
        quadrant,
        sin: r + r * square * polynomial(square, S),
        cos: (1.0 - 0.5 * square) + square * square * polynomial(square, C),
    }
}

/// Reduces an angle to its quadrant and a remainder.
///
/// 2/π is the sum of two terms, of which the first has 29 bits: its product with an `f32` is exact,
/// and so is the fraction of that. Before it is rounded to `f32`, the remainder is accurate to
/// 2^-51 up to 2^29, and to 2^-30 up to 2^50. Beyond that it is arbitrary, though still at most
/// π/4.
#[inline(always)]
fn reduce(x: f32) -> (u32, f32) {
    const HIGH: f64 = 0.636_619_770_899_415;
    const LOW: f64 = 1.468_166_326_901_218_6e-9;
    let x = f64::from(x);
    let product = x * HIGH;
    let first = product + double::ROUND;
    let remainder = (product - (first - double::ROUND)) + x * LOW;
    let second = remainder + double::ROUND;
    let remainder = remainder - (second - double::ROUND);
    let remainder = if remainder > 0.5 { 0.5 } else { remainder };
    let remainder = if remainder < -0.5 { -0.5 } else { remainder };
    let quadrant = (first.to_bits() as u32).wrapping_add(second.to_bits() as u32);
    (quadrant, (remainder * FRAC_PI_2) as f32)
}

/// Negates `x` if bit 1 of `quadrant` is set.
#[inline(always)]
fn negate_by(x: f32, quadrant: u32) -> f32 {
    f32::from_bits(x.to_bits() ^ (quadrant & 2) << 30)
}

/// Sine of radians.
#[inline(always)]
pub(crate) fn sin(x: f32) -> f32 {
    let Angle { quadrant, sin, cos } = angle(x);
    let value = if quadrant & 1 == 0 { sin } else { cos };
    // The polynomial loses the sign of a zero.
    if x == 0.0 { x } else { negate_by(value, quadrant) }
}

/// Cosine of radians.
#[inline(always)]
pub(crate) fn cos(x: f32) -> f32 {
    let Angle { quadrant, sin, cos } = angle(x);
    let value = if quadrant & 1 == 0 { cos } else { sin };
    negate_by(value, quadrant.wrapping_add(1))
}

/// Tangent of radians.
#[inline(always)]
pub(crate) fn tan(x: f32) -> f32 {
    let Angle { quadrant, sin, cos } = angle(x);
    let is_even = quadrant & 1 == 0;
    let (numerator, denominator) =
        (if is_even { sin } else { -cos }, if is_even { cos } else { sin });
    if x == 0.0 { x } else { numerator / denominator }
}
