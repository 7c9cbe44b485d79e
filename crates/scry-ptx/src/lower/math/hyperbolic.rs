//! Hyperbolic functions and their inverses.

use std::f64::consts::LN_2;

use super::floats::Floats;
use super::tables::{SINH, TANH};
use crate::types::Operand;

impl Floats<'_> {
    /// Hyperbolic sine: by a polynomial up to 1, else by the definition.
    pub(super) fn sinh(&mut self, x: Operand) -> Operand {
        let magnitude = self.abs(x);
        let square = self.mul(magnitude, magnitude);
        let small = self.odd_polynomial(magnitude, square, &SINH);
        let half = self.half_exp(magnitude);
        let inverse = self.reciprocal(half);
        let large = self.fma(inverse, self.constant(-0.25), half);
        let is_small = self.is_below(magnitude, 1.0);
        let value = self.select(is_small, small, large);
        self.with_sign(value, x)
    }

    /// Hyperbolic cosine.
    pub(super) fn cosh(&mut self, x: Operand) -> Operand {
        let magnitude = self.abs(x);
        let half = self.half_exp(magnitude);
        let inverse = self.reciprocal(half);
        self.fma(inverse, self.constant(0.25), half)
    }

    /// Hyperbolic tangent: by a polynomial up to 0.625, else `1 - 1 / (e^2x / 2 + 1/2)`.
    pub(super) fn tanh(&mut self, x: Operand) -> Operand {
        let magnitude = self.abs(x);
        let square = self.mul(magnitude, magnitude);
        let small = self.odd_polynomial(magnitude, square, &TANH);
        let twice = self.add(magnitude, magnitude);
        let half = self.half_exp(twice);
        let denominator = self.plus(half, 0.5);
        let inverse = self.reciprocal(denominator);
        let large = self.sub(self.constant(1.0), inverse);
        let is_small = self.is_below(magnitude, 0.625);
        let value = self.select(is_small, small, large);
        self.with_sign(value, x)
    }

    /// Returns a number from which on `x² + 1` rounds to `x²`. Its square is far from overflow.
    fn large_threshold(&self) -> f64 {
        self.by_type(28.0, 60.0_f64).exp2()
    }

    /// Inverse hyperbolic sine: `ln(1 + x + x² / (1 + sqrt(1 + x²)))`, or `ln 2x` for large x.
    pub(super) fn asinh(&mut self, x: Operand) -> Operand {
        let magnitude = self.abs(x);
        let square = self.mul(magnitude, magnitude);
        let root = self.plus(square, 1.0);
        let root = self.sqrt_of_normal(root);
        let denominator = self.plus(root, 1.0);
        let inverse = self.reciprocal(denominator);
        let above_1 = self.fma(square, inverse, magnitude);
        let value = self.log_above_1(above_1, magnitude);
        self.with_sign(value, x)
    }

    /// Inverse hyperbolic cosine: `ln(1 + t + sqrt(t (t + 2)))` with `t = x - 1`, or `ln 2x` for
    /// large x. NaN below 1.
    pub(super) fn acosh(&mut self, x: Operand) -> Operand {
        let t = self.plus(x, -1.0);
        let t_plus_2 = self.plus(t, 2.0);
        let product = self.mul(t, t_plus_2);
        let root = self.sqrt_of_normal(product);
        let above_1 = self.add(t, root);
        let value = self.log_above_1(above_1, x);
        let is_outside = self.is_below(x, 1.0);
        self.select(is_outside, self.constant(f64::NAN), value)
    }

    /// Inverse hyperbolic tangent: `ln(1 + 2x / (1 - x)) / 2`. NaN outside [-1, 1].
    pub(super) fn atanh(&mut self, x: Operand) -> Operand {
        let magnitude = self.abs(x);
        let denominator = self.sub(self.constant(1.0), magnitude);
        let numerator = self.add(magnitude, magnitude);
        let above_1 = self.fast_div(numerator, denominator);
        let twice = self.log_above_1(above_1, self.constant(0.0));
        let value = self.times(twice, 0.5);
        self.with_sign(value, x)
    }

    /// Computes `ln(1 + x)`, or `ln(2 * large)` if `large` exceeds [`Floats::large_threshold`].
    ///
    /// The rounding error of the sum s = 1 + x is corrected: divided by s, it is added to the
    /// logarithm.
    fn log_above_1(&mut self, x: Operand, large: Operand) -> Operand {
        let sum = self.plus(x, 1.0);
        let rounded_x = self.plus(sum, -1.0);
        let rounding_error = self.sub(x, rounded_x);
        let inverse = self.reciprocal(sum);
        let correction = self.mul(rounding_error, inverse);
        let is_large = self.is_above(large, self.large_threshold());
        let sum = self.select(is_large, large, sum);
        let correction = self.select(is_large, self.constant(LN_2), correction);
        self.log_with(sum, correction)
    }
}
