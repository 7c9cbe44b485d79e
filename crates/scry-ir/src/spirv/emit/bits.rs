//! Bit functions of integers: counts, positions and reversal of bits, and dot products of bytes.

use spirv::{GlslStd450Op, Op};

use super::module::Id;
use super::{Emitter, Result, not_covered};
use crate::kir::{BinaryOp, Type, UnaryOp};

impl Emitter<'_> {
    /// Emits a bit function of an integer. Vulkan's instructions for them are for 32 bits only.
    pub(super) fn bit_function(&mut self, op: UnaryOp, ty: Type, id: Id) -> Result<Id> {
        match ty.bits() {
            16 => self.bit_function_16(op, ty, id),
            32 => self.bit_function_32(op, ty, id),
            _ => self.bit_function_64(op, ty, id),
        }
    }

    fn bit_function_16(&mut self, op: UnaryOp, ty: Type, id: Id) -> Result<Id> {
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
            _ if ty.is_signed() => self.bit_function_32(op, Type::I32, word)?,
            _ => self.bit_function_32(op, Type::U32, word)?,
        };
        Ok(self.op(Op::UConvert, ty, &[result]))
    }

    fn bit_function_32(&mut self, op: UnaryOp, ty: Type, id: Id) -> Result<Id> {
        let u32 = self.m.u32_ty();
        Ok(match op {
            UnaryOp::CountOnes => self.m.op(Op::BitCount, u32, &[id]),
            UnaryOp::ReverseBits => self.m.op(Op::BitReverse, u32, &[id]),
            UnaryOp::FirstTrailingBit => self.m.glsl(GlslStd450Op::FindILsb, u32, &[id]),
            UnaryOp::FirstLeadingBit if ty.is_signed() => {
                self.m.glsl(GlslStd450Op::FindSMsb, u32, &[id])
            }
            UnaryOp::FirstLeadingBit => self.m.glsl(GlslStd450Op::FindUMsb, u32, &[id]),
            // `FindUMsb` of 0 is -1.
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

    fn bit_function_64(&mut self, op: UnaryOp, ty: Type, id: Id) -> Result<Id> {
        let u32 = self.m.u32_ty();
        if op == UnaryOp::ReverseBits {
            let [low, high] =
                self.split_words(ty, id).map(|it| self.m.op(Op::BitReverse, u32, &[it]));
            let [low, high] = [low, high].map(|it| self.op(Op::UConvert, ty, &[it]));
            let amount = self.m.u32(32);
            let upper = self.op(Op::ShiftLeftLogical, ty, &[low, amount]);
            return Ok(self.op(Op::BitwiseOr, ty, &[upper, high]));
        }
        let result = match op {
            UnaryOp::CountOnes => {
                let counts = self.split_words(ty, id).map(|it| self.m.op(Op::BitCount, u32, &[it]));
                self.m.op(Op::IAdd, u32, &counts)
            }
            UnaryOp::FirstTrailingBit => self.lowest_of_64(ty, id),
            UnaryOp::FirstLeadingBit if ty.is_signed() => {
                let last = self.m.u32(63);
                let sign = self.op(Op::ShiftRightArithmetic, ty, &[id, last]);
                let differs_from_sign = self.op(Op::BitwiseXor, ty, &[id, sign]);
                self.highest_of_64(ty, differs_from_sign)
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

    /// Splits a 64-bit integer into its low and its high word.
    fn split_words(&mut self, ty: Type, id: Id) -> [Id; 2] {
        let amount = self.m.u32(32);
        let upper = self.op(Op::ShiftRightLogical, ty, &[id, amount]);
        [id, upper].map(|it| self.op(Op::UConvert, Type::U32, &[it]))
    }

    /// Emits the position of the highest set bit of a 64-bit integer; -1 for 0.
    fn highest_of_64(&mut self, ty: Type, id: Id) -> Id {
        let [low, high] = self.split_words(ty, id);
        self.find_in_words(GlslStd450Op::FindUMsb, [high, low], 0)
    }

    /// Emits the position of the lowest set bit of a 64-bit integer; -1 for 0.
    fn lowest_of_64(&mut self, ty: Type, id: Id) -> Id {
        let words = self.split_words(ty, id);
        self.find_in_words(GlslStd450Op::FindILsb, words, 1)
    }

    /// Emits the position of a bit, found by `find` in the first of two words that is not zero.
    /// `high` is the index of the high word: 32 is added to its positions, by an `or` that leaves
    /// -1 as it is.
    fn find_in_words(&mut self, find: GlslStd450Op, words: [Id; 2], high: usize) -> Id {
        let u32 = self.m.u32_ty();
        let mut found = words.map(|word| self.m.glsl(find, u32, &[word]));
        let half = self.m.u32(32);
        found[high] = self.m.op(Op::BitwiseOr, u32, &[found[high], half]);
        let zero = self.m.u32(0);
        let in_first = self.op(Op::INotEqual, Type::Bool, &[words[0], zero]);
        self.op(Op::Select, Type::U32, &[in_first, found[0], found[1]])
    }

    /// Emits the dot product of two words, each a vector of four bytes.
    pub(super) fn dot_of_4_bytes(&mut self, op: BinaryOp, operands: [Id; 2]) -> Id {
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
