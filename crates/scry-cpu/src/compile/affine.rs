//! Operations on affine values: linear in the position of the invocation.

use scry_ir::kir::{BinaryOp, Inst, UnaryOp, Value};

use super::analysis::comparison::comparison;
use super::emitter::{Emitter, Location};
use crate::code::{AffineOp, Comparison, Step};
use crate::ops;

impl Emitter<'_> {
    /// Compiles an instruction whose result is affine. Returns false for other instructions.
    pub(super) fn affine_inst(&mut self, value: Value) -> bool {
        let ty = self.kir.ty(value);
        let signed = ty.is_signed();
        let (op, a, b) = match *self.kir.inst(value) {
            Inst::Binary(op, a, b) => {
                let op = match op {
                    BinaryOp::Add => AffineOp::Add,
                    BinaryOp::Sub => AffineOp::Sub,
                    BinaryOp::Mul => AffineOp::Mul,
                    BinaryOp::Shl => AffineOp::Shl,
                    BinaryOp::Min => AffineOp::Min { signed },
                    BinaryOp::Max => AffineOp::Max { signed },
                    _ => return false,
                };
                (op, a, b)
            }
            Inst::Unary(UnaryOp::Neg, a) => (AffineOp::Neg, a, a),
            Inst::Unary(UnaryOp::Not, a) => (AffineOp::Not, a, a),
            Inst::Bitcast(a) | Inst::Convert(a) => (AffineOp::Copy, a, a),
            Inst::Select(condition, a, b) => return self.affine_select(value, condition, a, b),
            _ => return false,
        };
        let lanes = match *self.kir.inst(value) {
            Inst::Binary(op, ..) => ops::binary(op, ty),
            Inst::Unary(op, _) => ops::unary(op, ty),
            _ => Some(ops::copy(ty)),
        };
        let (a, b) = (self.affine_operand(a), self.affine_operand(b));
        let (Some(lanes), Location::Affine(d)) = (lanes, self.define(value)) else { return false };
        self.push(Step::Affine { op, lanes, d, a, b });
        true
    }

    fn affine_select(&mut self, value: Value, condition: Value, a: Value, b: Value) -> bool {
        let condition = self.uniform_scalar(condition);
        let (a, b) = (self.affine_operand(a), self.affine_operand(b));
        let Location::Affine(d) = self.define(value) else { return false };
        self.push(Step::AffineSelect { condition, d, a, b });
        true
    }

    /// Compiles a comparison of affine values. Returns false, and emits nothing, for other values.
    pub(super) fn compare(&mut self, value: Value) -> bool {
        let Some((comparison, signed, [a, b])) = comparison(self.kir, self.uniformity, value)
        else {
            return false;
        };
        let ty = self.kir.ty(a);
        let op = match comparison {
            Comparison::Less => BinaryOp::Lt,
            Comparison::LessOrEqual => BinaryOp::Le,
            Comparison::Equal => BinaryOp::Eq,
            Comparison::NotEqual => BinaryOp::Ne,
        };
        let (a, b) = (self.affine_operand(a), self.affine_operand(b));
        let (Some(lanes), Location::Lanes(d)) = (ops::binary(op, ty), self.define(value)) else {
            return false;
        };
        let Some(d) = self.condition(value, d) else { return false };
        self.push(Step::Compare { comparison, signed, lanes, d, a, b });
        true
    }
}
