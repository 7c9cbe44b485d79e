//! Powers and logarithms in double precision, for results that are rounded to `f32`.
//!
//! Half as many lanes per vector are cheaper than compensated sums in single precision. Conversions
//! between floats and 64-bit integers are avoided: most processors have no vector instruction for
//! them.

/// Adding it rounds a number below 2^51 to an integer, which is in the low bits of the sum.
pub(super) const ROUND: f64 = 6_755_399_441_055_744.0;

/// The high 32 bits of sqrt(1/2), rounded up, and of 1.
const ROOT_HALF: u32 = 0x3fe6_a09f;
const ONE: u32 = 0x3ff0_0000;

/// Evaluates a polynomial; coefficients from the highest power.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let first = coefficients[0];
    coefficients[1..].iter().fold(first, |sum, coefficient| sum * x + coefficient)
}

/// The logarithm to base 2 of a positive normal number; an arbitrary value for other arguments.
///
/// `x = 2^k * m` with m between sqrt(1/2) and sqrt(2). With `s = (m - 1) / (m + 1)`, `log2 m = s *
/// P(s²)`: s² in [0, 0.02944], error 2^-45.
#[inline(always)]
pub(super) fn log2(x: f64) -> f64 {
    const P: [f64; 6] = [
        0.282_901_444_924_876_73,
        0.319_905_611_999_878_7,
        0.412_209_254_315_926_7,
        0.577_077_942_347_201_3,
        0.961_796_694_113_431_7,
        2.885_390_081_777_85,
    ];
    let bits = x.to_bits();
    let biased = ((bits >> 32) as u32).wrapping_add(ONE - ROOT_HALF) >> 20;
    let exponent = u64::from(biased).wrapping_sub(1023) << 52;
    let m = f64::from_bits(bits.wrapping_sub(exponent));
    let s = (m - 1.0) / (m + 1.0);
    f64::from((biased as i32).wrapping_sub(1023)) + s * polynomial(s * s, P)
}

/// 2 to the power `x`, as an `f32`.
///
/// `2^r = 1 + r * Q(r)`: r in [-0.5, 0.5], error 2^-32.
#[inline(always)]
pub(super) fn exp2(x: f64) -> f32 {
    const Q: [f64; 7] = [
        1.335_999_024_189_626e-5,
        0.000_154_613_688_723_787_78,
        0.001_334_195_036_090_993,
        0.009_618_056_916_018_202,
        0.055_504_003_760_446_514,
        0.240_226_509_207_988_2,
        0.693_147_183_816_711_9,
    ];
    // Beyond these limits the result is zero or infinite. NaN is unchanged.
    let x = if x < -200.0 { -200.0 } else { x };
    let x = if x > 200.0 { 200.0 } else { x };
    let sum = x + ROUND;
    let r = x - (sum - ROUND);
    let scale = f64::from_bits(sum.to_bits().wrapping_add(1023) << 52);
    ((1.0 + r * polynomial(r, Q)) * scale) as f32
}
