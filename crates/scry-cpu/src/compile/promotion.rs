//! Arithmetic of 16-bit types, promoted to 32 bits.

use scry_ir::kir::{BinaryOp, Const, Inst, Type, Value};

use super::emitter::{Emitter, Reg};
use crate::lanes::LaneOp;
use crate::ops;

/// Returns the type that a narrow one is promoted to.
fn wide(ty: Type) -> Type {
    match ty {
        Type::I16 => Type::I32,
        Type::U16 => Type::U32,
        Type::F16 => Type::F32,
        other => other,
    }
}

impl Emitter<'_> {
    /// Computes a value of narrow operands in the wider type.
    pub(super) fn narrow_inst(&mut self, value: Value, d: Reg, uniform: bool) {
        let ty = self.kir.ty(value);
        match *self.kir.inst(value) {
            Inst::Unary(op, a) => {
                let wide_ty = wide(self.kir.ty(a));
                self.widened(ops::unary(op, wide_ty), op.result(wide_ty), ty, d, &[a], uniform);
            }
            Inst::Binary(op @ (BinaryOp::Shl | BinaryOp::Shr), a, by) => {
                let result = wide(self.kir.ty(a));
                let a = self.widen(a, uniform);
                let by = self.shift_of_16(by, uniform);
                self.narrowed(ops::binary(op, result), result, ty, d, &[a, by], uniform);
            }
            Inst::Binary(op, a, b) => {
                let wide_ty = wide(self.kir.ty(a));
                self.widened(ops::binary(op, wide_ty), op.result(wide_ty), ty, d, &[a, b], uniform);
            }
            Inst::Fma(a, b, c) => {
                self.widened(ops::fma(Type::F32), Type::F32, ty, d, &[a, b, c], uniform);
            }
            Inst::Convert(a) => self.convert_in_steps(a, ty, d, uniform),
            _ => debug_assert!(false, "{value} has no narrow form"),
        }
    }

    fn widened(
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
        self.narrowed(op, result, ty, d, &operands, uniform);
    }

    /// Applies an operation whose result is truncated to `ty`.
    fn narrowed(
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
        let whole = self.temporary(result, uniform);
        self.apply(op, whole, operands);
        if let Some(cut) = ops::convert(result, ty) {
            self.apply(cut, d, &[whole]);
        }
    }

    /// An operand in the wider type.
    fn widen(&mut self, value: Value, uniform: bool) -> Reg {
        let ty = self.kir.ty(value);
        let narrow = self.operand(value, uniform);
        match ops::convert(ty, wide(ty)) {
            Some(convert) if wide(ty) != ty => {
                let whole = self.temporary(wide(ty), uniform);
                self.apply(convert, whole, &[narrow]);
                whole
            }
            _ => narrow,
        }
    }

    /// The amount of a shift modulo 16.
    fn shift_of_16(&mut self, by: Value, uniform: bool) -> Reg {
        let amount = self.operand(by, uniform);
        let limit =
            if uniform { Reg::Scalar(self.fixed(15)) } else { self.fixed_lanes(Const::u32(15)) };
        let masked = self.temporary(Type::U32, uniform);
        if let Some(and) = ops::binary(BinaryOp::And, Type::U32) {
            self.apply(and, masked, &[amount, limit]);
        }
        masked
    }

    /// A conversion to or from f16, by way of f32.
    fn convert_in_steps(&mut self, a: Value, ty: Type, d: Reg, uniform: bool) {
        let from = self.kir.ty(a);
        let operand = self.operand(a, uniform);
        let between = self.temporary(Type::F32, uniform);
        let steps = (ops::convert(from, Type::F32), ops::convert(Type::F32, ty));
        debug_assert!(steps.0.is_some() && steps.1.is_some(), "{from} does not become {ty}");
        if let (Some(first), Some(second)) = steps {
            self.apply(first, between, &[operand]);
            self.apply(second, d, &[between]);
        }
    }
}
