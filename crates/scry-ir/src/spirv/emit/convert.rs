//! Conversions between types.

use spirv::{GlslStd450Op, Op};

use super::module::Id;
use super::{Emitter, Result};
use crate::kir::{BinaryOp, Const, Type, Value};

impl Emitter<'_> {
    /// Converts a value.
    pub(super) fn convert(&mut self, to: Type, a: Value) -> Result<Id> {
        let from = self.ty(a);
        let id = self.value(a);
        Ok(match (from, to) {
            _ if from == to => id,
            (Type::Bool, _) => self.bool_as(to, id),
            (_, Type::Bool) => self.is_nonzero(from, id),
            (Type::F32, Type::F16) if !self.native_f16 => self.packed_f16(id),
            (Type::F16, Type::F32) if !self.native_f16 => self.unpacked_f16(id),
            (Type::U32 | Type::I32, Type::U16) if !self.native_u16 => self.low_half(id),
            (Type::U16, _) if !self.native_u16 => id,
            _ => match (from.is_float(), to.is_float()) {
                (true, true) => self.op(Op::FConvert, to, &[id]),
                (true, false) => self.saturated(from, to, id),
                (false, true) if from.is_signed() => self.op(Op::ConvertSToF, to, &[id]),
                (false, true) => self.op(Op::ConvertUToF, to, &[id]),
                (false, false) if from.bits() == to.bits() => id,
                (false, false) if from.is_signed() => self.op(Op::SConvert, to, &[id]),
                (false, false) => self.op(Op::UConvert, to, &[id]),
            },
        })
    }

    /// Returns the same bits as another type.
    pub(super) fn bitcast(&mut self, to: Type, a: Value) -> Id {
        let id = self.value(a);
        let from = self.ty(a);
        match (from, to) {
            _ if from.is_float() == to.is_float() => id,
            (Type::F16, _) => self.bits_of_f16(to, id),
            (_, Type::F16) => self.f16_of_bits(from, id),
            _ => self.op(Op::Bitcast, to, &[id]),
        }
    }

    /// Bitcasts from `F16`.
    fn bits_of_f16(&mut self, to: Type, id: Id) -> Id {
        match (self.native_f16, self.native_u16) {
            (true, true) => self.op(Op::Bitcast, to, &[id]),
            (false, false) => id,
            (false, true) => self.op(Op::UConvert, to, &[id]),
            (true, false) => {
                let f16 = self.spirv_ty(Type::F16);
                let (pair, zero) = (self.m.vector(f16, 2), self.m.null(f16));
                let pair = self.m.op(Op::CompositeConstruct, pair, &[id, zero]);
                self.op(Op::Bitcast, Type::U32, &[pair])
            }
        }
    }

    /// Bitcasts to `F16`.
    fn f16_of_bits(&mut self, from: Type, id: Id) -> Id {
        match (self.native_f16, self.native_u16) {
            (true, true) => self.op(Op::Bitcast, Type::F16, &[id]),
            (false, false) => id,
            (false, true) => self.op(Op::UConvert, Type::U32, &[id]),
            (true, false) => {
                debug_assert!(from.bits() == 16);
                let f16 = self.spirv_ty(Type::F16);
                let pair = self.m.vector(f16, 2);
                let pair = self.m.op(Op::Bitcast, pair, &[id]);
                self.m.op(Op::CompositeExtract, f16, &[pair, 0])
            }
        }
    }

    /// Converts `f32` to the bits of an `F16`.
    fn packed_f16(&mut self, id: Id) -> Id {
        let (f32, u32) = (self.spirv_ty(Type::F32), self.m.u32_ty());
        let (pair, zero) = (self.m.vector(f32, 2), self.m.null(f32));
        let pair = self.m.op(Op::CompositeConstruct, pair, &[id, zero]);
        self.m.glsl(GlslStd450Op::PackHalf2x16, u32, &[pair])
    }

    /// Converts the bits of an `F16` to `f32`.
    fn unpacked_f16(&mut self, id: Id) -> Id {
        let f32 = self.spirv_ty(Type::F32);
        let pair = self.m.vector(f32, 2);
        let pair = self.m.glsl(GlslStd450Op::UnpackHalf2x16, pair, &[id]);
        self.m.op(Op::CompositeExtract, f32, &[pair, 0])
    }

    fn low_half(&mut self, id: Id) -> Id {
        let mask = self.m.u32(0xffff);
        self.op(Op::BitwiseAnd, Type::U32, &[id, mask])
    }

    fn bool_as(&mut self, to: Type, id: Id) -> Id {
        let values = [one_bits(to), 0].map(|bits| self.constant(Const { ty: to, bits }));
        self.op(Op::Select, to, &[id, values[0], values[1]])
    }

    fn is_nonzero(&mut self, from: Type, id: Id) -> Id {
        let zero = self.constant(Const::zero(from));
        let op = if from.is_float() { Op::FUnordNotEqual } else { Op::INotEqual };
        self.op(op, Type::Bool, &[id, zero])
    }

    /// The whole part of a float, between the bounds of both types; of NaN, zero.
    fn saturated(&mut self, from: Type, to: Type, id: Id) -> Id {
        let [least, most] = bounds(from, to).map(|bits| self.constant(Const { ty: from, bits }));
        let low = self.extremum(BinaryOp::Max, from, [id, least]);
        let held = self.extremum(BinaryOp::Min, from, [low, most]);
        if !to.is_signed() {
            // The greater of NaN and zero is zero.
            return self.op(Op::ConvertFToU, to, &[held]);
        }
        let whole = self.op(Op::ConvertFToS, to, &[held]);
        let zero = self.constant(Const::zero(to));
        let is_nan = self.op(Op::IsNan, Type::Bool, &[id]);
        self.op(Op::Select, to, &[is_nan, zero, whole])
    }
}

/// Returns the bits of 1.
pub(super) fn one_bits(ty: Type) -> u64 {
    match ty {
        Type::F16 => 0x3c00,
        Type::F32 => u64::from(1f32.to_bits()),
        Type::F64 => 1f64.to_bits(),
        _ => 1,
    }
}

/// The bits of the least and the greatest float that an integer type holds.
fn bounds(from: Type, to: Type) -> [u64; 2] {
    let digits = if to.is_signed() { to.bits() - 1 } else { to.bits() };
    if from == Type::F16 {
        // 2^15 - 16, and the greatest float.
        let (most, least) = if digits == 15 { (0x77ff, 0xf800) } else { (0x7bff, 0xfbff) };
        return [if to.is_signed() { least } else { 0 }, most];
    }
    let mantissa = if from == Type::F32 { 24 } else { 53 };
    let kept = digits.min(mantissa);
    let most = ((1u64 << kept) - 1) << (digits - kept);
    let least = if to.is_signed() { -(2f64.powi(digits as i32)) } else { 0.0 };
    [least, most as f64].map(|bound| match from {
        Type::F32 => u64::from((bound as f32).to_bits()),
        _ => bound.to_bits(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_the_nearest_floats_within() {
        let f32 = |to| bounds(Type::F32, to).map(|bits| f32::from_bits(bits as u32));
        assert_eq!(f32(Type::I32), [-2_147_483_648.0, 2_147_483_520.0]);
        assert_eq!(f32(Type::U32), [0.0, 4_294_967_040.0]);
        assert_eq!(f32(Type::U16), [0.0, 65535.0]);
        let f64 = |to| bounds(Type::F64, to).map(f64::from_bits);
        assert_eq!(f64(Type::I32), [-2_147_483_648.0, 2_147_483_647.0]);
        assert_eq!(f64(Type::U64), [0.0, 18_446_744_073_709_549_568.0]);
        assert_eq!(bounds(Type::F16, Type::I16), [0xf800, 0x77ff]);
    }
}
