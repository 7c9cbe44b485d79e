//! Inverse trigonometric functions.

use std::f64::consts::FRAC_PI_2;

use super::floats::Floats;
use super::tables::{ASIN, ATAN};
use crate::types::{Operand, Reg};

impl Floats<'_> {
    /// π/2 in two parts.
    fn right_angle(&self) -> [f64; 2] {
        let high = f64::from(FRAC_PI_2 as f32);
        self.either([high, FRAC_PI_2 - high], [FRAC_PI_2, 6.123_233_995_736_766e-17])
    }

    /// `π/2 - x`.
    fn right_angle_less(&mut self, x: Operand) -> Operand {
        let [high, low] = self.right_angle();
        let x = self.plus(x, -low);
        self.sub(self.number(high), x)
    }

    /// `π - x`.
    fn half_turn_less(&mut self, x: Operand) -> Operand {
        let [high, low] = self.right_angle();
        let x = self.plus(x, -2.0 * low);
        self.sub(self.number(2.0 * high), x)
    }

    /// Returns the inverse sine of |x| for |x| up to 1/2. For larger ones it returns that of
    /// `sqrt((1 - |x|) / 2)` and true: `asin x = π/2 - 2 asin(sqrt((1 - x) / 2))`. NaN above 1.
    fn reduced_asin(&mut self, x: Operand) -> (Operand, Reg) {
        let size = self.abs(x);
        let is_large = self.is_above(size, 0.5);
        let square = self.mul(size, size);
        let rest = self.fma(size, self.number(-0.5), self.number(0.5));
        let square = self.select(is_large, rest, square);
        let root = self.sqrt_of_normal(rest);
        let s = self.select(is_large, root, size);
        (self.odd(s, square, &ASIN), is_large)
    }

    /// Inverse sine; NaN outside [-1, 1].
    pub(super) fn asin(&mut self, x: Operand) -> Operand {
        let (part, is_large) = self.reduced_asin(x);
        let twice = self.add(part, part);
        let large = self.right_angle_less(twice);
        let angle = self.select(is_large, large, part);
        self.with_sign(angle, x)
    }

    /// Inverse cosine; NaN outside [-1, 1].
    pub(super) fn acos(&mut self, x: Operand) -> Operand {
        let (part, is_large) = self.reduced_asin(x);
        let twice = self.add(part, part);
        let back = self.half_turn_less(twice);
        let is_negative = self.is_below(x, 0.0);
        let large = self.select(is_negative, back, twice);
        let part = self.with_sign(part, x);
        let small = self.right_angle_less(part);
        self.select(is_large, large, small)
    }

    /// Inverse tangent.
    pub(super) fn atan(&mut self, x: Operand) -> Operand {
        let size = self.abs(x);
        let is_large = self.is_above(size, 1.0);
        let inverse = self.reciprocal(size);
        let part = self.select(is_large, inverse, size);
        let angle = self.angle_of(part, is_large);
        self.with_sign(angle, x)
    }

    /// The inverse tangent of a ratio in [0, 1], or of its inverse.
    fn angle_of(&mut self, ratio: Operand, inverted: Reg) -> Operand {
        let square = self.mul(ratio, ratio);
        let part = self.odd(ratio, square, &ATAN);
        let other = self.right_angle_less(part);
        self.select(inverted, other, part)
    }

    /// The angle of the point (x, y), from -π to π; the signs of zeros count.
    pub(super) fn atan2(&mut self, y: Operand, x: Operand) -> Operand {
        let (height, width) = (self.abs(y), self.abs(x));
        let is_steep = self.compare("gt", height, width);
        let ratio = self.ratio(height, width);
        let angle = self.angle_of(ratio, is_steep);
        let back = self.half_turn_less(angle);
        let zero = Operand::Imm { bits: 0, ty: self.integer() };
        let is_behind = self.b.compare("lt", self.integer(), x, zero);
        let angle = self.select(is_behind, back, angle);
        let angle = self.with_sign(angle, y);
        let is_number = self.compare("num", x, y);
        self.select(is_number, angle, self.number(f64::NAN))
    }

    /// Divides the smaller number by the larger: 0 for two zeros, 1 for two infinities.
    fn ratio(&mut self, a: Operand, b: Operand) -> Operand {
        let (over, under) = (self.op("min", &[a, b]), self.op("max", &[a, b]));
        let ratio = self.div(over, under);
        let is_equal = self.compare("eq", over, under);
        let is_zero = self.is(over, 0.0);
        let ratio = self.select(is_equal, self.number(1.0), ratio);
        self.select(is_zero, self.number(0.0), ratio)
    }
}
