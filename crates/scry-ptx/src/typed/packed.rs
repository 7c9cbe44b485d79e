//! Packed small integers: byte extraction and packing, `dp4a`, and int8 MMAs.

use super::KernelBuilder;
use super::value::{ToOperand, Val};
use crate::asm::{self, Opcode};
use crate::types::{Operand, PtxType};

/// The signedness of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// -128 to 127.
    Signed,
    /// 0 to 255.
    Unsigned,
}

impl Sign {
    const fn name(self) -> &'static str {
        match self {
            Self::Signed => "s8",
            Self::Unsigned => "u8",
        }
    }
}

impl<'k> Val<'k, u32> {
    /// Selects four of the eight bytes of `other:self` (`prmt`). Four bits of the selector are for
    /// each: the byte's index, and bit 3 to replicate its sign.
    #[must_use]
    pub fn permute(self, other: impl ToOperand<u32>, selector: impl ToOperand<u32>) -> Self {
        let operands = [self.operand(), other.operand(), selector.operand()];
        self.builder().op(Opcode::new("prmt.b32"), &operands)
    }

    /// Returns one of its bytes, 0 to 3, zero-extended; 0 is the lowest.
    #[must_use]
    pub fn byte(self, index: u32) -> Self {
        self.permute(0, 0x4440 | index)
    }

    /// Returns one of its bytes, 0 to 3, sign-extended.
    #[must_use]
    pub fn signed_byte(self, index: u32) -> Val<'k, i32> {
        self.permute(0, (0x1110 * (index | 8)) | index).cast()
    }

    /// Returns `self & mask | other`.
    #[must_use]
    pub fn masked_or(self, mask: u32, other: impl ToOperand<u32>) -> Self {
        (self & mask) | other
    }
}

/// 8- and 16-bit integers packed in registers of 32.
impl KernelBuilder {
    /// Packs two 16-bit integers into one of 32.
    #[must_use]
    pub fn join<'k>(&'k self, low: Val<'k, u16>, high: Val<'k, u16>) -> Val<'k, u32> {
        let result = self.edit(|body| body.reg(PtxType::U32));
        let halves = asm::Arg::Vector(vec![low.operand(), high.operand()]);
        self.emit(Opcode::new("mov.b32"), [result.into(), halves]);
        self.wrap(result)
    }

    /// Returns `sum` plus the products of the four signed bytes of `a` with those of `b` (`dp4a`).
    #[must_use]
    pub fn dp4a(
        &self,
        a: impl ToOperand<u32>,
        b: impl ToOperand<u32>,
        sum: impl ToOperand<i32>,
    ) -> Val<'_, i32> {
        self.op(Opcode::new("dp4a.s32.s32"), &[a.operand(), b.operand(), sum.operand()])
    }

    /// Multiplies bytes on the tensor cores of a warp (`mma.sync`, `sm_80`), and adds accumulators:
    /// 16 rows of `a` by 8 columns of `b`. K is 16 for `A` = 2 registers, 32 for 4. `sign` is that
    /// of `a`; bytes of `b` are signed.
    ///
    /// The elements of lane `l` are:
    /// - `a`: of each 16 bytes along K the 4 bytes from `4 * (l % 4)` on, of row `l / 4`, then of
    ///   row `l / 4 + 8`;
    /// - `b`: the same 4 bytes of column `l / 4`;
    /// - accumulators: row `l / 4`, columns `2 * (l % 4)` and the next one; then the same columns
    ///   of the row 8 below.
    #[must_use]
    pub fn mma_s8<'k, const A: usize, const B: usize>(
        &'k self,
        sign: Sign,
        a: [Val<'k, u32>; A],
        b: [Val<'k, u32>; B],
        accumulators: [Val<'k, i32>; 4],
    ) -> [Val<'k, i32>; 4] {
        assert!(matches!((A, B), (2, 1) | (4, 2)), "there is no such MMA");
        let name = if A == 4 { "m16n8k32" } else { "m16n8k16" };
        let opcode = Opcode::new("mma.sync.aligned").with(name).with("row.col.s32");
        let opcode = opcode.with(sign.name()).with("s8.s32");
        let results = [(); 4].map(|()| self.edit(|body| body.reg(PtxType::S32)));
        let vector = |operands: &[Operand]| asm::Arg::Vector(operands.to_vec());
        let args = [
            vector(&results.map(Operand::Reg)),
            vector(&a.map(ToOperand::operand)),
            vector(&b.map(ToOperand::operand)),
            vector(&accumulators.map(|sum| Operand::Reg(sum.reg()))),
        ];
        self.emit(opcode, args);
        results.map(|result| self.wrap(result))
    }
}
