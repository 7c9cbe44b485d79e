//! Bit manipulation functions.
//!
//! 16-bit integers are widened to 32 bits where they have no instruction.

use scry_ir::kir::{Type, Value};

use super::{Lowering, ptx_type};
use crate::asm::Opcode;
use crate::types::{Operand, PtxType, Reg};

impl Lowering<'_> {
    /// Lowers `~` of bits, or `!` of a bool.
    pub(super) fn complement(&mut self, a: Value) -> Reg {
        let ty = ptx_type(self.ty(a)).to_bits();
        let a = self.value(a);
        self.b.typed("not", ty, &[a])
    }

    /// Lowers a bitwise operation.
    pub(super) fn bitwise(&mut self, name: &str, a: Value, b: Value) -> Reg {
        let operands = [self.value(a), self.value(b)];
        self.b.typed(name, ptx_type(self.ty(a)).to_bits(), &operands)
    }

    /// Lowers a left shift by an amount modulo the width.
    pub(super) fn shift_left(&mut self, a: Value, by: Value) -> Reg {
        let ty = ptx_type(self.ty(a));
        if let Some((value, by)) = self.funnel_shift_operands(ty, a, by) {
            let operands = [Operand::u32(0), value, by];
            return self.b.typed("shf.l.wrap", PtxType::B32, &operands);
        }
        let operands = [self.value(a), self.shift_amount(ty, by)];
        self.b.typed("shl", ty.to_bits(), &operands)
    }

    /// Lowers a right shift by an amount modulo the width: arithmetic for signed integers, else
    /// logical.
    pub(super) fn shift_right(&mut self, a: Value, by: Value) -> Reg {
        let ty = ptx_type(self.ty(a));
        if let (PtxType::U32, Some((value, by))) = (ty, self.funnel_shift_operands(ty, a, by)) {
            let operands = [value, Operand::u32(0), by];
            return self.b.typed("shf.r.wrap", PtxType::B32, &operands);
        }
        let operands = [self.value(a), self.shift_amount(ty, by)];
        self.b.typed("shr", ty, &operands)
    }

    /// Returns the operands of a 32-bit shift by a register, which is lowered to a funnel shift
    /// (`shf`): it wraps the amount modulo 32.
    fn funnel_shift_operands(
        &self,
        ty: PtxType,
        a: Value,
        by: Value,
    ) -> Option<(Operand, Operand)> {
        match self.value(by) {
            by @ Operand::Reg(_) if ty.size() == 4 => Some((self.value(a), by)),
            _ => None,
        }
    }

    /// Returns a shift amount modulo the width: `shl` and `shr` clamp larger amounts.
    fn shift_amount(&mut self, ty: PtxType, by: Value) -> Operand {
        let width = ty.class().bits();
        match self.value(by) {
            Operand::Imm { bits, .. } => Operand::u32(bits as u32 % width),
            by => self.b.typed("and", PtxType::B32, &[by, Operand::u32(width - 1)]).into(),
        }
    }

    pub(super) fn count_ones(&mut self, a: Value) -> Reg {
        let (ty, word) = self.widen_integer(a, false);
        let count = self.op_with_u32_result("popc", ty, word);
        self.resize_position(self.ty(a), count)
    }

    pub(super) fn leading_zeros(&mut self, a: Value) -> Reg {
        let (ty, word) = self.widen_integer(a, false);
        let mut count = self.op_with_u32_result("clz", ty, word);
        if self.ty(a).bits() == 16 {
            count = self.b.typed("sub", PtxType::U32, &[count.into(), Operand::u32(16)]);
        }
        self.resize_position(self.ty(a), count)
    }

    pub(super) fn trailing_zeros(&mut self, a: Value) -> Reg {
        let (ty, mut word) = self.widen_integer(a, false);
        if self.ty(a).bits() == 16 {
            // Bit 16 limits the count to 16.
            word = self.b.typed("or", PtxType::B32, &[word, Operand::u32(1 << 16)]).into();
        }
        let reversed = self.b.typed("brev", ty, &[word]);
        let count = self.op_with_u32_result("clz", ty, reversed.into());
        self.resize_position(self.ty(a), count)
    }

    pub(super) fn reverse_bits(&mut self, a: Value) -> Reg {
        let (ty, word) = self.widen_integer(a, false);
        let reversed = self.b.typed("brev", ty, &[word]);
        if self.ty(a).bits() != 16 {
            return reversed;
        }
        let low = self.b.typed("shr", PtxType::U32, &[reversed.into(), Operand::u32(16)]);
        self.resize_position(self.ty(a), low)
    }

    /// Lowers WGSL's `firstLeadingBit`: -1 if there is none.
    pub(super) fn first_leading_bit(&mut self, a: Value) -> Reg {
        let is_signed = self.ty(a).is_signed();
        let (bits, word) = self.widen_integer(a, is_signed);
        let ty = match (bits, is_signed) {
            (PtxType::B32, false) => PtxType::U32,
            (PtxType::B32, true) => PtxType::S32,
            (_, false) => PtxType::U64,
            (_, true) => PtxType::S64,
        };
        let position = self.op_with_u32_result("bfind", ty, word);
        self.resize_position(self.ty(a), position)
    }

    /// Lowers WGSL's `firstTrailingBit`: -1 if there is none.
    pub(super) fn first_trailing_bit(&mut self, a: Value) -> Reg {
        let (bits, word) = self.widen_integer(a, false);
        let reversed = self.b.typed("brev", bits, &[word]).into();
        let ty = if bits == PtxType::B32 { PtxType::U32 } else { PtxType::U64 };
        // The distance of the highest set bit from the top bit.
        let position = self.op_with_u32_result("bfind.shiftamt", ty, reversed);
        self.resize_position(self.ty(a), position)
    }

    /// Extends an integer to at least 32 bits, and returns its type.
    fn widen_integer(&mut self, a: Value, is_signed: bool) -> (PtxType, Operand) {
        let operand = self.value(a);
        match self.ty(a).bits() {
            16 if is_signed => {
                (PtxType::B32, self.b.convert("", PtxType::S32, PtxType::S16, operand).into())
            }
            16 => (PtxType::B32, self.b.convert("", PtxType::U32, PtxType::U16, operand).into()),
            32 => (PtxType::B32, operand),
            _ => (PtxType::B64, operand),
        }
    }

    /// Emits an instruction whose result has 32 bits, whatever the operand's type is.
    fn op_with_u32_result(&mut self, name: &str, ty: PtxType, operand: Operand) -> Reg {
        self.b.op(PtxType::U32, Opcode::typed(name, ty), &[operand])
    }

    /// Converts a count, or a bit position or -1, to the type of the operand.
    fn resize_position(&mut self, ty: Type, position: Reg) -> Reg {
        match ty.bits() {
            16 => self.b.convert("", PtxType::U16, PtxType::U32, position.into()),
            32 => position,
            _ => self.b.convert("", PtxType::S64, PtxType::S32, position.into()),
        }
    }
}
