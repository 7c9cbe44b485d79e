//! Functions of the bits of integers.

use spirv::{GlslStd450Op, Op};

use super::module::Id;
use super::{Emitter, Result, not_covered};
use crate::kir::{BinaryOp, Type, UnaryOp};

impl Emitter<'_> {
    /// A function of the bits of an integer of 32 bits.
    pub(super) fn bit_function(&mut self, op: UnaryOp, ty: Type, id: Id) -> Result<Id> {
        if ty.bits() != 32 {
            return not_covered(op, ty);
        }
        let u32 = self.m.u32_ty();
        Ok(match op {
            UnaryOp::CountOnes => self.m.op(Op::BitCount, u32, &[id]),
            UnaryOp::ReverseBits => self.m.op(Op::BitReverse, u32, &[id]),
            UnaryOp::FirstTrailingBit => self.m.glsl(GlslStd450Op::FindILsb, u32, &[id]),
            UnaryOp::FirstLeadingBit if ty.is_signed() => {
                self.m.glsl(GlslStd450Op::FindSMsb, u32, &[id])
            }
            UnaryOp::FirstLeadingBit => self.m.glsl(GlslStd450Op::FindUMsb, u32, &[id]),
            // Of zero, the position of the bit is -1.
            UnaryOp::LeadingZeros => {
                let (last, found) =
                    (self.m.u32(31), self.m.glsl(GlslStd450Op::FindUMsb, u32, &[id]));
                self.m.op(Op::ISub, u32, &[last, found])
            }
            UnaryOp::TrailingZeros => {
                let (all, found) =
                    (self.m.u32(32), self.m.glsl(GlslStd450Op::FindILsb, u32, &[id]));
                self.m.glsl(GlslStd450Op::UMin, u32, &[found, all])
            }
            _ => return not_covered(op, ty),
        })
    }

    /// The sum of the products of four bytes each.
    pub(super) fn dot_of_bytes(&mut self, op: BinaryOp, operands: [Id; 2]) -> Id {
        let u32 = self.m.u32_ty();
        let signed = op == BinaryOp::Dot4I8;
        let right = if signed { Op::ShiftRightArithmetic } else { Op::ShiftRightLogical };
        let top = self.m.u32(24);
        let mut sum = self.m.u32(0);
        for byte in 0..4 {
            let up = self.m.u32(24 - 8 * byte);
            let [a, b] = operands.map(|word| {
                let high = self.m.op(Op::ShiftLeftLogical, u32, &[word, up]);
                self.m.op(right, u32, &[high, top])
            });
            let product = self.m.op(Op::IMul, u32, &[a, b]);
            sum = self.m.op(Op::IAdd, u32, &[sum, product]);
        }
        sum
    }
}
