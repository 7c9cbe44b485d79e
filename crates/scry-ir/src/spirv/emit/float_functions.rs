//! Functions of floats.

use spirv::{Decoration, GlslStd450Op, Op};

use super::module::Id;
use super::{Emitter, Result, not_covered};
use crate::kir::{Const, Type, UnaryOp, Value};
use crate::{Features, ShaderError, ShaderErrorKind, SpirvWorkarounds};

impl Emitter<'_> {
    /// Emits a unary operation of a float.
    pub(super) fn float_unary(&mut self, op: UnaryOp, a: Value) -> Result<Id> {
        let ty = self.ty(a);
        let id = self.value(a);
        match op {
            UnaryOp::Neg => Ok(self.op(Op::FNegate, ty, &[id])),
            UnaryOp::Sign => self.float_sign(ty, id),
            UnaryOp::Tanh if self.expands(SpirvWorkarounds::EXPAND_TANH) => self.tanh(ty, id),
            UnaryOp::IsNan => Ok(self.op(Op::IsNan, Type::Bool, &[id])),
            UnaryOp::IsInf => Ok(self.op(Op::IsInf, Type::Bool, &[id])),
            UnaryOp::QuantizeF16 => Ok(self.op(Op::QuantizeToF16, ty, &[id])),
            UnaryOp::FrexpFraction => self.frexp(ty, id, 0),
            UnaryOp::FrexpExponent => self.frexp(ty, id, 1),
            _ => match glsl_function(op) {
                Some(function) => self.float_function(function, ty, &[id]),
                None => not_covered(op, ty),
            },
        }
    }

    /// Emits `tanh(x)`, as the sign of `x` if `|x|` is above 10: that is the rounded result.
    fn tanh(&mut self, ty: Type, id: Id) -> Result<Id> {
        // The bits of 10. The result rounds to 1 from 9.02 in `f32`, and from 4.51 in `f16`.
        let saturated = match ty {
            Type::F16 => 0x4900,
            _ => u64::from(10f32.to_bits()),
        };
        let saturated = self.constant(Const { ty, bits: saturated });
        let result = self.float_function(GlslStd450Op::Tanh, ty, &[id])?;
        let magnitude = self.float_function(GlslStd450Op::FAbs, ty, &[id])?;
        let sign = self.float_sign(ty, id)?;
        // False for NaN.
        let is_large = self.op(Op::FOrdGreaterThan, Type::Bool, &[magnitude, saturated]);
        Ok(self.op(Op::Select, ty, &[is_large, sign, result]))
    }

    /// Emits a function of `GLSL.std.450`. Most of them exist for 16 and 32 bits only.
    pub(super) fn float_function(
        &mut self,
        op: GlslStd450Op,
        ty: Type,
        operands: &[Id],
    ) -> Result<Id> {
        if ty == Type::F64 && !supports_f64(op) {
            return Err(no_f64_error(op));
        }
        let ty = self.spirv_ty(ty);
        Ok(self.m.glsl(op, ty, operands))
    }

    /// Emits one of the two results of `frexp`: 0 for the fraction, 1 for the exponent.
    fn frexp(&mut self, ty: Type, id: Id, part: u32) -> Result<Id> {
        let types = [ty, Type::I32].map(|ty| self.spirv_ty(ty));
        let both = self.m.ty(Op::TypeStruct, &types);
        let both = self.m.glsl(GlslStd450Op::FrexpStruct, both, &[id]);
        Ok(self.m.op(Op::CompositeExtract, types[part as usize], &[both, part]))
    }

    /// Emits `x * 2^e`.
    pub(super) fn ldexp(&mut self, ty: Type, operands: [Id; 2]) -> Result<Id> {
        self.float_function(GlslStd450Op::Ldexp, ty, &operands)
    }

    /// Emits `x - y * trunc(x / y)`, each step rounded.
    pub(super) fn float_remainder(&mut self, ty: Type, [x, y]: [Id; 2]) -> Id {
        let quotient = self.op(Op::FDiv, ty, &[x, y]);
        let float = self.spirv_ty(ty);
        let truncated = self.m.glsl(GlslStd450Op::Trunc, float, &[quotient]);
        let product = self.op(Op::FMul, ty, &[y, truncated]);
        let result = self.op(Op::FSub, ty, &[x, product]);
        for step in [product, result] {
            self.m.decorate(step, Decoration::NoContraction, &[]);
        }
        result
    }
}

/// Returns the function of `GLSL.std.450` for an operation, if there is one.
fn glsl_function(op: UnaryOp) -> Option<GlslStd450Op> {
    Some(match op {
        UnaryOp::Abs => GlslStd450Op::FAbs,
        UnaryOp::Floor => GlslStd450Op::Floor,
        UnaryOp::Ceil => GlslStd450Op::Ceil,
        UnaryOp::Round => GlslStd450Op::RoundEven,
        UnaryOp::Trunc => GlslStd450Op::Trunc,
        UnaryOp::Fract => GlslStd450Op::Fract,
        UnaryOp::Sqrt => GlslStd450Op::Sqrt,
        UnaryOp::InverseSqrt => GlslStd450Op::InverseSqrt,
        UnaryOp::Exp => GlslStd450Op::Exp,
        UnaryOp::Exp2 => GlslStd450Op::Exp2,
        UnaryOp::Log => GlslStd450Op::Log,
        UnaryOp::Log2 => GlslStd450Op::Log2,
        UnaryOp::Sin => GlslStd450Op::Sin,
        UnaryOp::Cos => GlslStd450Op::Cos,
        UnaryOp::Tan => GlslStd450Op::Tan,
        UnaryOp::Asin => GlslStd450Op::Asin,
        UnaryOp::Acos => GlslStd450Op::Acos,
        UnaryOp::Atan => GlslStd450Op::Atan,
        UnaryOp::Sinh => GlslStd450Op::Sinh,
        UnaryOp::Cosh => GlslStd450Op::Cosh,
        UnaryOp::Tanh => GlslStd450Op::Tanh,
        UnaryOp::Asinh => GlslStd450Op::Asinh,
        UnaryOp::Acosh => GlslStd450Op::Acosh,
        UnaryOp::Atanh => GlslStd450Op::Atanh,
        _ => return None,
    })
}

/// The error for a function that does not exist for `f64`.
fn no_f64_error(op: GlslStd450Op) -> ShaderError {
    let name = format!("{op:?}").to_lowercase();
    ShaderError::new(
        ShaderErrorKind::UnsupportedFeatures(Features::F64),
        format!(
            "SPIR-V has no `{name}` of 64-bit floats (f64); help: compute it in f32, or use a CUDA \
             or CPU device"
        ),
    )
}

/// Whether a function exists for `f64`.
fn supports_f64(op: GlslStd450Op) -> bool {
    matches!(
        op,
        GlslStd450Op::FAbs
            | GlslStd450Op::FSign
            | GlslStd450Op::Floor
            | GlslStd450Op::Ceil
            | GlslStd450Op::RoundEven
            | GlslStd450Op::Trunc
            | GlslStd450Op::Fract
            | GlslStd450Op::Sqrt
            | GlslStd450Op::InverseSqrt
            | GlslStd450Op::Ldexp
    )
}
