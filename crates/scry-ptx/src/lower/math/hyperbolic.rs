//! Hyperbolic functions and their inverses.

use std::f64::consts::LN_2;

use super::floats::Floats;
use super::tables::{SINH, TANH};
use crate::types::Operand;

impl Floats<'_> {
    /// Hyperbolic sine: by a polynomial up to 1, else by the definition.
    pub(super) fn sinh(&mut self, x: Operand) -> Operand {
        let size = self.abs(x);
        let square = self.mul(size, size);
        let small = self.odd(size, square, &SINH);
        let half = self.half_exp(size);
        let inverse = self.reciprocal(half);
        let large = self.fma(inverse, self.number(-0.25), half);
        let is_small = self.is_below(size, 1.0);
        let value = self.select(is_small, small, large);
        self.with_sign(value, x)
    }

    /// Hyperbolic cosine.
    pub(super) fn cosh(&mut self, x: Operand) -> Operand {
        let size = self.abs(x);
        let half = self.half_exp(size);
        let inverse = self.reciprocal(half);
        self.fma(inverse, self.number(0.25), half)
    }

    /// Hyperbolic tangent: by a polynomial up to 0.625, else `1 - 1 / (e^2x / 2 + 1/2)`.
    pub(super) fn tanh(&mut self, x: Operand) -> Operand {
        let size = self.abs(x);
        let square = self.mul(size, size);
        let small = self.odd(size, square, &TANH);
        let twice = self.add(size, size);
        let half = self.half_exp(twice);
        let under = self.plus(half, 0.5);
        let inverse = self.reciprocal(under);
        let large = self.sub(self.number(1.0), inverse);
        let is_small = self.is_below(size, 0.625);
        let value = self.select(is_small, small, large);
        self.with_sign(value, x)
    }

    /// From here on `x² + 1 = x²`, and `x²` is far from overflow.
    fn large(&self) -> f64 {
        self.either(28.0, 60.0_f64).exp2()
    }

    /// Inverse hyperbolic sine: `ln(1 + x + x² / (1 + sqrt(1 + x²)))`, or `ln 2x` of large ones.
    pub(super) fn asinh(&mut self, x: Operand) -> Operand {
        let size = self.abs(x);
        let square = self.mul(size, size);
        let root = self.plus(square, 1.0);
        let root = self.sqrt_of_normal(root);
        let under = self.plus(root, 1.0);
        let inverse = self.reciprocal(under);
        let above_1 = self.fma(square, inverse, size);
        let value = self.log_above_1(above_1, size);
        self.with_sign(value, x)
    }

    /// Inverse hyperbolic cosine: `ln(1 + t + sqrt(t (t + 2)))` with `t = x - 1`, or `ln 2x` of
    /// large ones. NaN below 1.
    pub(super) fn acosh(&mut self, x: Operand) -> Operand {
        let t = self.plus(x, -1.0);
        let more = self.plus(t, 2.0);
        let product = self.mul(t, more);
        let root = self.sqrt_of_normal(product);
        let above_1 = self.add(t, root);
        let value = self.log_above_1(above_1, x);
        let is_outside = self.is_below(x, 1.0);
        self.select(is_outside, self.number(f64::NAN), value)
    }

    /// Inverse hyperbolic tangent: `ln(1 + 2x / (1 - x)) / 2`. NaN outside [-1, 1].
    pub(super) fn atanh(&mut self, x: Operand) -> Operand {
        let size = self.abs(x);
        let under = self.sub(self.number(1.0), size);
        let over = self.add(size, size);
        let above_1 = self.quotient(over, under);
        let twice = self.log_above_1(above_1, self.number(0.0));
        let value = self.times(twice, 0.5);
        self.with_sign(value, x)
    }

    /// Computes `ln(1 + x)`, or `ln(2 large)` if that is large.
    ///
    /// The rounding error of the sum s = 1 + x is a relative change of s, so a difference of the
    /// logarithm.
    fn log_above_1(&mut self, x: Operand, large: Operand) -> Operand {
        let sum = self.plus(x, 1.0);
        let kept = self.plus(sum, -1.0);
        let lost = self.sub(x, kept);
        let inverse = self.reciprocal(sum);
        let more = self.mul(lost, inverse);
        let is_large = self.is_above(large, self.large());
        let sum = self.select(is_large, large, sum);
        let more = self.select(is_large, self.number(LN_2), more);
        self.log_with(sum, more)
    }
}
