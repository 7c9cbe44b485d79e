//! Exponents and fractions: `ldexp` and `frexp`.

use super::floats::Floats;
use crate::body::Body;
use crate::types::{Operand, PtxType, Reg};

/// Computes `x * 2^e`, rounded once.
///
/// `f16` and `f32` are widened to `f64`, where the product is exact. Exponents beyond ±277 result
/// in zero or infinity, so that clamping them to ±300 changes nothing.
pub(super) fn ldexp(b: &mut Body, ty: PtxType, x: Reg, e: Reg) -> Reg {
    if ty == PtxType::F64 {
        let mut floats = Floats { b, ty };
        let result = floats.ldexp(x.into(), e.into());
        return b.in_register(result);
    }
    let wide = b.convert("", PtxType::F64, ty, x.into());
    let e = clamp_integer(b, e.into(), -300, 300);
    let mut floats = Floats { b, ty: PtxType::F64 };
    let power = floats.integer_power_of_2(e);
    let product = floats.mul(wide.into(), power);
    b.convert("rn", ty, PtxType::F64, product)
}

/// Clamps a signed integer.
fn clamp_integer(b: &mut Body, e: Operand, low: i32, high: i32) -> Operand {
    let raised = b.typed("max", PtxType::S32, &[e, Operand::s32(low)]);
    b.typed("min", PtxType::S32, &[raised.into(), Operand::s32(high)]).into()
}

impl Floats<'_> {
    /// Returns the smallest positive normal number.
    pub(super) fn min_normal(&self) -> f64 {
        self.by_type(f32::MIN_POSITIVE.into(), f64::MIN_POSITIVE)
    }

    /// Returns the mask of the mantissa bits.
    pub(super) fn mantissa_mask(&self) -> Operand {
        self.bits(0x007f_ffff, 0x000f_ffff_ffff_ffff)
    }

    /// Returns the low 32 bits of a 64-bit value.
    pub(super) fn low_32_bits(&mut self, x: Operand) -> Operand {
        self.b.convert("", PtxType::U32, PtxType::U64, x).into()
    }

    /// `2^n` for n between -1022 and 1023, as an `f64`.
    pub(super) fn integer_power_of_2(&mut self, n: Operand) -> Operand {
        let biased = self.b.typed("add", PtxType::S32, &[n, Operand::s32(1023)]);
        let wide = self.b.convert("", PtxType::S64, PtxType::S32, biased.into());
        self.b.typed("shl", PtxType::B64, &[wide.into(), Operand::u32(52)]).into()
    }

    /// `x * 2^n` for an `f64` x of about 1 and n between -2044 and 2046. It is computed as two
    /// products, of which the first is exact for such x.
    pub(super) fn scale(&mut self, x: Operand, n: Operand) -> Operand {
        let half = self.b.typed("shr", PtxType::S32, &[n, Operand::u32(1)]);
        let other = self.b.typed("sub", PtxType::S32, &[n, half.into()]);
        let half = self.integer_power_of_2(half.into());
        let other = self.integer_power_of_2(other.into());
        let product = self.mul(x, half);
        self.mul(product, other)
    }

    /// Computes `x * 2^e` for `f64`, rounded once: a step down leaves 2^-54 or less for the rest,
    /// so that a product that is already subnormal ends as zero. Two steps suffice to make the
    /// exponent normal.
    fn ldexp(&mut self, x: Operand, e: Operand) -> Operand {
        let e = clamp_integer(self.b, e, -2200, 2200);
        let (x, e) = self.ldexp_step(x, e);
        let (x, e) = self.ldexp_step(x, e);
        let power = self.integer_power_of_2(e);
        self.mul(x, power)
    }

    /// Moves 1023 or -969 from an exponent outside the normal range to x.
    fn ldexp_step(&mut self, x: Operand, e: Operand) -> (Operand, Operand) {
        let (zero, up, down) = (Operand::s32(0), Operand::s32(1023), Operand::s32(-969));
        let is_high = self.b.compare("gt", PtxType::S32, e, up);
        let is_low = self.b.compare("lt", PtxType::S32, e, Operand::s32(-1022));
        let step = self.b.select(PtxType::S32, is_high, up, zero);
        let step = self.b.select(PtxType::S32, is_low, down, step.into());
        let power = self.integer_power_of_2(step.into());
        let remaining = self.b.typed("sub", PtxType::S32, &[e, step.into()]);
        (self.mul(x, power), remaining.into())
    }

    /// Scales a subnormal number to a normal one, by 2^24 or 2^54 for `f64`; returns whether it
    /// did.
    fn normalise(&mut self, x: Operand) -> (Operand, Reg) {
        let magnitude = self.abs(x);
        let is_subnormal = self.is_below(magnitude, self.min_normal());
        let scaled = self.times(x, self.by_type(24.0, 54.0_f64).exp2());
        (self.select(is_subnormal, scaled, x), is_subnormal)
    }

    /// Returns whether a number is neither zero nor infinite nor NaN.
    fn is_finite_nonzero(&mut self, x: Operand) -> Reg {
        let magnitude = self.abs(x);
        let is_finite = self.is_below(magnitude, f64::INFINITY);
        let is_nonzero = self.is_above(magnitude, 0.0);
        self.b.typed("and", PtxType::Pred, &[is_finite.into(), is_nonzero.into()])
    }

    /// Returns `f` of `x = f * 2^e` with `|f|` in [0.5, 1); zeros, infinities and NaN unchanged.
    pub(super) fn frexp_fraction(&mut self, x: Operand) -> Operand {
        let (scaled, _) = self.normalise(x);
        let sign_and_mantissa = self.bits(0x807f_ffff, 0x800f_ffff_ffff_ffff);
        let exponent_of_half = self.bits(0x3f00_0000, 0x3fe0_0000_0000_0000);
        let fraction = self.bits_op("and", &[scaled, sign_and_mantissa]);
        let fraction = self.bits_op("or", &[fraction, exponent_of_half]);
        let is_finite_nonzero = self.is_finite_nonzero(x);
        self.select(is_finite_nonzero, fraction, x)
    }

    /// Returns `e` of `x = f * 2^e`, an `i32`; 0 for zeros, infinities and NaN.
    pub(super) fn frexp_exponent(&mut self, x: Operand) -> Reg {
        let (scaled, is_subnormal) = self.normalise(x);
        let magnitude = self.abs(scaled);
        let (mantissa_bits, bias, scale) = self.by_type((23, 126, 24), (52, 1022, 54));
        let biased = self.integer_op("shr", &[magnitude, Operand::u32(mantissa_bits)]);
        let biased = match self.is_double() {
            true => self.low_32_bits(biased),
            false => biased,
        };
        let (normal_bias, subnormal_bias) = (Operand::s32(bias), Operand::s32(bias + scale));
        let bias = self.b.select(PtxType::S32, is_subnormal, subnormal_bias, normal_bias);
        let exponent = self.b.typed("sub", PtxType::S32, &[biased, bias.into()]);
        let is_finite_nonzero = self.is_finite_nonzero(x);
        self.b.select(PtxType::S32, is_finite_nonzero, exponent.into(), Operand::s32(0))
    }
}
