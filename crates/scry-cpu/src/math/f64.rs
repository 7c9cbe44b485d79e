//! Functions on `f64`: those of the standard library, with the special cases of the functions on
//! `f32`.
//!
//! They are rare in kernels and slow on all processors, and are not vectorised.

/// 2^(-1022 + 53), the factor by which [`ldexp`] scales down before its last product. An
/// intermediate product then is exact, or so small that the result is zero: only the last one
/// rounds.
const DOWN: f64 = f64::from_bits((1023 - 969) << 52);
/// 2^1023, the factor by which [`ldexp`] scales up.
const UP: f64 = f64::from_bits((1023 + 1023) << 52);

/// Minimum; if one operand is NaN, the other one.
#[inline(always)]
pub(crate) fn min(x: f64, y: f64) -> f64 {
    x.min(y)
}

/// Maximum; if one operand is NaN, the other one.
#[inline(always)]
pub(crate) fn max(x: f64, y: f64) -> f64 {
    x.max(y)
}

/// Returns -1 or 1; zeros and NaN are unchanged.
#[inline(always)]
pub(crate) fn sign(x: f64) -> f64 {
    if (x > 0.0) | (x < 0.0) { 1f64.copysign(x) } else { x }
}

/// `x - floor(x)`, which may round up to 1.
#[inline(always)]
pub(crate) fn fract(x: f64) -> f64 {
    x - x.floor()
}

/// `x - y * trunc(x / y)`, each step rounded: the remainder, unless the quotient is large.
#[inline(always)]
pub(crate) fn rem(x: f64, y: f64) -> f64 {
    x - y * (x / y).trunc()
}

/// `1 / sqrt(x)`.
#[inline(always)]
pub(crate) fn inverse_sqrt(x: f64) -> f64 {
    1.0 / x.sqrt()
}

/// `x * 2^e`, rounded once.
pub(crate) fn ldexp(mut x: f64, e: i32) -> f64 {
    let mut e = e.clamp(-2200, 2200);
    while e > 1023 {
        (x, e) = (x * UP, e - 1023);
    }
    while e < -1022 {
        (x, e) = (x * DOWN, e + 969);
    }
    x * f64::from_bits(((e + 1023) as u64) << 52)
}

/// `f` and `e` of `x = f * 2^e` with `|f|` in [0.5, 1). Zeros, infinities and NaN are unchanged,
/// with exponent 0.
fn frexp(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let is_small = x.abs() < f64::MIN_POSITIVE;
    let (scaled, added) = if is_small { (x * 2f64.powi(54), 54) } else { (x, 0) };
    let bits = scaled.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1022 - added;
    (f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52), exponent)
}

/// `f` of `x = f * 2^e` with `|f|` in [0.5, 1). Zeros, infinities and NaN are unchanged.
pub(crate) fn frexp_fraction(x: f64) -> f64 {
    frexp(x).0
}

/// `e` of `x = f * 2^e` as in [`frexp_fraction`]; 0 for zeros, infinities and NaN.
pub(crate) fn frexp_exponent(x: f64) -> i32 {
    frexp(x).1
}

/// `x` to the power `y`.
pub(crate) fn pow(x: f64, y: f64) -> f64 {
    x.powf(y)
}

/// Rounds towards negative infinity.
pub(crate) fn floor(x: f64) -> f64 {
    x.floor()
}

/// Rounds towards positive infinity.
pub(crate) fn ceil(x: f64) -> f64 {
    x.ceil()
}

/// Rounds to the nearest integer, ties to even.
pub(crate) fn round_even(x: f64) -> f64 {
    x.round_ties_even()
}

/// Rounds towards zero.
pub(crate) fn trunc(x: f64) -> f64 {
    x.trunc()
}

/// e to the power `x`.
pub(crate) fn exp(x: f64) -> f64 {
    x.exp()
}

/// 2 to the power `x`.
pub(crate) fn exp2(x: f64) -> f64 {
    x.exp2()
}

/// Natural logarithm.
pub(crate) fn log(x: f64) -> f64 {
    x.ln()
}

/// Logarithm to base 2.
pub(crate) fn log2(x: f64) -> f64 {
    x.log2()
}

/// Sine of radians.
pub(crate) fn sin(x: f64) -> f64 {
    x.sin()
}

/// Cosine of radians.
pub(crate) fn cos(x: f64) -> f64 {
    x.cos()
}

/// Tangent of radians.
pub(crate) fn tan(x: f64) -> f64 {
    x.tan()
}

/// Inverse sine; NaN outside [-1, 1].
pub(crate) fn asin(x: f64) -> f64 {
    x.asin()
}

/// Inverse cosine; NaN outside [-1, 1].
pub(crate) fn acos(x: f64) -> f64 {
    x.acos()
}

/// Inverse tangent.
pub(crate) fn atan(x: f64) -> f64 {
    x.atan()
}

/// Hyperbolic sine.
pub(crate) fn sinh(x: f64) -> f64 {
    x.sinh()
}

/// Hyperbolic cosine.
pub(crate) fn cosh(x: f64) -> f64 {
    x.cosh()
}

/// Hyperbolic tangent.
pub(crate) fn tanh(x: f64) -> f64 {
    x.tanh()
}

/// Inverse hyperbolic sine.
pub(crate) fn asinh(x: f64) -> f64 {
    x.asinh()
}

/// Inverse hyperbolic cosine; NaN below 1.
pub(crate) fn acosh(x: f64) -> f64 {
    x.acosh()
}

/// Inverse hyperbolic tangent; NaN outside [-1, 1].
pub(crate) fn atanh(x: f64) -> f64 {
    x.atanh()
}

/// The angle of the point (x, y), from -π to π; signs of zeros are significant.
pub(crate) fn atan2(y: f64, x: f64) -> f64 {
    y.atan2(x)
}
