//! Functions of floats, written so that a loop over lanes becomes vector code.
//!
//! Each function of an `f32` is one straight line of additions, multiplications, comparisons and
//! selections: no branch, no table, no call. Inlined into a loop over an array, it is vectorised
//! by the compiler for whatever processor the loop is compiled for, the baseline included. That is
//! why rounding to a whole number is not left to the standard library, which calls a function
//! where the processor has no instruction.
//!
//! Nothing is fused, so that results are the same on every processor. Polynomials are minimax fits
//! (Remez exchange in 200-bit arithmetic, coefficients then rounded), each given from the highest
//! power with its interval and its relative error before rounding errors of the evaluation.

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

/// The value of a polynomial; coefficients from the highest power.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let first = coefficients[0];
    coefficients[1..].iter().fold(first, |sum, coefficient| sum * x + coefficient)
}

/// The number, or the bound that it exceeds; NaN stays.
#[inline(always)]
fn within(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}
