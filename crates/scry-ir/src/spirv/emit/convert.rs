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
            (Type::Bool, _) => self.bool_to(to, id),
            (_, Type::Bool) => self.is_nonzero(from, id),
            (Type::F32, Type::F16) if !self.native_f16 => self.pack_f16(id),
            (Type::F16, Type::F32) if !self.native_f16 => self.unpack_f16(id),
            (Type::U32 | Type::I32, Type::U16) if !self.native_u16 => self.low_16_bits(id),
            (Type::U16, _) if !self.native_u16 => id,
            _ => match (from.is_float(), to.is_float()) {
                (true, true) => self.op(Op::FConvert, to, &[id]),
                (true, false) => self.float_to_int_sat(from, to, id),
                (false, true) if from.is_signed() => self.op(Op::ConvertSToF, to, &[id]),
                (false, true) => self.op(Op::ConvertUToF, to, &[id]),
                // Both have the same SPIR-V type.
                (false, false) if from.bits() == to.bits() => id,
                (false, false) if from.is_signed() => self.op(Op::SConvert, to, &[id]),
                (false, false) => self.op(Op::UConvert, to, &[id]),
            },
        })
    }

    /// Reinterprets the bits of `a` as `to`.
    pub(super) fn bitcast(&mut self, to: Type, a: Value) -> Id {
        let id = self.value(a);
        let from = self.ty(a);
        match (from, to) {
            // Signed and unsigned integers of a width have the same SPIR-V type.
            _ if from.is_float() == to.is_float() => id,
            (Type::F16, _) => self.bitcast_from_f16(to, id),
            (_, Type::F16) => self.bitcast_to_f16(from, id),
            _ => self.op(Op::Bitcast, to, &[id]),
        }
    }

    /// Bitcasts from `F16`.
    fn bitcast_from_f16(&mut self, to: Type, id: Id) -> Id {
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
    fn bitcast_to_f16(&mut self, from: Type, id: Id) -> Id {
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
    fn pack_f16(&mut self, id: Id) -> Id {
        let (f32, u32) = (self.spirv_ty(Type::F32), self.m.u32_ty());
        let (pair, zero) = (self.m.vector(f32, 2), self.m.null(f32));
        let pair = self.m.op(Op::CompositeConstruct, pair, &[id, zero]);
        self.m.glsl(GlslStd450Op::PackHalf2x16, u32, &[pair])
    }

    /// Converts the bits of an `F16` to `f32`.
    fn unpack_f16(&mut self, id: Id) -> Id {
        let f32 = self.spirv_ty(Type::F32);
        let pair = self.m.vector(f32, 2);
        let pair = self.m.glsl(GlslStd450Op::UnpackHalf2x16, pair, &[id]);
        self.m.op(Op::CompositeExtract, f32, &[pair, 0])
    }

    fn low_16_bits(&mut self, id: Id) -> Id {
        let mask = self.m.u32(0xffff);
        self.op(Op::BitwiseAnd, Type::U32, &[id, mask])
    }

    fn bool_to(&mut self, to: Type, id: Id) -> Id {
        let values = [bits_of_one(to), 0].map(|bits| self.constant(Const { ty: to, bits }));
        self.op(Op::Select, to, &[id, values[0], values[1]])
    }

    fn is_nonzero(&mut self, from: Type, id: Id) -> Id {
        let zero = self.constant(Const::zero(from));
        let op = if from.is_float() { Op::FUnordNotEqual } else { Op::INotEqual };
        self.op(op, Type::Bool, &[id, zero])
    }

    /// Converts a float to an integer: rounds towards zero, saturates, and converts NaN to 0.
    fn float_to_int_sat(&mut self, from: Type, to: Type, id: Id) -> Id {
        let [min, max] = int_bounds(from, to).map(|bits| self.constant(Const { ty: from, bits }));
        let clamped_below = self.min_max(BinaryOp::Max, from, [id, min]);
        let clamped = self.min_max(BinaryOp::Min, from, [clamped_below, max]);
        if !to.is_signed() {
            // NMax(NaN, 0) is 0.
            return self.op(Op::ConvertFToU, to, &[clamped]);
        }
        let integer = self.op(Op::ConvertFToS, to, &[clamped]);
        let zero = self.constant(Const::zero(to));
        let is_nan = self.op(Op::IsNan, Type::Bool, &[id]);
        self.op(Op::Select, to, &[is_nan, zero, integer])
    }
}

/// Returns the bits of the number 1.
pub(super) fn bits_of_one(ty: Type) -> u64 {
    match ty {
        Type::F16 => 0x3c00,
        Type::F32 => u64::from(1f32.to_bits()),
        Type::F64 => 1f64.to_bits(),
        _ => 1,
    }
}

/// Returns the bits of the smallest and the largest float of type `from` that the integer type `to`
/// can represent.
fn int_bounds(from: Type, to: Type) -> [u64; 2] {
    let value_bits = if to.is_signed() { to.bits() - 1 } else { to.bits() };
    if from == Type::F16 {
        // -32768 and 32752 for `i16`; the range of `f16`, -65504 to 65504, for larger types.
        let (min, max) = if value_bits == 15 { (0xf800, 0x77ff) } else { (0xfbff, 0x7bff) };
        return [if to.is_signed() { min } else { 0 }, max];
    }
    let precision = if from == Type::F32 { 24 } else { 53 };
    let significant_bits = value_bits.min(precision);
    let max = ((1u64 << significant_bits) - 1) << (value_bits - significant_bits);
    let min = if to.is_signed() { -(2f64.powi(value_bits as i32)) } else { 0.0 };
    [min, max as f64].map(|bound| match from {
        Type::F32 => u64::from((bound as f32).to_bits()),
        _ => bound.to_bits(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_representable() {
        let f32 = |to| int_bounds(Type::F32, to).map(|bits| f32::from_bits(bits as u32));
        assert_eq!(f32(Type::I32), [-2_147_483_648.0, 2_147_483_520.0]);
        assert_eq!(f32(Type::U32), [0.0, 4_294_967_040.0]);
        assert_eq!(f32(Type::U16), [0.0, 65535.0]);
        let f64 = |to| int_bounds(Type::F64, to).map(f64::from_bits);
        assert_eq!(f64(Type::I32), [-2_147_483_648.0, 2_147_483_647.0]);
        assert_eq!(f64(Type::U64), [0.0, 18_446_744_073_709_549_568.0]);
        assert_eq!(int_bounds(Type::F16, Type::I16), [0xf800, 0x77ff]);
    }
}
