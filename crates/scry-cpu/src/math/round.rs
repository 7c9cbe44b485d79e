//! Rounding to integers.

/// Every `f32` of at least this magnitude is an integer.
const TWO_POW_23: f32 = 8_388_608.0;

/// Rounds to the nearest integer, ties to even.
///
/// The addition of 2^23 rounds, since the unit in the last place of the sum is 1.
#[inline(always)]
pub(crate) fn round_even(x: f32) -> f32 {
    let abs = x.abs();
    let rounded = ((abs + TWO_POW_23) - TWO_POW_23).copysign(x);
    // False for NaN.
    if abs < TWO_POW_23 { rounded } else { x }
}

/// Rounds towards negative infinity.
#[inline(always)]
pub(crate) fn floor(x: f32) -> f32 {
    let near = round_even(x);
    if near > x { near - 1.0 } else { near }
}

/// Rounds towards positive infinity.
#[inline(always)]
pub(crate) fn ceil(x: f32) -> f32 {
    let near = round_even(x);
    let above = if near < x { near + 1.0 } else { near };
    // -1 + 1 is +0: restore the sign.
    above.copysign(x)
}

/// Rounds towards zero.
#[inline(always)]
pub(crate) fn trunc(x: f32) -> f32 {
    let near = round_even(x).abs();
    let below = if near > x.abs() { near - 1.0 } else { near };
    below.copysign(x)
}

/// `x - floor(x)`, which may round up to 1.
#[inline(always)]
pub(crate) fn fract(x: f32) -> f32 {
    x - floor(x)
}

/// `x - y * trunc(x / y)`, each step rounded: the remainder, unless the quotient is large.
#[inline(always)]
pub(crate) fn rem(x: f32, y: f32) -> f32 {
    x - y * trunc(x / y)
}
