//! Integer division, remainder and shifts, which WGSL defines for all operands and SPIR-V does not.

use spirv::Op;

use super::Emitter;
use super::module::Id;
use crate::kir::{BinaryOp, Const, Type, Value};

impl Emitter<'_> {
    /// Emits a quotient; for `x / 0` and for `MIN / -1` it is the dividend.
    pub(super) fn quotient(&mut self, ty: Type, a: Value, b: Value) -> Id {
        let (dividend, divisor) = (self.value(a), self.divisor(ty, a, b));
        let op = if ty.is_signed() { Op::SDiv } else { Op::UDiv };
        self.op(op, ty, &[dividend, divisor])
    }

    /// Emits a remainder, which has the sign of the dividend. In Vulkan, `OpSRem` is undefined for
    /// negative operands.
    pub(super) fn remainder(&mut self, ty: Type, a: Value, b: Value) -> Id {
        let (dividend, divisor) = (self.value(a), self.divisor(ty, a, b));
        if !ty.is_signed() {
            return self.op(Op::UMod, ty, &[dividend, divisor]);
        }
        let quotient = self.op(Op::SDiv, ty, &[dividend, divisor]);
        let multiple = self.op(Op::IMul, ty, &[quotient, divisor]);
        self.op(Op::ISub, ty, &[dividend, multiple])
    }

    /// Returns the divisor; 1 where the quotient would be undefined.
    fn divisor(&mut self, ty: Type, a: Value, b: Value) -> Id {
        let divisor = self.value(b);
        let constant = self.kir.constant(b).map(Const::as_i64);
        let one = self.int(ty, 1);
        match constant {
            Some(0 | 1) => return one,
            Some(-1) if ty.is_signed() => {}
            Some(_) => return divisor,
            None => {}
        }
        let zero = self.int(ty, 0);
        let mut undefined = self.op(Op::IEqual, Type::Bool, &[divisor, zero]);
        if ty.is_signed() {
            let (dividend, minus_one) = (self.value(a), self.int(ty, -1));
            let min = self.int(ty, i64::MIN >> (64 - ty.bits()));
            let is_min = self.op(Op::IEqual, Type::Bool, &[dividend, min]);
            let negates = self.op(Op::IEqual, Type::Bool, &[divisor, minus_one]);
            let overflows = self.op(Op::LogicalAnd, Type::Bool, &[is_min, negates]);
            undefined = self.op(Op::LogicalOr, Type::Bool, &[undefined, overflows]);
        }
        self.op(Op::Select, ty, &[undefined, one, divisor])
    }

    /// Emits a shift by an amount modulo the width.
    pub(super) fn shift(&mut self, op: BinaryOp, a: Value, b: Value) -> Id {
        let ty = self.ty(a);
        let id = self.value(a);
        let mask = ty.bits() - 1;
        let amount = match self.kir.constant(b) {
            Some(constant) => self.m.u32(constant.bits as u32 & mask),
            None => {
                let (amount, mask) = (self.value(b), self.m.u32(mask));
                self.op(Op::BitwiseAnd, Type::U32, &[amount, mask])
            }
        };
        let code = match op {
            BinaryOp::Shl => Op::ShiftLeftLogical,
            _ if ty.is_signed() => Op::ShiftRightArithmetic,
            _ => Op::ShiftRightLogical,
        };
        self.op(code, ty, &[id, amount])
    }
}
