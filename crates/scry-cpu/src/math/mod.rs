//! Mathematical functions, written so that loops over lanes are vectorised.
//!
//! Each function on `f32` is straight-line code of arithmetic (with division and square root), bit
//! operations, comparisons and selects, without branches, tables or calls. Inlined into a loop over
//! an array, it is vectorised by the compiler for any target, including the baseline. Therefore
//! rounding to an integer does not use the standard library, which calls a function on targets
//! without an instruction for it.
//!
//! No multiply-add is fused, so that results are the same on every processor. Polynomials are
//! minimax fits (Remez exchange in 200-bit arithmetic, coefficients then rounded), each given from
//! the highest power with its interval and its relative error before rounding errors of the
//! evaluation.

mod double;
mod exponential;
mod f16;
pub(crate) mod f64;
mod hyperbolic;
mod inverse;
mod parts;
mod round;
mod trigonometric;

#[cfg(test)]
mod tests;

pub(crate) use exponential::{exp, exp2, inverse_sqrt, log, log2, pow};
pub(crate) use f16::{f16_bits, f16_bits_of_f64, f32_of_f16, quantize_f16};
pub(crate) use hyperbolic::{acosh, asinh, atanh, cosh, sinh, tanh};
pub(crate) use inverse::{acos, asin, atan, atan2};
pub(crate) use parts::{frexp_exponent, frexp_fraction, ldexp, max, min, sign};
pub(crate) use round::{ceil, floor, fract, rem, round_even, trunc};
pub(crate) use trigonometric::{cos, sin, tan};

/// Evaluates a polynomial; coefficients from the highest power.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let first = coefficients[0];
    coefficients[1..].iter().fold(first, |sum, coefficient| sum * x + coefficient)
}

/// Clamps a number; NaN is unchanged.
#[inline(always)]
fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}
