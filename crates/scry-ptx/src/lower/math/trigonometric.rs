//! Sine, cosine, tangent.
//!
//! Range reduction subtracts multiples of π as three terms, which is accurate to the last place up
//! to 2^23 for `f32` and 2^50 for `f64`. Beyond that neighbouring floats are too far apart to be
//! meaningful angles: the functions treat them as zero. WGSL requires nothing beyond π.

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
        let x = self.meaningful(x);
        self.sin_of(x)
    }

    /// Cosine of radians.
    pub(super) fn cos(&mut self, x: Operand) -> Operand {
        let x = self.meaningful(x);
        self.cos_of(x)
    }

    /// Tangent of radians.
    pub(super) fn tan(&mut self, x: Operand) -> Operand {
        let x = self.meaningful(x);
        let (sin, cos) = (self.sin_of(x), self.cos_of(x));
        self.quotient(sin, cos)
    }

    /// The angle, or zero if it is too large; of infinities and NaN, NaN.
    fn meaningful(&mut self, x: Operand) -> Operand {
        let size = self.abs(x);
        let is_small = self.is_below(size, self.either(23.0, 50.0_f64).exp2());
        let nothing = self.times(x, 0.0);
        self.select(is_small, x, nothing)
    }

    /// `sin(r + nπ) = (-1)^n sin r`.
    fn sin_of(&mut self, x: Operand) -> Operand {
        let (sum, n) = self.nearest(x, FRAC_1_PI);
        let rest = self.without_half_turns(x, n);
        self.alternating_sin(rest, sum)
    }

    /// `cos(r + (n - 1/2)π) = (-1)^n sin r`.
    fn cos_of(&mut self, x: Operand) -> Operand {
        let half_turns = self.fma(x, self.number(FRAC_1_PI), self.number(0.5));
        let sum = self.add(half_turns, self.rounder());
        let n = self.sub(sum, self.rounder());
        let n = self.plus(n, -0.5);
        let rest = self.without_half_turns(x, n);
        self.alternating_sin(rest, sum)
    }

    fn without_half_turns(&mut self, x: Operand, n: Operand) -> Operand {
        let parts = self.either(PI[0], PI[1]);
        parts.iter().fold(x, |rest, part| self.fma(n, self.number(-part), rest))
    }

    /// Returns plus or minus the sine of an angle of at most π/2: minus if the lowest bit is set.
    fn alternating_sin(&mut self, x: Operand, bits: Operand) -> Operand {
        let square = self.mul(x, x);
        let sin = self.odd(x, square, &SIN);
        let top = Operand::u32(self.ty.class().bits() - 1);
        let sign = self.bits_op("shl", &[bits, top]);
        self.bits_op("xor", &[sin, sign])
    }
}
