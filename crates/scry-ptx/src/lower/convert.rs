//! Conversions between types.

use scry_ir::kir::{Const, Type, Value};

use super::{Lowering, arith, ptx_type};
use crate::types::{Operand, PtxType, Reg};

impl Lowering<'_> {
    /// Converts a value to another type.
    pub(super) fn convert(&mut self, ty: Type, a: Value) -> Operand {
        let from = self.ty(a);
        match (from, ty) {
            (Type::Bool, _) => self.bool_to_number(ty, a).into(),
            (_, Type::Bool) => self.number_to_bool(from, a).into(),
            _ if from.is_float() && ty.is_float() => self.float_to_float(from, ty, a).into(),
            _ if from.is_float() => self.float_to_integer(from, ty, a).into(),
            _ if ty.is_float() => self.integer_to_float(from, ty, a).into(),
            _ => self.integer_to_integer(from, ty, a),
        }
    }

    /// Reinterprets the bits as another type of the same size: registers are untyped, immediates
    /// are not.
    pub(super) fn bitcast(&mut self, ty: Type, a: Value) -> Operand {
        match self.value(a) {
            Operand::Imm { bits, .. } => self.constant(Const { ty, bits }),
            register @ Operand::Reg(_) => register,
        }
    }

    /// Selects 1 or 0.
    fn bool_to_number(&mut self, ty: Type, a: Value) -> Reg {
        let pred = self.reg(a);
        let bits = if ty.is_float() { arith::one(ty) } else { 1 };
        let imm = ptx_type(ty.to_unsigned());
        let (one, zero) = (Operand::Imm { bits, ty: imm }, Operand::Imm { bits: 0, ty: imm });
        self.b.select(ptx_type(ty), pred, one, zero)
    }

    /// Compares with zero. NaN becomes true.
    fn number_to_bool(&mut self, from: Type, a: Value) -> Reg {
        let a = self.reg(a).into();
        let zero = self.typed_constant(from, 0);
        self.b.compare(if from.is_float() { "neu" } else { "ne" }, ptx_type(from), a, zero)
    }

    fn float_to_float(&mut self, from: Type, ty: Type, a: Value) -> Reg {
        let rounding = if ty.bits() < from.bits() { "rn" } else { "" };
        let a = self.value(a);
        self.b.convert(rounding, ptx_type(ty), ptx_type(from), a)
    }

    /// Rounds to nearest. To `f16` it converts through `f32`: an integer that `f32` does not
    /// represent is far above the range of `f16`, so that nothing is rounded twice.
    fn integer_to_float(&mut self, from: Type, ty: Type, a: Value) -> Reg {
        let a = self.value(a);
        if ty != Type::F16 {
            return self.b.convert("rn", ptx_type(ty), ptx_type(from), a);
        }
        let as_f32 = self.b.convert("rn", PtxType::F32, ptx_type(from), a);
        self.b.convert("rn", PtxType::F16, PtxType::F32, as_f32.into())
    }

    fn integer_to_integer(&mut self, from: Type, ty: Type, a: Value) -> Operand {
        match self.value(a) {
            Operand::Imm { bits, .. } => {
                let number = Const { ty: from, bits }.as_i64();
                self.constant(Const::int(ty, number))
            }
            unchanged if from.bits() == ty.bits() => unchanged,
            other => self.resize(from, ty, other).into(),
        }
    }

    /// Truncates an integer, or extends it by the signedness of its type.
    fn resize(&mut self, from: Type, ty: Type, a: Operand) -> Reg {
        let to = if from.is_signed() { to_signed(ty) } else { ty.to_unsigned() };
        self.b.convert("", ptx_type(to), ptx_type(from), a)
    }

    /// Rounds towards zero and saturates; NaN becomes 0. Converts to an integer of at least 32
    /// bits, clamps it to the range that both types represent, and truncates it.
    fn float_to_integer(&mut self, from: Type, ty: Type, a: Value) -> Reg {
        let a = self.reg(a).into();
        let wide = wide_integer(from, ty);
        let mut result = self.b.convert("rzi", ptx_type(wide), ptx_type(from), a);
        if from == Type::F64 || wide.bits() == 64 {
            // For other types the instruction converts NaN to 0.
            let is_nan = self.b.compare("nan", ptx_type(from), a, a);
            let zero = Operand::Imm { bits: 0, ty: ptx_type(wide) };
            result = self.b.select(ptx_type(wide), is_nan, zero, result.into());
        }
        let result = self.clamp_to_common_range(from, ty, wide, result);
        if wide.bits() == ty.bits() { result } else { self.resize(wide, ty, result.into()) }
    }

    /// Clamps an integer of type `wide` to the range that both types represent.
    fn clamp_to_common_range(&mut self, from: Type, ty: Type, wide: Type, mut result: Reg) -> Reg {
        let (low, high) = common_range(from, ty);
        let bits = |limit: i128| Operand::Imm {
            bits: Const::int(wide, limit as i64).bits,
            ty: ptx_type(wide),
        };
        let (min, max) = range(wide);
        if low > min {
            result = self.b.typed("max", ptx_type(wide), &[result.into(), bits(low)]);
        }
        if high < max {
            result = self.b.typed("min", ptx_type(wide), &[result.into(), bits(high)]);
        }
        result
    }
}

/// Returns the integer type of the first conversion: all finite `f16` fit in 32 bits.
fn wide_integer(from: Type, ty: Type) -> Type {
    match (ty.is_signed(), ty.bits() == 64 && from != Type::F16) {
        (true, false) => Type::I32,
        (false, false) => Type::U32,
        (true, true) => Type::I64,
        (false, true) => Type::U64,
    }
}

/// Returns the minimum and the maximum of an integer type.
fn range(ty: Type) -> (i128, i128) {
    match ty.is_signed() {
        true => (-(1 << (ty.bits() - 1)), (1 << (ty.bits() - 1)) - 1),
        false => (0, (1 << ty.bits()) - 1),
    }
}

/// Returns the minimum and the maximum integer that both a float and an integer type represent.
fn common_range(float: Type, integer: Type) -> (i128, i128) {
    /// The largest finite `f16`.
    const MAX_F16: i128 = 65504;
    let (low, high) = range(integer);
    let precision = match float {
        Type::F16 => 11,
        Type::F32 => 24,
        _ => 53,
    };
    let bits = 128 - (high as u128).leading_zeros();
    let high = high & (-1 << bits.saturating_sub(precision));
    if float == Type::F16 { (low.max(-MAX_F16), high.min(MAX_F16)) } else { (low, high) }
}

const fn to_signed(ty: Type) -> Type {
    match ty.to_unsigned() {
        Type::U16 => Type::I16,
        Type::U32 => Type::I32,
        Type::U64 => Type::I64,
        other => other,
    }
}
