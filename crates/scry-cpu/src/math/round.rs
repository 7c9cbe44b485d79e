//! Whole numbers near a float.

/// From here on every `f32` is whole.
const WHOLE: f32 = 8_388_608.0;

/// The nearest whole number, ties to even.
///
/// In the sum with 2^23 a unit in the last place is 1, so that the addition rounds.
#[inline(always)]
pub(crate) fn round_even(x: f32) -> f32 {
    let size = x.abs();
    let rounded = ((size + WHOLE) - WHOLE).copysign(x);
    // False for NaN.
    if size < WHOLE { rounded } else { x }
}

/// The greatest whole number not above.
#[inline(always)]
pub(crate) fn floor(x: f32) -> f32 {
    let near = round_even(x);
    if near > x { near - 1.0 } else { near }
}

/// The least whole number not below.
#[inline(always)]
pub(crate) fn ceil(x: f32) -> f32 {
    let near = round_even(x);
    let above = if near < x { near + 1.0 } else { near };
    // -1 + 1 has lost the sign.
    above.copysign(x)
}

/// The whole part.
#[inline(always)]
pub(crate) fn trunc(x: f32) -> f32 {
    let near = round_even(x).abs();
    let below = if near > x.abs() { near - 1.0 } else { near };
    below.copysign(x)
}

/// The distance from the whole number not above: 1 where it rounds up to that.
#[inline(always)]
pub(crate) fn fract(x: f32) -> f32 {
    x - floor(x)
}

/// `x - y * trunc(x / y)`, each step rounded: the remainder, unless the quotient is large.
#[inline(always)]
pub(crate) fn rem(x: f32, y: f32) -> f32 {
    x - y * trunc(x / y)
}
