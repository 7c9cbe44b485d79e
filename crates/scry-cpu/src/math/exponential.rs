//! Powers, logarithms and roots.

use std::f32::consts::{LN_2, LOG2_E};

use super::round::floor;
use super::{clamp, double, polynomial};

/// Adding it rounds a number below 2^22 to an integer, which is in the low bits of the sum.
const ROUND: f32 = 12_582_912.0;

/// `1 / sqrt(x)`.
#[inline(always)]
pub(crate) fn inverse_sqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}

/// e to the power `x`.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    scaled_exp(x, 0)
}

/// `e^x * 2^shift` for a small shift, without intermediate overflow.
///
/// `x = k * ln 2 + r`, and `e^r = 1 + r + r² P(r)`: r in [-0.347, 0.347], error 2^-27.7.
#[inline(always)]
pub(super) fn scaled_exp(x: f32, shift: i32) -> f32 {
    const P: [f32; 5] = [0.001_381_448, 0.008_368_78, 0.041_668_393, 0.166_665_2, 0.499_999_94];
    // The high term of ln 2, of 15 bits: its product with k is exact.
    const HIGH: f32 = 0.693_145_75;
    const LOW: f32 = 1.428_606_8e-6;
    let x = clamp(x, -105.0, 90.0);
    let sum = x * LOG2_E + ROUND;
    let k = sum - ROUND;
    let r = (x - k * HIGH) - k * LOW;
    let power = 1.0 + (r + r * r * polynomial(r, P));
    scale(power, rounded_integer(sum).wrapping_add(shift))
}

/// 2 to the power `x`.
///
/// `2^r = 1 + r ln 2 + r² Q(r)`: r in [-0.5, 0.5], error 2^-27.9.
#[inline(always)]
pub(crate) fn exp2(x: f32) -> f32 {
    const Q: [f32; 5] =
        [0.000_153_211_7, 0.001_339_016_1, 0.009_618_526, 0.055_503_62, 0.240_226_48];
    let x = clamp(x, -151.0, 129.0);
    let sum = x + ROUND;
    let r = x - (sum - ROUND);
    let power = 1.0 + (r * LN_2 + r * r * polynomial(r, Q));
    scale(power, rounded_integer(sum))
}

/// Returns the integer that was rounded by adding [`ROUND`].
#[inline(always)]
fn rounded_integer(sum: f32) -> i32 {
    sum.to_bits().wrapping_sub(ROUND.to_bits()) as i32
}

/// `x * 2^n` for n between -252 and 254, as two products of which only the second can round.
#[inline(always)]
fn scale(x: f32, n: i32) -> f32 {
    let half = n >> 1;
    x * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// Natural logarithm.
#[inline(always)]
pub(crate) fn log(x: f32) -> f32 {
    // As for `exp`.
    const HIGH: f32 = 0.693_145_75;
    const LOW: f32 = 1.428_606_8e-6;
    let (k, f) = split(x);
    let log = k * HIGH + (f + (log_tail(f) + k * LOW));
    at_edges(x, log)
}

/// Logarithm to base 2.
#[inline(always)]
pub(crate) fn log2(x: f32) -> f32 {
    // The low term of log2(e).
    const LOW: f32 = 1.925_963e-8;
    let (k, f) = split(x);
    let log = k + (f * LOG2_E + (log_tail(f) * LOG2_E + f * LOW));
    at_edges(x, log)
}

/// `ln(1 + f) - f = f³ P(f) - f²/2`: f in [-0.293, 0.415], error of the logarithm 2^-28.2.
#[inline(always)]
fn log_tail(f: f32) -> f32 {
    const P: [f32; 9] = [
        0.067_466_26,
        -0.116_756_31,
        0.118_881_53,
        -0.124_055_9,
        0.142_195_54,
        -0.166_679_96,
        0.200_021_19,
        -0.250_000_1,
        0.333_333_13,
    ];
    let square = f * f;
    f * square * polynomial(f, P) - 0.5 * square
}

/// k and f of `x = 2^k * (1 + f)`, where 1 + f is between sqrt(1/2) and sqrt(2).
#[inline(always)]
fn split(x: f32) -> (f32, f32) {
    const ROOT_HALF: u32 = 0x3f35_04f3;
    let is_small = x < f32::MIN_POSITIVE;
    // Subnormal numbers are scaled by 2^24.
    let scaled = if is_small { x * 16_777_216.0 } else { x };
    let shifted = scaled.to_bits().wrapping_sub(ROOT_HALF);
    let k = ((shifted as i32) >> 23) as f32;
    let k = if is_small { k - 24.0 } else { k };
    let m = f32::from_bits((shifted & 0x007f_ffff).wrapping_add(ROOT_HALF));
    (k, m - 1.0)
}

/// Returns the logarithm of any x. `log` is the result for positive finite numbers, and arbitrary
/// for others.
#[inline(always)]
fn at_edges(x: f32, log: f32) -> f32 {
    let edge = if x == 0.0 { f32::NEG_INFINITY } else { f32::NAN };
    let log = if x > 0.0 { log } else { edge };
    if x == f32::INFINITY { x } else { log }
}

/// `x` to the power `y`, as in C: NaN for finite negative `x` and non-integer `y`; 1 if `y` is 0 or
/// `x` is 1, even if the other argument is NaN.
#[inline(always)]
pub(crate) fn pow(x: f32, y: f32) -> f32 {
    let abs = x.abs();
    let log = double::log2(f64::from(abs));
    let log = if abs == 0.0 { f64::NEG_INFINITY } else { log };
    // The logarithm of infinity or NaN is that number.
    let log = if abs < f32::INFINITY { log } else { f64::from(abs) };
    let power = signed_power(x, y, double::exp2(f64::from(y) * log));
    let is_infinite_power_of_one = (abs == 1.0) & (y.abs() == f32::INFINITY);
    if (y == 0.0) | (x == 1.0) | is_infinite_power_of_one { 1.0 } else { power }
}

/// Returns `x` to the power `y`, given that of the absolute value of `x`.
#[inline(always)]
fn signed_power(x: f32, y: f32, power: f32) -> f32 {
    let (half, is_integer) = (0.5 * y, floor(y) == y);
    let is_odd = is_integer & (floor(half) != half);
    let sign = if is_odd { x } else { 1.0 };
    let power = power.copysign(sign);
    let is_undefined = (x < 0.0) & (x > f32::NEG_INFINITY) & !is_integer;
    if is_undefined { f32::NAN } else { power }
}
