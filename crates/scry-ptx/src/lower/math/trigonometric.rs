//! Sine, cosine, tangent.
//!
//! Range reduction subtracts multiples of π as three terms, which is accurate to the last place up
//! to 2^23 for `f32` and 2^50 for `f64`. But the multiple itself is found with a rounded 1/π, so
//! that the rest of a large angle may exceed π/2: that of an `f32` near 2^23 reaches 1.9, slightly
//! beyond the polynomial's range. Errors are at most 2 ULP up to 2^21, and 3 ULP up to 2^23. Larger
//! angles, whose neighbouring floats are too far apart to be meaningful, are treated as zero. WGSL
//! requires nothing beyond π.

use std::f64::consts::{self, FRAC_1_PI};

use super::floats::Floats;
use super::tables::SIN;
use crate::types::Operand;

/// π in three parts, for each type.
const PI: [[f64; 3]; 2] = [
    [consts::PI as f32 as f64, -8.742_277_657_347_586e-8, -3.430_249_020_011_763_7e-15],
    [consts::PI, 1.224_646_799_147_353_2e-16, -2.994_769_809_718_339_7e-33],
];

impl Floats<'_> {
    /// Sine of radians.
    pub(super) fn sin(&mut self, x: Operand) -> Operand {
        let x = self.zero_if_too_large(x);
        self.sin_in_range(x)
    }

    /// Cosine of radians.
    pub(super) fn cos(&mut self, x: Operand) -> Operand {
        let x = self.zero_if_too_large(x);
        self.cos_in_range(x)
    }

    /// Tangent of radians.
    pub(super) fn tan(&mut self, x: Operand) -> Operand {
        let x = self.zero_if_too_large(x);
        let (sin, cos) = (self.sin_in_range(x), self.cos_in_range(x));
        self.fast_div(sin, cos)
    }

    /// Returns the angle, or zero if it is too large; NaN for infinities and NaN.
    fn zero_if_too_large(&mut self, x: Operand) -> Operand {
        let magnitude = self.abs(x);
        let is_in_range = self.is_below(magnitude, self.by_type(23.0, 50.0_f64).exp2());
        let zero_or_nan = self.times(x, 0.0);
        self.select(is_in_range, x, zero_or_nan)
    }

    /// Sine of an angle in range: `sin(r + nπ) = (-1)^n sin r`.
    fn sin_in_range(&mut self, x: Operand) -> Operand {
        let (sum, n) = self.nearest(x, FRAC_1_PI);
        let r = self.subtract_multiples_of_pi(x, n);
        self.alternating_sin(r, sum)
    }

    /// Cosine of an angle in range: `cos(r + (n ± 1/2)π) = ∓(-1)^n sin r`, where n is the nearest
    /// multiple of π. That and a half are exact, unlike a sum of a quotient and a half.
    fn cos_in_range(&mut self, x: Operand) -> Operand {
        let (sum, n) = self.nearest(x, FRAC_1_PI);
        let below = self.fma(x, self.constant(-FRAC_1_PI), n);
        let half = self.with_sign(self.constant(0.5), below);
        let odd_half = self.sub(n, half);
        let r = self.subtract_multiples_of_pi(x, odd_half);
        let sign = self.bits_op("and", &[below, self.bits(1 << 31, 1 << 63)]);
        let r = self.bits_op("xor", &[r, sign]);
        self.alternating_sin(r, sum)
    }

    /// Returns `x - nπ`.
    fn subtract_multiples_of_pi(&mut self, x: Operand, n: Operand) -> Operand {
        let parts = self.by_type(PI[0], PI[1]);
        parts.iter().fold(x, |rest, part| self.fma(n, self.constant(-part), rest))
    }

    /// Returns the sine of an angle of at most about π/2, negated if the lowest bit of `bits` is
    /// set. Slightly beyond π/2 the polynomial may exceed 1, which the result does not.
    fn alternating_sin(&mut self, x: Operand, bits: Operand) -> Operand {
        let square = self.mul(x, x);
        let sin = self.odd_polynomial(x, square, &SIN);
        let magnitude = self.abs(sin);
        let exceeds_one = self.is_above(magnitude, 1.0);
        let one = self.with_sign(self.constant(1.0), sin);
        let sin = self.select(exceeds_one, one, sin);
        let top = Operand::u32(self.ty.class().bits() - 1);
        let sign = self.bits_op("shl", &[bits, top]);
        self.bits_op("xor", &[sin, sign])
    }
}
