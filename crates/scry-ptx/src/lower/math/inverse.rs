//! Inverse trigonometric functions.

use std::f64::consts::FRAC_PI_2;

use super::floats::Floats;
use super::tables::{ASIN, ATAN};
use crate::types::{Operand, Reg};

impl Floats<'_> {
    /// Returns π/2 in two parts.
    fn half_pi(&self) -> [f64; 2] {
        let high = f64::from(FRAC_PI_2 as f32);
        self.by_type([high, FRAC_PI_2 - high], [FRAC_PI_2, 6.123_233_995_736_766e-17])
    }

    /// `π/2 - x`.
    fn half_pi_minus(&mut self, x: Operand) -> Operand {
        let [high, low] = self.half_pi();
        let x = self.plus(x, -low);
        self.sub(self.constant(high), x)
    }

    /// `π - x`.
    fn pi_minus(&mut self, x: Operand) -> Operand {
        let [high, low] = self.half_pi();
        let x = self.plus(x, -2.0 * low);
        self.sub(self.constant(2.0 * high), x)
    }

    /// Returns `asin |x|` and false for |x| up to 1/2. For larger |x| it returns
    /// `asin(sqrt((1 - |x|) / 2))` and true, since `asin x = π/2 - 2 asin(sqrt((1 - x) / 2))`. NaN
    /// above 1.
    fn reduced_asin(&mut self, x: Operand) -> (Operand, Reg) {
        let magnitude = self.abs(x);
        let is_large = self.is_above(magnitude, 0.5);
        let square = self.mul(magnitude, magnitude);
        let reduced_square = self.fma(magnitude, self.constant(-0.5), self.constant(0.5));
        let square = self.select(is_large, reduced_square, square);
        let root = self.sqrt_of_normal(reduced_square);
        let s = self.select(is_large, root, magnitude);
        (self.odd_polynomial(s, square, &ASIN), is_large)
    }

    /// Inverse sine; NaN outside [-1, 1].
    pub(super) fn asin(&mut self, x: Operand) -> Operand {
        let (part, is_large) = self.reduced_asin(x);
        let twice = self.add(part, part);
        let large = self.half_pi_minus(twice);
        let angle = self.select(is_large, large, part);
        self.with_sign(angle, x)
    }

    /// Inverse cosine; NaN outside [-1, 1].
    pub(super) fn acos(&mut self, x: Operand) -> Operand {
        let (part, is_large) = self.reduced_asin(x);
        let twice = self.add(part, part);
        let back = self.pi_minus(twice);
        let is_negative = self.is_below(x, 0.0);
        let large = self.select(is_negative, back, twice);
        let part = self.with_sign(part, x);
        let small = self.half_pi_minus(part);
        self.select(is_large, large, small)
    }

    /// Inverse tangent.
    pub(super) fn atan(&mut self, x: Operand) -> Operand {
        let magnitude = self.abs(x);
        let is_large = self.is_above(magnitude, 1.0);
        let inverse = self.reciprocal(magnitude);
        let part = self.select(is_large, inverse, magnitude);
        let angle = self.atan_of_ratio(part, is_large);
        self.with_sign(angle, x)
    }

    /// Returns the inverse tangent of a ratio in [0, 1], or of 1 / ratio if `inverted`.
    fn atan_of_ratio(&mut self, ratio: Operand, inverted: Reg) -> Operand {
        let square = self.mul(ratio, ratio);
        let part = self.odd_polynomial(ratio, square, &ATAN);
        let other = self.half_pi_minus(part);
        self.select(inverted, other, part)
    }

    /// Returns the angle of the point (x, y), from -π to π; the signs of zeros count.
    pub(super) fn atan2(&mut self, y: Operand, x: Operand) -> Operand {
        let (height, width) = (self.abs(y), self.abs(x));
        let is_steep = self.compare("gt", height, width);
        let ratio = self.ratio_of_smaller(height, width);
        let angle = self.atan_of_ratio(ratio, is_steep);
        let back = self.pi_minus(angle);
        let zero = Operand::Imm { bits: 0, ty: self.integer() };
        let is_behind = self.b.compare("lt", self.integer(), x, zero);
        let angle = self.select(is_behind, back, angle);
        let angle = self.with_sign(angle, y);
        let is_number = self.compare("num", x, y);
        self.select(is_number, angle, self.constant(f64::NAN))
    }

    /// Divides the smaller number by the larger: 0 for two zeros, 1 for two infinities.
    fn ratio_of_smaller(&mut self, a: Operand, b: Operand) -> Operand {
        let (min, max) = (self.op("min", &[a, b]), self.op("max", &[a, b]));
        let ratio = self.div(min, max);
        let is_equal = self.compare("eq", min, max);
        let is_zero = self.equals(min, 0.0);
        let ratio = self.select(is_equal, self.constant(1.0), ratio);
        self.select(is_zero, self.constant(0.0), ratio)
    }
}
