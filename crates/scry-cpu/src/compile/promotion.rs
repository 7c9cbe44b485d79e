//! Arithmetic of 16-bit types, promoted to 32 bits.

use scry_ir::kir::{BinaryOp, Const, Inst, Type, Value};

use super::emitter::{Emitter, Reg};
use crate::lanes::LaneOp;
use crate::ops;

/// Returns the 32-bit type that a 16-bit type is promoted to; other types are unchanged.
fn promoted(ty: Type) -> Type {
    match ty {
        Type::I16 => Type::I32,
        Type::U16 => Type::U32,
        Type::F16 => Type::F32,
        other => other,
    }
}

impl Emitter<'_> {
    /// Computes a value with 16-bit operands in the promoted type.
    pub(super) fn narrow_inst(&mut self, value: Value, d: Reg, uniform: bool) {
        let ty = self.kir.ty(value);
        match *self.kir.inst(value) {
            Inst::Unary(op, a) => {
                let wide_ty = promoted(self.kir.ty(a));
                self.apply_widened(
                    ops::unary(op, wide_ty),
                    op.result(wide_ty),
                    ty,
                    d,
                    &[a],
                    uniform,
                );
            }
            Inst::Binary(op @ (BinaryOp::Shl | BinaryOp::Shr), a, amount) => {
                let result = promoted(self.kir.ty(a));
                let a = self.widen(a, uniform);
                let amount = self.shift_amount(amount, uniform);
                self.apply_narrowed(ops::binary(op, result), result, ty, d, &[a, amount], uniform);
            }
            Inst::Binary(op, a, b) => {
                let wide_ty = promoted(self.kir.ty(a));
                self.apply_widened(
                    ops::binary(op, wide_ty),
                    op.result(wide_ty),
                    ty,
                    d,
                    &[a, b],
                    uniform,
                );
            }
            Inst::Fma(a, b, c) => {
                self.apply_widened(ops::fma(Type::F32), Type::F32, ty, d, &[a, b, c], uniform);
            }
            Inst::Convert(a) => self.convert_through_f32(a, ty, d, uniform),
            _ => debug_assert!(false, "{value} has no narrow form"),
        }
    }

    /// Applies an operation to promoted operands, and truncates its result to `ty`.
    fn apply_widened(
        &mut self,
        op: Option<&'static dyn LaneOp>,
        result: Type,
        ty: Type,
        d: Reg,
        operands: &[Value],
        uniform: bool,
    ) {
        let operands: Vec<Reg> =
            operands.iter().map(|operand| self.widen(*operand, uniform)).collect();
        self.apply_narrowed(op, result, ty, d, &operands, uniform);
    }

    /// Applies an operation, and truncates its result to `ty`.
    fn apply_narrowed(
        &mut self,
        op: Option<&'static dyn LaneOp>,
        result: Type,
        ty: Type,
        d: Reg,
        operands: &[Reg],
        uniform: bool,
    ) {
        debug_assert!(op.is_some(), "there is no operation on {result}");
        let Some(op) = op else { return };
        if result == ty {
            return self.apply(op, d, operands);
        }
        let wide = self.temporary(result, uniform);
        self.apply(op, wide, operands);
        if let Some(truncate) = ops::convert(result, ty) {
            self.apply(truncate, d, &[wide]);
        }
    }

    /// Returns an operand converted to the promoted type.
    fn widen(&mut self, value: Value, uniform: bool) -> Reg {
        let ty = self.kir.ty(value);
        let narrow = self.operand(value, uniform);
        match ops::convert(ty, promoted(ty)) {
            Some(convert) if promoted(ty) != ty => {
                let wide = self.temporary(promoted(ty), uniform);
                self.apply(convert, wide, &[narrow]);
                wide
            }
            _ => narrow,
        }
    }

    /// Emits the amount of a 16-bit shift, modulo 16 as WGSL defines it.
    fn shift_amount(&mut self, amount: Value, uniform: bool) -> Reg {
        let amount = self.operand(amount, uniform);
        let mask = if uniform {
            Reg::Scalar(self.constant_scalar(15))
        } else {
            self.constant_lanes(Const::u32(15))
        };
        let masked = self.temporary(Type::U32, uniform);
        if let Some(and) = ops::binary(BinaryOp::And, Type::U32) {
            self.apply(and, masked, &[amount, mask]);
        }
        masked
    }

    /// Emits a conversion from or to f16 through f32.
    fn convert_through_f32(&mut self, a: Value, ty: Type, d: Reg, uniform: bool) {
        let from = self.kir.ty(a);
        let operand = self.operand(a, uniform);
        let between = self.temporary(Type::F32, uniform);
        let steps = (ops::convert(from, Type::F32), ops::convert(Type::F32, ty));
        debug_assert!(steps.0.is_some() && steps.1.is_some(), "{from} cannot be converted to {ty}");
        if let (Some(first), Some(second)) = steps {
            self.apply(first, between, &[operand]);
            self.apply(second, d, &[between]);
        }
    }
}
