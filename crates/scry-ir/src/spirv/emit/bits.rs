//! Functions of the bits of integers.

use spirv::{GlslStd450Op, Op};

use super::module::Id;
use super::{Emitter, Result, not_covered};
use crate::kir::{BinaryOp, Type, UnaryOp};

impl Emitter<'_> {
    /// A function of the bits of an integer. SPIR-V's instructions are of 32 bits.
    pub(super) fn bit_function(&mut self, op: UnaryOp, ty: Type, id: Id) -> Result<Id> {
        match ty.bits() {
            16 => self.bits_of_16(op, ty, id),
            32 => self.bits_of_32(op, ty, id),
            _ => self.bits_of_64(op, ty, id),
        }
    }

    fn bits_of_16(&mut self, op: UnaryOp, ty: Type, id: Id) -> Result<Id> {
        let widen = if op == UnaryOp::FirstLeadingBit && ty.is_signed() {
            Op::SConvert
        } else {
            Op::UConvert
        };
        let u32 = self.m.u32_ty();
        let word = self.m.op(widen, u32, &[id]);
        let result = match op {
            UnaryOp::ReverseBits => {
                let (reversed, half) = (self.m.op(Op::BitReverse, u32, &[word]), self.m.u32(16));
                self.m.op(Op::ShiftRightLogical, u32, &[reversed, half])
            }
            UnaryOp::LeadingZeros => {
                let found = self.m.glsl(GlslStd450Op::FindUMsb, u32, &[word]);
                let last = self.m.u32(15);
                self.m.op(Op::ISub, u32, &[last, found])
            }
            UnaryOp::TrailingZeros => {
                let found = self.m.glsl(GlslStd450Op::FindILsb, u32, &[word]);
                let all = self.m.u32(16);
                self.m.glsl(GlslStd450Op::UMin, u32, &[found, all])
            }
            _ if ty.is_signed() => self.bits_of_32(op, Type::I32, word)?,
            _ => self.bits_of_32(op, Type::U32, word)?,
        };
        Ok(self.op(Op::UConvert, ty, &[result]))
    }

    fn bits_of_32(&mut self, op: UnaryOp, ty: Type, id: Id) -> Result<Id> {
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

    fn bits_of_64(&mut self, op: UnaryOp, ty: Type, id: Id) -> Result<Id> {
        let u32 = self.m.u32_ty();
        if op == UnaryOp::ReverseBits {
            let [low, high] = self.words_of(ty, id).map(|it| self.m.op(Op::BitReverse, u32, &[it]));
            let [low, high] = [low, high].map(|it| self.op(Op::UConvert, ty, &[it]));
            let by = self.m.u32(32);
            let upper = self.op(Op::ShiftLeftLogical, ty, &[low, by]);
            return Ok(self.op(Op::BitwiseOr, ty, &[upper, high]));
        }
        let result = match op {
            UnaryOp::CountOnes => {
                let counts = self.words_of(ty, id).map(|it| self.m.op(Op::BitCount, u32, &[it]));
                self.m.op(Op::IAdd, u32, &counts)
            }
            UnaryOp::FirstTrailingBit => self.lowest_of_64(ty, id),
            UnaryOp::FirstLeadingBit if ty.is_signed() => {
                let last = self.m.u32(63);
                let sign = self.op(Op::ShiftRightArithmetic, ty, &[id, last]);
                let differing = self.op(Op::BitwiseXor, ty, &[id, sign]);
                self.highest_of_64(ty, differing)
            }
            UnaryOp::FirstLeadingBit => self.highest_of_64(ty, id),
            UnaryOp::LeadingZeros => {
                let (last, found) = (self.m.u32(63), self.highest_of_64(ty, id));
                self.m.op(Op::ISub, u32, &[last, found])
            }
            UnaryOp::TrailingZeros => {
                let (all, found) = (self.m.u32(64), self.lowest_of_64(ty, id));
                self.m.glsl(GlslStd450Op::UMin, u32, &[found, all])
            }
            _ => return not_covered(op, ty),
        };
        Ok(self.op(Op::SConvert, ty, &[result]))
    }

    /// The low and the high word of an integer of 64 bits.
    fn words_of(&mut self, ty: Type, id: Id) -> [Id; 2] {
        let by = self.m.u32(32);
        let upper = self.op(Op::ShiftRightLogical, ty, &[id, by]);
        [id, upper].map(|it| self.op(Op::UConvert, Type::U32, &[it]))
    }

    /// The position of the highest one of 64 bits; -1 of zero.
    fn highest_of_64(&mut self, ty: Type, id: Id) -> Id {
        let [low, high] = self.words_of(ty, id);
        self.one_of_two(GlslStd450Op::FindUMsb, [high, low], 0)
    }

    /// The position of the lowest one of 64 bits; -1 of zero.
    fn lowest_of_64(&mut self, ty: Type, id: Id) -> Id {
        let words = self.words_of(ty, id);
        self.one_of_two(GlslStd450Op::FindILsb, words, 1)
    }

    /// The position of a bit in the first of two words that is not zero. `high` is which of them
    /// is the high word: 32 is added to its positions, by an `or` that leaves -1 as it is.
    fn one_of_two(&mut self, find: GlslStd450Op, words: [Id; 2], high: usize) -> Id {
        let u32 = self.m.u32_ty();
        let mut found = words.map(|word| self.m.glsl(find, u32, &[word]));
        let half = self.m.u32(32);
        found[high] = self.m.op(Op::BitwiseOr, u32, &[found[high], half]);
        let zero = self.m.u32(0);
        let in_first = self.op(Op::INotEqual, Type::Bool, &[words[0], zero]);
        self.op(Op::Select, Type::U32, &[in_first, found[0], found[1]])
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
