//! Exponents and fractions.

use super::floats::Floats;
use crate::body::Body;
use crate::types::{Operand, PtxType, Reg};

/// Computes `x * 2^e`, rounded once.
///
/// For `f16` and `f32` exponents beyond 277 result in zero or infinity, and as `f64` all of these
/// products are exact.
pub(super) fn ldexp(b: &mut Body, ty: PtxType, x: Reg, e: Reg) -> Reg {
    if ty == PtxType::F64 {
        let mut floats = Floats { b, ty };
        let result = floats.ldexp(x.into(), e.into());
        return b.in_register(result);
    }
    let wide = b.convert("", PtxType::F64, ty, x.into());
    let e = limited(b, e.into(), -300, 300);
    let mut floats = Floats { b, ty: PtxType::F64 };
    let power = floats.whole_power_of_2(e);
    let product = floats.mul(wide.into(), power);
    b.convert("rn", ty, PtxType::F64, product)
}

/// Clamps an integer.
fn limited(b: &mut Body, e: Operand, low: i32, high: i32) -> Operand {
    let raised = b.typed("max", PtxType::S32, &[e, Operand::s32(low)]);
    b.typed("min", PtxType::S32, &[raised.into(), Operand::s32(high)]).into()
}

impl Floats<'_> {
    /// The smallest normal number.
    pub(super) fn least_normal(&self) -> f64 {
        self.either(f32::MIN_POSITIVE.into(), f64::MIN_POSITIVE)
    }

    /// The bits of the fraction.
    pub(super) fn fraction_mask(&self) -> Operand {
        self.bits(0x007f_ffff, 0x000f_ffff_ffff_ffff)
    }

    /// The lower half of an `f64`.
    pub(super) fn low_word(&mut self, x: Operand) -> Operand {
        self.b.convert("", PtxType::U32, PtxType::U64, x).into()
    }

    /// `2^n` for n between -1022 and 1023, as an `f64`.
    pub(super) fn whole_power_of_2(&mut self, n: Operand) -> Operand {
        let biased = self.b.typed("add", PtxType::S32, &[n, Operand::s32(1023)]);
        let wide = self.b.convert("", PtxType::S64, PtxType::S32, biased.into());
        self.b.typed("shl", PtxType::B64, &[wide.into(), Operand::u32(52)]).into()
    }

    /// `x * 2^n` for n between -2044 and 2046: of the two products only the second may be rounded,
    /// so x has to be about 1. `f64`.
    pub(super) fn scale(&mut self, x: Operand, n: Operand) -> Operand {
        let half = self.b.typed("shr", PtxType::S32, &[n, Operand::u32(1)]);
        let other = self.b.typed("sub", PtxType::S32, &[n, half.into()]);
        let half = self.whole_power_of_2(half.into());
        let other = self.whole_power_of_2(other.into());
        let product = self.mul(x, half);
        self.mul(product, other)
    }

    /// Computes `x * 2^e` for `f64`, rounded once. Scaling down in steps keeps all 53 bits until
    /// the last step; two steps suffice.
    fn ldexp(&mut self, x: Operand, e: Operand) -> Operand {
        let e = limited(self.b, e, -2200, 2200);
        let (x, e) = self.ldexp_step(x, e);
        let (x, e) = self.ldexp_step(x, e);
        let e = limited(self.b, e, -1022, 1023);
        let power = self.whole_power_of_2(e);
        self.mul(x, power)
    }

    /// Subtracts 1023 or -969 from an exponent outside the normal range.
    fn ldexp_step(&mut self, x: Operand, e: Operand) -> (Operand, Operand) {
        let (zero, up, down) = (Operand::s32(0), Operand::s32(1023), Operand::s32(-969));
        let is_high = self.b.compare("gt", PtxType::S32, e, up);
        let is_low = self.b.compare("lt", PtxType::S32, e, Operand::s32(-1022));
        let step = self.b.select(PtxType::S32, is_high, up, zero);
        let step = self.b.select(PtxType::S32, is_low, down, step.into());
        let power = self.whole_power_of_2(step.into());
        let rest = self.b.typed("sub", PtxType::S32, &[e, step.into()]);
        (self.mul(x, power), rest.into())
    }

    /// Scales a subnormal number to a normal one; returns whether it did.
    fn normalized(&mut self, x: Operand) -> (Operand, Reg) {
        let size = self.abs(x);
        let is_small = self.is_below(size, self.least_normal());
        let scaled = self.times(x, self.either(24.0, 54.0_f64).exp2());
        (self.select(is_small, scaled, x), is_small)
    }

    /// Returns whether a number is neither zero nor infinite nor NaN.
    fn has_exponent(&mut self, x: Operand) -> Reg {
        let size = self.abs(x);
        let is_finite = self.is_below(size, f64::INFINITY);
        let is_some = self.is_above(size, 0.0);
        self.b.typed("and", PtxType::Pred, &[is_finite.into(), is_some.into()])
    }

    /// `f` of `x = f * 2^e` with `|f|` in [0.5, 1). Zeros, infinities and NaN stay.
    pub(super) fn frexp_fraction(&mut self, x: Operand) -> Operand {
        let (scaled, _) = self.normalized(x);
        let kept = self.bits(0x807f_ffff, 0x800f_ffff_ffff_ffff);
        let half = self.bits(0x3f00_0000, 0x3fe0_0000_0000_0000);
        let fraction = self.bits_op("and", &[scaled, kept]);
        let fraction = self.bits_op("or", &[fraction, half]);
        let has_exponent = self.has_exponent(x);
        self.select(has_exponent, fraction, x)
    }

    /// `e` of the same, an `i32`; 0 of zeros, infinities and NaN.
    pub(super) fn frexp_exponent(&mut self, x: Operand) -> Reg {
        let (scaled, is_small) = self.normalized(x);
        let size = self.abs(scaled);
        let (bits, bias, added) = self.either((23, 126, 24), (52, 1022, 54));
        let biased = self.integer_op("shr", &[size, Operand::u32(bits)]);
        let biased = match self.is_double() {
            true => self.low_word(biased),
            false => biased,
        };
        let (usual, small) = (Operand::s32(bias), Operand::s32(bias + added));
        let bias = self.b.select(PtxType::S32, is_small, small, usual);
        let exponent = self.b.typed("sub", PtxType::S32, &[biased, bias.into()]);
        let has_exponent = self.has_exponent(x);
        self.b.select(PtxType::S32, has_exponent, exponent.into(), Operand::s32(0))
    }
}
