//! Powers of any base.

use std::f64::consts::LOG2_E;

use super::exponential::{LOG2_E_LOW, Split};
use super::floats::Floats;
use super::tables::POW;
use crate::types::{Operand, PtxType};

/// The difference between 2/3 and its `f64`.
const TWO_THIRDS_LOW: f64 = 3.700_743_415_417_188e-17;

/// A number as the sum of two parts (double-double arithmetic). The second is at most a few units
/// in the last place of the first.
#[derive(Clone, Copy)]
struct Pair {
    high: Operand,
    low: Operand,
}

impl Floats<'_> {
    /// `x^y`: NaN for negative x unless y is an integer; 1 if y is 0.
    pub(super) fn pow(&mut self, x: Operand, y: Operand) -> Operand {
        let magnitude = self.abs(x);
        let power = match self.is_double() {
            true => self.precise_power(magnitude, y),
            false => {
                let log = self.log2(magnitude);
                let product = self.mul(y, log);
                self.exp2(product)
            }
        };
        let power = self.signed_power(x, y, power);
        let is_zero = self.equals(y, 0.0);
        self.select(is_zero, self.constant(1.0), power)
    }

    /// Returns the power of x, given that of its absolute value: negative for negative x and odd y.
    fn signed_power(&mut self, x: Operand, y: Operand, power: Operand) -> Operand {
        let (integer, half) = (self.trunc(y), self.times(y, 0.5));
        let integer_half = self.trunc(half);
        let is_integer = self.compare("eq", integer, y);
        let half_is_fractional = self.compare("neu", integer_half, half);
        let is_odd =
            self.b.typed("and", PtxType::Pred, &[is_integer.into(), half_is_fractional.into()]);
        let sign = self.select(is_odd, x, self.constant(1.0));
        let signed = self.with_sign(power, sign);
        let is_negative = self.is_below(x, 0.0);
        let power_of_negative = self.select(is_integer, signed, self.constant(f64::NAN));
        self.select(is_negative, power_of_negative, signed)
    }

    /// `x^y` of a non-negative `f64`. The logarithm has at least 62 accurate bits, so that
    /// `y log2 x` has 52 after the binary point, even if it is as large as 1024.
    fn precise_power(&mut self, x: Operand, y: Operand) -> Operand {
        let log = self.precise_log2(x);
        let high = self.mul(y, log.high);
        let bounded = self.clamp(high, -1100.0, 1100.0);
        let is_bounded = self.compare("ne", high, bounded);
        let minus_bounded = self.neg(bounded);
        let low = self.fma(y, log.high, minus_bounded);
        let low = self.fma(y, log.low, low);
        let low = self.select(is_bounded, self.constant(0.0), low);
        let (sum, integer) = self.nearest(bounded, 1.0);
        let fraction = self.sub(bounded, integer);
        let fraction = self.add(fraction, low);
        self.power_of_2(sum, fraction)
    }

    /// Returns the logarithm to base 2.
    fn precise_log2(&mut self, x: Operand) -> Pair {
        let Split { k, f } = self.split(x);
        let natural = self.precise_log_near_1(f);
        let log2_e = Pair { high: self.constant(LOG2_E), low: self.constant(LOG2_E_LOW) };
        let fraction = self.mul_pairs(natural, log2_e);
        let log = self.add_to_larger(k, fraction);
        Pair { high: self.log_at_edges(x, log.high), low: log.low }
    }

    /// `ln(1 + f) = s (2 + s² (2/3 + s² P(s²)))` with `s = f / (2 + f)`.
    fn precise_log_near_1(&mut self, f: Operand) -> Pair {
        let s = self.precise_ratio(f);
        let square = self.mul_pairs(s, s);
        let polynomial = self.polynomial(square.high, &POW);
        let low = self.constant(TWO_THIRDS_LOW);
        let inner = self.fma(square.high, polynomial, low);
        let inner = Pair { high: inner, low: self.constant(0.0) };
        let inner = self.add_to_larger(self.constant(2.0 / 3.0), inner);
        let product = self.mul_pairs(square, inner);
        let factor = self.add_to_larger(self.constant(2.0), product);
        self.mul_pairs(s, factor)
    }

    /// `f / (2 + f)`.
    fn precise_ratio(&mut self, f: Operand) -> Pair {
        let denominator = self.plus(f, 2.0);
        let rounded_f = self.plus(denominator, -2.0);
        let rounding_error = self.sub(f, rounded_f);
        let inverse = self.reciprocal(denominator);
        let high = self.mul(f, inverse);
        let minus = self.neg(high);
        let remainder = self.fma(minus, denominator, f);
        let remainder = self.fma(minus, rounding_error, remainder);
        Pair { high, low: self.mul(remainder, inverse) }
    }

    fn mul_pairs(&mut self, a: Pair, b: Pair) -> Pair {
        let high = self.mul(a.high, b.high);
        let minus = self.neg(high);
        let low = self.fma(a.high, b.high, minus);
        let low = self.fma(a.high, b.low, low);
        Pair { high, low: self.fma(a.low, b.high, low) }
    }

    /// Returns `a + b`, where `a` is zero or has a larger magnitude than `b`.
    fn add_to_larger(&mut self, a: Operand, b: Pair) -> Pair {
        let high = self.add(a, b.high);
        let rounded_b = self.sub(high, a);
        let low = self.sub(b.high, rounded_b);
        Pair { high, low: self.add(low, b.low) }
    }
}
