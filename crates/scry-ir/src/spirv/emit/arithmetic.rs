//! Arithmetic and comparisons.

use spirv::{BuiltIn, GlslStd450Op, Op};

use super::convert::bits_of_one;
use super::module::Id;
use super::{Emitter, Result, not_covered};
use crate::SpirvWorkarounds;
use crate::kir::{BinaryOp, Const, Type, UnaryOp, Value};

impl Emitter<'_> {
    /// Emits a unary operation.
    pub(super) fn unary(&mut self, op: UnaryOp, a: Value) -> Result<Id> {
        let ty = self.ty(a);
        if ty.is_float() {
            return self.float_unary(op, a);
        }
        if ty.matrix().is_some() {
            return self.matrix_unary(op, ty, a);
        }
        let id = self.value(a);
        match op {
            UnaryOp::Not if ty == Type::Bool => Ok(self.op(Op::LogicalNot, ty, &[id])),
            UnaryOp::Not => Ok(self.op(Op::Not, ty, &[id])),
            UnaryOp::Neg => Ok(self.negate(ty, id)),
            UnaryOp::Abs => {
                let negate = self.negate(ty, id);
                Ok(self.min_max(BinaryOp::Max, ty, [id, negate]))
            }
            UnaryOp::Sign => {
                let [minus_one, one] = [-1, 1].map(|number| self.int(ty, number));
                let low = self.min_max(BinaryOp::Max, ty, [id, minus_one]);
                Ok(self.min_max(BinaryOp::Min, ty, [low, one]))
            }
            _ => self.bit_function(op, ty, id),
        }
    }

    /// Emits `-x`, which wraps. With [`SpirvWorkarounds::EXPAND_SIGNS`] it is `(x ^ MAX) - MAX`,
    /// where `MAX` is the largest signed integer: drivers do not recognise that as a negation.
    pub(super) fn negate(&mut self, ty: Type, id: Id) -> Id {
        if !self.expands(SpirvWorkarounds::EXPAND_SIGNS) {
            let zero = self.int(ty, 0);
            return self.op(Op::ISub, ty, &[zero, id]);
        }
        let max = i64::MAX >> (64 - ty.bits());
        let [mask, minus_max] = [max, -max].map(|number| self.int(ty, number));
        let complement = self.op(Op::BitwiseXor, ty, &[id, mask]);
        self.op(Op::IAdd, ty, &[complement, minus_max])
    }

    /// Returns whether the options request a workaround.
    pub(super) fn expands(&self, workaround: SpirvWorkarounds) -> bool {
        self.options.workarounds.contains(workaround)
    }

    /// Emits `a - b`. With [`SpirvWorkarounds::EXPAND_SIGNS`] it is `a + -b` where the driver may
    /// find a negation: if `a` is zero, and in 16 bits always, since the driver may fold `a` to
    /// zero.
    fn difference(&mut self, ty: Type, a: Value, [left, right]: [Id; 2]) -> Id {
        let is_zero = self.kir.constant(a) == Some(Const::zero(ty));
        if self.expands(SpirvWorkarounds::EXPAND_SIGNS) && (is_zero || ty.bits() == 16) {
            let negate = self.negate(ty, right);
            return self.op(Op::IAdd, ty, &[left, negate]);
        }
        self.op(Op::ISub, ty, &[left, right])
    }

    /// Emits the sign of a float, as two selections with [`SpirvWorkarounds::EXPAND_SIGNS`].
    pub(super) fn float_sign(&mut self, ty: Type, id: Id) -> Result<Id> {
        if !self.expands(SpirvWorkarounds::EXPAND_SIGNS) {
            return self.float_function(GlslStd450Op::FSign, ty, &[id]);
        }
        let sign_bit = 1 << (ty.bits() - 1);
        let [minus_one, zero, one] = [bits_of_one(ty) | sign_bit, 0, bits_of_one(ty)]
            .map(|bits| self.constant(Const { ty, bits }));
        let is_positive = self.op(Op::FOrdGreaterThan, Type::Bool, &[id, zero]);
        let sign = self.op(Op::Select, ty, &[is_positive, one, id]);
        let is_negative = self.op(Op::FOrdLessThan, Type::Bool, &[id, zero]);
        Ok(self.op(Op::Select, ty, &[is_negative, minus_one, sign]))
    }

    /// Emits a binary operation other than a comparison.
    pub(super) fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Result<Id> {
        let ty = self.ty(a);
        let operands = [self.value(a), self.value(b)];
        if ty.matrix().is_some() {
            return self.matrix_binary(op, ty, operands);
        }
        let by_kind = |float, int| if ty.is_float() { float } else { int };
        let code = match op {
            BinaryOp::Add => by_kind(Op::FAdd, Op::IAdd),
            BinaryOp::Sub if ty.is_float() => Op::FSub,
            BinaryOp::Sub => return Ok(self.difference(ty, a, operands)),
            BinaryOp::Mul => by_kind(Op::FMul, Op::IMul),
            BinaryOp::Div if ty.is_float() => Op::FDiv,
            BinaryOp::Rem if ty.is_float() => return Ok(self.float_remainder(ty, operands)),
            BinaryOp::Div => return Ok(self.quotient(ty, a, b)),
            BinaryOp::Rem => return Ok(self.remainder(ty, a, b)),
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => bitwise_opcode(op, ty),
            BinaryOp::Shl | BinaryOp::Shr => return Ok(self.shift(op, a, b)),
            BinaryOp::Min | BinaryOp::Max => return Ok(self.min_max(op, ty, operands)),
            BinaryOp::Pow => return self.float_function(GlslStd450Op::Pow, ty, &operands),
            BinaryOp::Atan2 => return self.float_function(GlslStd450Op::Atan2, ty, &operands),
            BinaryOp::Ldexp => return self.ldexp(ty, operands),
            BinaryOp::Dot4I8 | BinaryOp::Dot4U8 => return Ok(self.dot_of_4_bytes(op, operands)),
            _ => return not_covered(op, ty),
        };
        Ok(self.op(code, ty, &operands))
    }

    /// Emits the minimum or maximum of two numbers; of a number and NaN, it is the number.
    ///
    /// 16-bit integers are extended to 32 bits: NVIDIA's driver 580 computes wrong 16-bit minima
    /// and maxima.
    pub(super) fn min_max(&mut self, op: BinaryOp, ty: Type, operands: [Id; 2]) -> Id {
        let is_min = op == BinaryOp::Min;
        if ty.is_float() {
            let function = if is_min { GlslStd450Op::NMin } else { GlslStd450Op::NMax };
            let ty = self.spirv_ty(ty);
            return self.m.glsl(function, ty, &operands);
        }
        let function = match (is_min, ty.is_signed()) {
            (true, true) => GlslStd450Op::SMin,
            (true, false) => GlslStd450Op::UMin,
            (false, true) => GlslStd450Op::SMax,
            (false, false) => GlslStd450Op::UMax,
        };
        if ty.size() > 2 {
            let ty = self.spirv_ty(ty);
            return self.m.glsl(function, ty, &operands);
        }
        let widen = if ty.is_signed() { Op::SConvert } else { Op::UConvert };
        let wide = operands.map(|operand| self.op(widen, Type::U32, &[operand]));
        let u32 = self.m.u32_ty();
        let result = self.m.glsl(function, u32, &wide);
        self.op(Op::UConvert, ty, &[result])
    }

    /// Compares two values.
    pub(super) fn comparison(&mut self, op: BinaryOp, a: Value, b: Value) -> Id {
        let ty = self.ty(a);
        let mut operands = [self.value(a), self.value(b)];
        if self.is_in_loop() && self.expands(SpirvWorkarounds::HIDE_LOOP_BOUNDS) {
            operands[1] = self.hidden_bound(ty, operands);
        }
        if matches!(ty, Type::U32 | Type::U64) && self.expands_comparisons() {
            let equality = match op {
                BinaryOp::Ge => Some((Op::IEqual, operands[0])),
                BinaryOp::Lt => Some((Op::INotEqual, operands[0])),
                BinaryOp::Le => Some((Op::IEqual, operands[1])),
                BinaryOp::Gt => Some((Op::INotEqual, operands[1])),
                _ => None,
            };
            if let Some((code, operand)) = equality {
                let max = self.min_max(BinaryOp::Max, ty, operands);
                return self.op(code, Type::Bool, &[max, operand]);
            }
        }
        self.op(comparison_opcode(op, ty), Type::Bool, &operands)
    }

    /// Returns whether unsigned comparisons are expanded here: in loops of kernels with private
    /// arrays, with [`SpirvWorkarounds::EXPAND_LOOP_COMPARISONS`].
    fn expands_comparisons(&self) -> bool {
        self.expands(SpirvWorkarounds::EXPAND_LOOP_COMPARISONS)
            && !self.kir.locals.is_empty()
            && self.is_in_loop()
    }

    /// Emits a value that equals `bound`, though no compiler can prove it: there is always a
    /// workgroup.
    fn hidden_bound(&mut self, ty: Type, [counter, bound]: [Id; 2]) -> Id {
        let workgroups = self.component(BuiltIn::NumWorkgroups, 0);
        let zero = self.m.u32(0);
        let is_running = self.op(Op::INotEqual, Type::Bool, &[workgroups, zero]);
        self.op(Op::Select, ty, &[is_running, bound, counter])
    }
}

fn bitwise_opcode(op: BinaryOp, ty: Type) -> Op {
    match (op, ty) {
        (BinaryOp::And, Type::Bool) => Op::LogicalAnd,
        (BinaryOp::Or, Type::Bool) => Op::LogicalOr,
        (_, Type::Bool) => Op::LogicalNotEqual,
        (BinaryOp::And, _) => Op::BitwiseAnd,
        (BinaryOp::Or, _) => Op::BitwiseOr,
        _ => Op::BitwiseXor,
    }
}

fn comparison_opcode(op: BinaryOp, ty: Type) -> Op {
    let [float, signed, unsigned] = match op {
        BinaryOp::Eq if ty == Type::Bool => return Op::LogicalEqual,
        BinaryOp::Eq => [Op::FOrdEqual, Op::IEqual, Op::IEqual],
        BinaryOp::Ne if ty == Type::Bool => return Op::LogicalNotEqual,
        BinaryOp::Ne => [Op::FUnordNotEqual, Op::INotEqual, Op::INotEqual],
        BinaryOp::Lt => [Op::FOrdLessThan, Op::SLessThan, Op::ULessThan],
        BinaryOp::Le => [Op::FOrdLessThanEqual, Op::SLessThanEqual, Op::ULessThanEqual],
        BinaryOp::Gt => [Op::FOrdGreaterThan, Op::SGreaterThan, Op::UGreaterThan],
        _ => [Op::FOrdGreaterThanEqual, Op::SGreaterThanEqual, Op::UGreaterThanEqual],
    };
    match ty {
        _ if ty.is_float() => float,
        _ if ty.is_signed() => signed,
        _ => unsigned,
    }
}
