//! Exponentials, logarithms, roots.
//!
//! Error bounds of the hardware's functions, according to NVIDIA's manuals: 2 ULP for `ex2.approx`
//! and `rsqrt.approx`. For `lg2.approx` 2^-22 for arguments in [0.5, 2], else 2 ULP; for its
//! product with ln 2, which is `__logf` of CUDA, 2^-21.4 and 3 ULP. Without `.ftz` they do not
//! flush subnormals, which costs instructions.

use std::f64::consts::{LN_2, LOG2_E};

use super::floats::Floats;
use super::tables::{EXP, LOG};
use crate::types::{Operand, PtxType};

/// The difference between log2(e) and its `f64`, [`LOG2_E`].
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
            return self.f32_op("rsqrt.approx", x);
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
        self.f32_op("ex2.approx", binary)
    }

    /// `e^x / 2` for non-negative x, without intermediate overflow.
    pub(super) fn half_exp(&mut self, x: Operand) -> Operand {
        if self.is_double() {
            return self.scaled_exp(x, -1);
        }
        let binary = self.fma(x, self.constant(LOG2_E), self.constant(-1.0));
        self.f32_op("ex2.approx.ftz", binary)
    }

    /// `2^x`.
    pub(super) fn exp2(&mut self, x: Operand) -> Operand {
        if !self.is_double() {
            return self.f32_op("ex2.approx", x);
        }
        let x = self.clamp(x, -1080.0, 1030.0);
        let (sum, integer) = self.nearest(x, 1.0);
        let fraction = self.sub(x, integer);
        self.power_of_2(sum, fraction)
    }

    /// `2^(k + fraction)`, with k in the lowest bits of `integer_bits`; `f64`.
    pub(super) fn power_of_2(&mut self, integer_bits: Operand, fraction: Operand) -> Operand {
        let natural = self.times(fraction, LN_2);
        let power = self.exp_near_0(natural);
        let k = self.low_32_bits(integer_bits);
        self.scale(power, k)
    }

    /// `e^x * 2^shift` for a small shift; `f64`.
    fn scaled_exp(&mut self, x: Operand, shift: i32) -> Operand {
        let x = self.clamp(x, -746.0, 711.0);
        let (sum, k) = self.nearest(x, LOG2_E);
        let [high, low] = self.ln_2();
        let r = self.fma(k, self.constant(-high), x);
        let r = self.fma(k, self.constant(-low), r);
        let power = self.exp_near_0(r);
        let k = self.low_32_bits(sum);
        let k = self.b.typed("add", PtxType::S32, &[k, Operand::s32(shift)]);
        self.scale(power, k.into())
    }

    /// Returns the integer nearest to `x * factor`: in the lowest bits of the first result, and as
    /// a float in the second.
    pub(super) fn nearest(&mut self, x: Operand, factor: f64) -> (Operand, Operand) {
        let sum = self.fma(x, self.constant(factor), self.rounding_addend());
        (sum, self.sub(sum, self.rounding_addend()))
    }

    /// Returns ln 2 as two terms. The first has so few bits that its products with exponents are
    /// exact.
    fn ln_2(&self) -> [f64; 2] {
        self.by_type(
            [0.693_145_751_953_125, 1.428_606_765_330_187e-6],
            [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10],
        )
    }

    /// `e^r` as `1 + r + r² P(r)`, for |r| up to about ln 2 / 2; `f64`.
    fn exp_near_0(&mut self, r: Operand) -> Operand {
        let polynomial = self.polynomial(r, &EXP);
        let square = self.mul(r, r);
        let above_1 = self.fma(square, polynomial, r);
        self.plus(above_1, 1.0)
    }

    /// Natural logarithm.
    pub(super) fn log(&mut self, x: Operand) -> Operand {
        if self.is_double() {
            return self.log_with(x, self.constant(0.0));
        }
        let binary = self.log2(x);
        self.times(binary, LN_2)
    }

    /// `ln x` plus a small correction.
    pub(super) fn log_with(&mut self, x: Operand, correction: Operand) -> Operand {
        let Split { k, f } = self.split(x);
        let [high, low] = self.ln_2();
        let tail = self.log_tail(f);
        let tail = self.add(tail, correction);
        let tail = self.fma(k, self.constant(low), tail);
        let fraction = self.add(f, tail);
        let log = self.fma(k, self.constant(high), fraction);
        self.log_at_edges(x, log)
    }

    /// Logarithm to base 2.
    pub(super) fn log2(&mut self, x: Operand) -> Operand {
        if !self.is_double() {
            return self.f32_op("lg2.approx", x);
        }
        let Split { k, f } = self.split(x);
        let tail = self.log_tail(f);
        let small = self.times(f, LOG2_E_LOW);
        let small = self.fma(tail, self.constant(LOG2_E), small);
        let fraction = self.fma(f, self.constant(LOG2_E), small);
        let log = self.add(k, fraction);
        self.log_at_edges(x, log)
    }

    /// `ln(1 + f) - f`, as `s (s² P(s²) + f² / 2) - f² / 2` with `s = f / (2 + f)`.
    fn log_tail(&mut self, f: Operand) -> Operand {
        let sum = self.plus(f, 2.0);
        let inverse = self.reciprocal(sum);
        let s = self.mul(f, inverse);
        let square = self.mul(s, s);
        let polynomial = self.polynomial(square, &LOG);
        let half = self.times(f, 0.5);
        let half_square = self.mul(f, half);
        let scaled = self.fma(square, polynomial, half_square);
        let negated = self.neg(half_square);
        self.fma(s, scaled, negated)
    }

    /// Splits a positive finite number into the parts of [`Split`]. Subtracting the bits of
    /// sqrt(1/2) first puts the significand between sqrt(1/2) and sqrt(2).
    pub(super) fn split(&mut self, x: Operand) -> Split {
        let is_subnormal = self.is_below(x, self.min_normal());
        let root_half = self.bits(0x3f35_04f3, 0x3fe6_a09e_667f_3bcd);
        let (mantissa_bits, scale) = self.by_type((23, 24.0), (52, 54.0));
        let scaled = self.times(x, f64::exp2(scale));
        let scaled = self.select(is_subnormal, scaled, x);
        let shifted = self.integer_op("sub", &[scaled, root_half]);
        let exponent = self.integer_op("shr", &[shifted, Operand::u32(mantissa_bits)]);
        let k: Operand = self.b.convert("rn", self.ty, self.integer(), exponent).into();
        let unscaled_k = self.plus(k, -scale);
        let k = self.select(is_subnormal, unscaled_k, k);
        let mask = self.mantissa_mask();
        let mantissa = self.bits_op("and", &[shifted, mask]);
        let m = self.integer_op("add", &[mantissa, root_half]);
        Split { k, f: self.plus(m, -1.0) }
    }

    /// Returns `log`, the logarithm of x, where x is positive and finite; otherwise -inf for zeros,
    /// inf for inf, and NaN.
    pub(super) fn log_at_edges(&mut self, x: Operand, log: Operand) -> Operand {
        let is_zero = self.equals(x, 0.0);
        let (minus_infinity, nan) = (self.constant(f64::NEG_INFINITY), self.constant(f64::NAN));
        let edge = self.select(is_zero, minus_infinity, nan);
        let is_positive = self.is_above(x, 0.0);
        let log = self.select(is_positive, log, edge);
        let is_infinite = self.equals(x, f64::INFINITY);
        self.select(is_infinite, x, log)
    }
}
