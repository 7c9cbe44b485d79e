//! Arithmetic.

use scry_ir::kir::{BinaryOp, Type, UnaryOp, Value};

use super::{Lowering, ptx_type};
use crate::types::Reg;

impl Lowering<'_> {
    /// A function of one operand.
    pub(super) fn unary(&mut self, op: UnaryOp, a: Value) -> Reg {
        let _ = (op, a);
        todo!()
    }

    /// A function of two operands that is no comparison.
    pub(super) fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Reg {
        let ty = ptx_type(self.ty(a));
        let operands = [self.value(a), self.value(b)];
        match op {
            BinaryOp::Add => self.b.typed("add", ty, &operands),
            BinaryOp::Sub => self.b.typed("sub", ty, &operands),
            BinaryOp::Min => self.b.typed("min", ty, &operands),
            BinaryOp::Mul if self.ty(a).is_integer() => self.b.typed("mul.lo", ty, &operands),
            BinaryOp::Mul => self.b.typed("mul", ty, &operands),
            _ => todo!(),
        }
    }

    /// `a * b + c`.
    pub(super) fn fma(&mut self, ty: Type, a: Value, b: Value, c: Value) -> Reg {
        let operands = [self.value(a), self.value(b), self.value(c)];
        self.b.typed("fma.rn", ptx_type(ty), &operands)
    }
}
