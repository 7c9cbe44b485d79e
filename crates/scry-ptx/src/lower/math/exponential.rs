//! Exponentials, logarithms, roots.
//!
//! Error bounds of the hardware's functions, by NVIDIA's manuals: `ex2.approx` and `rsqrt.approx` 2
//! ULP; `lg2.approx` 2^-22 for arguments in [0.5, 2], else 2 ULP, and times ln 2 in all 2^-21.4 and
//! 3 ULP. They do not flush subnormals unless `.ftz` is given, which would save instructions.

use std::f64::consts::{LN_2, LOG2_E};

use super::floats::Floats;
use super::tables::{EXP, LOG};
use crate::types::{Operand, PtxType};

/// The low part of log2(e), which `LOG2_E` truncates.
pub(super) const LOG2_E_LOW: f64 = 2.035_527_374_093_103_3e-17;

/// A positive number as `2^k * (1 + f)`, with 1 + f in [sqrt(1/2), sqrt(2)].
pub(super) struct Split {
    pub(super) k: Operand,
    pub(super) f: Operand,
}

impl Floats<'_> {
    /// `1 / sqrt(x)`.
    pub(super) fn inverse_sqrt(&mut self, x: Operand) -> Operand {
        if !self.is_double() {
            return self.single("rsqrt.approx", x);
        }
        let root = self.sqrt(x);
        self.reciprocal(root)
    }

    /// `e^x`.
    pub(super) fn exp(&mut self, x: Operand) -> Operand {
        if self.is_double() {
            return self.scaled_exp(x, 0);
        }
        let binary = self.times(x, LOG2_E);
        self.single("ex2.approx", binary)
    }

    /// `e^x / 2` for non-negative x, without intermediate overflow.
    pub(super) fn half_exp(&mut self, x: Operand) -> Operand {
        if self.is_double() {
            return self.scaled_exp(x, -1);
        }
        let binary = self.fma(x, self.number(LOG2_E), self.number(-1.0));
        self.single("ex2.approx.ftz", binary)
    }

    /// `2^x`.
    pub(super) fn exp2(&mut self, x: Operand) -> Operand {
        if !self.is_double() {
            return self.single("ex2.approx", x);
        }
        let x = self.within(x, -1080.0, 1030.0);
        let (sum, whole) = self.nearest(x, 1.0);
        let rest = self.sub(x, whole);
        self.power_of_2(sum, rest)
    }

    /// `2^(k + rest)`, k in the lowest bits of `sum`.
    pub(super) fn power_of_2(&mut self, sum: Operand, rest: Operand) -> Operand {
        let natural = self.times(rest, LN_2);
        let power = self.exp_near_0(natural);
        let k = self.low_word(sum);
        self.scale(power, k)
    }

    /// `e^x * 2^shift` for a small shift; `f64`.
    fn scaled_exp(&mut self, x: Operand, shift: i32) -> Operand {
        let x = self.within(x, -746.0, 711.0);
        let (sum, k) = self.nearest(x, LOG2_E);
        let [high, low] = self.ln_2();
        let rest = self.fma(k, self.number(-high), x);
        let rest = self.fma(k, self.number(-low), rest);
        let power = self.exp_near_0(rest);
        let k = self.low_word(sum);
        let k = self.b.typed("add", PtxType::S32, &[k, Operand::s32(shift)]);
        self.scale(power, k.into())
    }

    /// Returns the integer nearest to a product: in the lowest bits of the first result, and as a
    /// float.
    pub(super) fn nearest(&mut self, x: Operand, factor: f64) -> (Operand, Operand) {
        let sum = self.fma(x, self.number(factor), self.rounder());
        (sum, self.sub(sum, self.rounder()))
    }

    /// ln 2 as two terms, of which the first has few enough bits for exact products.
    fn ln_2(&self) -> [f64; 2] {
        self.either(
            [0.693_145_751_953_125, 1.428_606_765_330_187e-6],
            [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10],
        )
    }

    /// `1 + r + r² P(r)`; `f64`.
    fn exp_near_0(&mut self, r: Operand) -> Operand {
        let polynomial = self.polynomial(r, &EXP);
        let square = self.mul(r, r);
        let above_1 = self.fma(square, polynomial, r);
        self.plus(above_1, 1.0)
    }

    /// Natural logarithm.
    pub(super) fn log(&mut self, x: Operand) -> Operand {
        if self.is_double() {
            return self.log_with(x, self.number(0.0));
        }
        let binary = self.log2(x);
        self.times(binary, LN_2)
    }

    /// Computes `ln x` plus a small correction.
    pub(super) fn log_with(&mut self, x: Operand, more: Operand) -> Operand {
        let Split { k, f } = self.split(x);
        let [high, low] = self.ln_2();
        let tail = self.log_tail(f);
        let tail = self.add(tail, more);
        let tail = self.fma(k, self.number(low), tail);
        let fraction = self.add(f, tail);
        let log = self.fma(k, self.number(high), fraction);
        self.log_at_edges(x, log)
    }

    /// Logarithm to base 2.
    pub(super) fn log2(&mut self, x: Operand) -> Operand {
        if !self.is_double() {
            return self.single("lg2.approx", x);
        }
        let Split { k, f } = self.split(x);
        let tail = self.log_tail(f);
        let small = self.times(f, LOG2_E_LOW);
        let small = self.fma(tail, self.number(LOG2_E), small);
        let fraction = self.fma(f, self.number(LOG2_E), small);
        let log = self.add(k, fraction);
        self.log_at_edges(x, log)
    }

    /// `ln(1 + f) - f`.
    fn log_tail(&mut self, f: Operand) -> Operand {
        let sum = self.plus(f, 2.0);
        let inverse = self.reciprocal(sum);
        let s = self.mul(f, inverse);
        let square = self.mul(s, s);
        let polynomial = self.polynomial(square, &LOG);
        let half = self.times(f, 0.5);
        let half_square = self.mul(f, half);
        let bent = self.fma(square, polynomial, half_square);
        let excess = self.neg(half_square);
        self.fma(s, bent, excess)
    }

    /// Splits a positive number into exponent and fraction.
    pub(super) fn split(&mut self, x: Operand) -> Split {
        let is_small = self.is_below(x, self.least_normal());
        let root_half = self.bits(0x3f35_04f3, 0x3fe6_a09e_667f_3bcd);
        let (size, added) = self.either((23, 24.0), (52, 54.0));
        let scaled = self.times(x, f64::exp2(added));
        let scaled = self.select(is_small, scaled, x);
        let shifted = self.integer_op("sub", &[scaled, root_half]);
        let exponent = self.integer_op("shr", &[shifted, Operand::u32(size)]);
        let k: Operand = self.b.convert("rn", self.ty, self.integer(), exponent).into();
        let less = self.plus(k, -added);
        let k = self.select(is_small, less, k);
        let fraction = self.fraction_mask();
        let kept = self.bits_op("and", &[shifted, fraction]);
        let m = self.integer_op("add", &[kept, root_half]);
        Split { k, f: self.plus(m, -1.0) }
    }

    /// Returns the logarithm of x, given its value where it is finite.
    pub(super) fn log_at_edges(&mut self, x: Operand, log: Operand) -> Operand {
        let is_zero = self.is(x, 0.0);
        let (lowest, nan) = (self.number(f64::NEG_INFINITY), self.number(f64::NAN));
        let edge = self.select(is_zero, lowest, nan);
        let is_positive = self.is_above(x, 0.0);
        let log = self.select(is_positive, log, edge);
        let is_infinite = self.is(x, f64::INFINITY);
        self.select(is_infinite, x, log)
    }
}
