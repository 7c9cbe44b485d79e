//! Integer division and remainder.
//!
//! ptxas does not strength-reduce division by a constant: it emits dozens of instructions.
//! Quotients by constants are therefore computed here by multiply-high (magic numbers).

use scry_ir::kir::Value;

use super::arith::{minus_one, to_signed, wrapping_type};
use super::{Lowering, ptx_type};
use crate::asm::Opcode;
use crate::body::Body;
use crate::types::{Operand, PtxType, Reg};

impl Lowering<'_> {
    /// Divides integers; division by 0 returns the dividend.
    pub(super) fn quotient(&mut self, a: Value, b: Value) -> Reg {
        match self.constant_divisor(b) {
            Some(0 | 1) => self.reg(a),
            Some(divisor) => self.divide_by_constant(a, divisor, quotient_by),
            None => {
                let divisor = self.defined_divisor_of_quotient(a, b);
                let a = self.value(a);
                self.b.typed("div", ptx_type(self.ty(b)), &[a, divisor])
            }
        }
    }

    /// Computes the remainder of integers; the remainder by 0 is 0.
    pub(super) fn remainder(&mut self, a: Value, b: Value) -> Reg {
        match self.constant_divisor(b) {
            Some(-1..=1) => {
                let ty = ptx_type(self.ty(a));
                self.b.copy(ty, Operand::Imm { bits: 0, ty })
            }
            Some(divisor) => self.divide_by_constant(a, divisor, remainder_by),
            None => {
                let divisor = self.defined_divisor_of_remainder(b);
                let a = self.value(a);
                self.b.typed("rem", ptx_type(self.ty(b)), &[a, divisor])
            }
        }
    }

    /// Returns the divisor if it is constant.
    fn constant_divisor(&self, b: Value) -> Option<i128> {
        let constant = self.kir.constant(b)?;
        let is_signed = self.ty(b).is_signed();
        Some(if is_signed { constant.as_i64().into() } else { constant.bits.into() })
    }

    /// Computes a quotient or remainder by a constant with `divide`; 16-bit integers are widened.
    fn divide_by_constant(
        &mut self,
        a: Value,
        divisor: i128,
        divide: fn(&mut Body, PtxType, Operand, i128) -> Reg,
    ) -> Reg {
        let (ty, a) = (ptx_type(self.ty(a)), self.value(a));
        let wide = match ty {
            PtxType::S16 => PtxType::S32,
            PtxType::U16 => PtxType::U32,
            _ => return divide(&mut self.b, ty, a, divisor),
        };
        let a = self.b.convert("", wide, ty, a);
        let result = divide(&mut self.b, wide, a.into(), divisor);
        self.b.convert("", ty, wide, result.into())
    }

    /// Returns the divisor, or 1 where `div` is undefined and WGSL defines the quotient as the
    /// dividend: for 0, and where the minimum integer is divided by -1.
    fn defined_divisor_of_quotient(&mut self, a: Value, b: Value) -> Operand {
        let (kir_type, ty) = (self.ty(b), ptx_type(self.ty(b)));
        let (dividend, divisor) = (self.value(a), self.reg(b).into());
        let zero = Operand::Imm { bits: 0, ty };
        let min = 1 << (kir_type.bits() - 1);
        let is_never_min = self.kir.constant(a).is_some_and(|a| a.bits != min);
        let is_undefined = if kir_type.is_signed() && !is_never_min {
            let dividend = self.b.in_register(dividend).into();
            let is_min = self.b.compare("eq", ty, dividend, Operand::Imm { bits: min, ty });
            let operands = [divisor, minus_one(ty), is_min.into()];
            let overflows = self.b.op(PtxType::Pred, Opcode::typed("setp.eq.and", ty), &operands);
            let operands = [divisor, zero, overflows.into()];
            self.b.op(PtxType::Pred, Opcode::typed("setp.eq.or", ty), &operands)
        } else {
            self.b.compare("eq", ty, divisor, zero)
        };
        self.b.select(ty, is_undefined, Operand::Imm { bits: 1, ty }, divisor).into()
    }

    /// Returns the divisor, or 1 where the remainder is always 0: for 0 and -1, where `rem` may be
    /// undefined.
    fn defined_divisor_of_remainder(&mut self, b: Value) -> Operand {
        let (kir_type, ty) = (self.ty(b), ptx_type(self.ty(b)));
        let divisor = self.reg(b).into();
        let one = Operand::Imm { bits: 1, ty };
        let is_undefined = if kir_type.is_signed() {
            // As an unsigned integer, -1 + 1 and 0 + 1 are at most 1.
            let unsigned = ptx_type(kir_type.to_unsigned());
            let next = self.b.typed("add", wrapping_type(ty), &[divisor, one]);
            self.b.compare("le", unsigned, next.into(), Operand::Imm { bits: 1, ty: unsigned })
        } else {
            self.b.compare("eq", ty, divisor, Operand::Imm { bits: 0, ty })
        };
        self.b.select(ty, is_undefined, one, divisor).into()
    }
}

/// Returns the quotient of a 32- or 64-bit integer by a non-zero constant of its type.
pub(super) fn quotient_by(b: &mut Body, ty: PtxType, a: Operand, divisor: i128) -> Reg {
    let a = b.in_register(a);
    match (ty == to_signed(ty), divisor.unsigned_abs().is_power_of_two()) {
        (false, true) => b.typed("shr", ty, &[a.into(), Operand::u32(divisor.trailing_zeros())]),
        (false, false) => unsigned_quotient(b, ty, a, divisor.unsigned_abs()),
        (true, true) => signed_shift(b, ty, a, divisor),
        (true, false) => signed_quotient(b, ty, a, divisor),
    }
}

/// Returns the remainder of a 32- or 64-bit integer by a non-zero constant of its type.
pub(super) fn remainder_by(b: &mut Body, ty: PtxType, a: Operand, divisor: i128) -> Reg {
    let a = b.in_register(a);
    if ty != to_signed(ty) && divisor.unsigned_abs().is_power_of_two() {
        let mask = Operand::Imm { bits: (divisor - 1) as u64, ty };
        return b.typed("and", ty.to_bits(), &[a.into(), mask]);
    }
    // The sign of the divisor does not matter.
    let divisor = divisor.abs();
    let quotient = quotient_by(b, ty, a.into(), divisor);
    let product = b.typed("mul.lo", wrapping_type(ty), &[quotient.into(), immediate(ty, divisor)]);
    b.typed("sub", wrapping_type(ty), &[a.into(), product.into()])
}

fn immediate(ty: PtxType, value: i128) -> Operand {
    Operand::Imm { bits: value as u64 & (u64::MAX >> (64 - ty.class().bits())), ty }
}

/// Divides by a power of two or its negative, rounding towards zero: shifts round down, so
/// `2^by - 1` is added to negative dividends.
fn signed_shift(b: &mut Body, ty: PtxType, a: Reg, divisor: i128) -> Reg {
    let (by, width) = (divisor.trailing_zeros(), ty.class().bits());
    let mut result = a;
    if by > 0 {
        let unsigned = if width == 32 { PtxType::U32 } else { PtxType::U64 };
        let sign = b.typed("shr", ty, &[a.into(), Operand::u32(width - 1)]);
        let bias = b.typed("shr", unsigned, &[sign.into(), Operand::u32(width - by)]);
        let biased = b.typed("add", wrapping_type(ty), &[a.into(), bias.into()]);
        result = b.typed("shr", ty, &[biased.into(), Operand::u32(by)]);
    }
    if divisor > 0 {
        return result;
    }
    // Not `neg`: the quotient of the minimum and -1 overflows, see `wrapping_type`.
    let unsigned = wrapping_type(ty);
    b.typed("sub", unsigned, &[Operand::Imm { bits: 0, ty: unsigned }, result.into()])
}

fn unsigned_quotient(b: &mut Body, ty: PtxType, a: Reg, divisor: u128) -> Reg {
    let MagicNumber { pre_shift, multiplier, post_shift, has_extra_bit } =
        MagicNumber::new(ty.class().bits(), divisor);
    let multiplier = Operand::Imm { bits: multiplier, ty };
    let a = shift_right(b, ty, a, pre_shift);
    let high = b.typed("mul.hi", ty, &[a.into(), multiplier]);
    if !has_extra_bit {
        return shift_right(b, ty, high, post_shift);
    }
    // The multiplier's extra bit adds the dividend to `high`. The sum may overflow, so it is
    // computed as `(a - high) / 2 + high`, which is half of it.
    let difference = b.typed("sub", wrapping_type(ty), &[a.into(), high.into()]);
    let half = shift_right(b, ty, difference, 1);
    let sum = b.typed("add", wrapping_type(ty), &[half.into(), high.into()]);
    shift_right(b, ty, sum, post_shift - 1)
}

fn shift_right(b: &mut Body, ty: PtxType, a: Reg, by: u32) -> Reg {
    if by == 0 { a } else { b.typed("shr", ty, &[a.into(), Operand::u32(by)]) }
}

/// Divides by a constant that is not a power of two. The shifted product is rounded down, so it is
/// one too low for negative dividends: their sign, -1, is subtracted.
fn signed_quotient(b: &mut Body, ty: PtxType, a: Reg, divisor: i128) -> Reg {
    let width = ty.class().bits();
    let (multiplier, post_shift) = signed_multiplier(width, divisor.unsigned_abs());
    let mut high = b.typed("mul.hi", ty, &[a.into(), Operand::Imm { bits: multiplier, ty }]);
    if multiplier >> (width - 1) == 1 {
        // As a signed integer the multiplier is 2^width too low.
        high = b.typed("add", wrapping_type(ty), &[high.into(), a.into()]);
    }
    let high = shift_right(b, ty, high, post_shift);
    let sign = b.typed("shr", ty, &[a.into(), Operand::u32(width - 1)]);
    match divisor < 0 {
        false => b.typed("sub", wrapping_type(ty), &[high.into(), sign.into()]),
        true => b.typed("sub", wrapping_type(ty), &[sign.into(), high.into()]),
    }
}

/// An unsigned division by a constant: `((a >> pre_shift) * multiplier) >> (width + post_shift)`.
struct MagicNumber {
    pre_shift: u32,
    multiplier: u64,
    post_shift: u32,
    /// Whether the multiplier has a further bit, of value 2^width.
    has_extra_bit: bool,
}

impl MagicNumber {
    /// Returns the multiplier and shifts for a divisor that is not a power of two.
    fn new(width: u32, divisor: u128) -> Self {
        let direct = Self::with_width_bits(width, divisor, 0);
        let even = divisor.trailing_zeros();
        let halved = || Self::with_width_bits(width, divisor >> even, even);
        direct.or_else(halved).unwrap_or_else(|| Self::with_extra_bit(width, divisor))
    }

    /// Finds a multiplier of `width` bits, for dividends whose `pre_shift` lowest bits are shifted
    /// out; `None` if there is none. It suffices that `multiplier * divisor` exceeds
    /// `2^(width + post_shift)` by at most one part in `2^(width - pre_shift)`, the number of
    /// dividends.
    fn with_width_bits(width: u32, divisor: u128, pre_shift: u32) -> Option<Self> {
        (0..width - pre_shift).find_map(|post_shift| {
            let multiplier = (1u128 << (width + post_shift)).div_ceil(divisor);
            let excess = multiplier * divisor - (1 << (width + post_shift));
            let fits = excess <= 1 << (post_shift + pre_shift) && multiplier >> width == 0;
            fits.then_some(Self {
                pre_shift,
                multiplier: multiplier as u64,
                post_shift,
                has_extra_bit: false,
            })
        })
    }

    /// Returns a multiplier of `width + 1` bits, whose highest bit is implied.
    fn with_extra_bit(width: u32, divisor: u128) -> Self {
        let post_shift = u128::BITS - (divisor - 1).leading_zeros();
        let multiplier = (((1u128 << post_shift) - divisor) << width) / divisor + 1;
        Self { pre_shift: 0, multiplier: multiplier as u64, post_shift, has_extra_bit: true }
    }
}

/// Returns the magic multiplier and the shift of a signed division by a positive constant that is
/// not a power of two.
fn signed_multiplier(width: u32, divisor: u128) -> (u64, u32) {
    let multiplier_for = |post_shift: u32| {
        let power = 1u128 << (width + post_shift);
        let multiplier = power / divisor + 1;
        (multiplier * divisor - power <= 2 << post_shift).then_some((multiplier as u64, post_shift))
    };
    (0..width - 1).find_map(multiplier_for).expect("the divisor is less than 2^(width - 1)")
}
