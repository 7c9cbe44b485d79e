//! What Ampere brought (`sm_80`): copies into shared memory that go on beside the thread, and
//! tensor cores that multiply what the lanes of a warp hold in registers.

use super::hopper::Factors;
use super::value::{Arg, Element, Val};
use super::{Code, Global, Ptr, Shared, Var};
use crate::asm::{self, Opcode};
use crate::types::Operand;

/// Copies of a thread into shared memory: 4, 8 or 16 bytes each, from and to multiples of that.
/// Other sizes are refused by the assembler; addresses between are an error of the launch
/// ("misaligned address"), which ends the context. When a copy is done only
/// [`Code::wait_copies`] tells; until then neither side of it may be touched.
impl Code {
    /// Copies this many bytes.
    pub fn copy_async<T: Element>(
        &self,
        to: Ptr<'_, Shared, T>,
        from: Ptr<'_, Global, T>,
        bytes: u32,
    ) {
        let args = [to.address().into(), from.address().into(), Operand::u32(bytes).into()];
        self.emit(copy(bytes), args);
    }

    /// Copies if a condition holds; nothing is done if it does not.
    pub fn copy_async_if<T: Element>(
        &self,
        condition: Val<'_, bool>,
        to: Ptr<'_, Shared, T>,
        from: Ptr<'_, Global, T>,
        bytes: u32,
    ) {
        let args = vec![to.address().into(), from.address().into(), Operand::u32(bytes).into()];
        let pred = condition.reg();
        self.edit(|body| body.emit_if(pred, true, copy(bytes), args));
    }

    /// Copies the first `read` bytes, at most `bytes`, and writes zeros for the rest of them. Where
    /// nothing is to be read, `from` may lead anywhere.
    pub fn copy_async_or_zero<T: Element>(
        &self,
        to: Ptr<'_, Shared, T>,
        from: Ptr<'_, Global, T>,
        bytes: u32,
        read: Val<'_, u32>,
    ) {
        let size = Operand::u32(bytes).into();
        self.emit(
            copy(bytes),
            [to.address().into(), from.address().into(), size, read.reg().into()],
        );
    }

    /// Ends a group of this thread's copies, those since the last one; it may be empty. Groups are
    /// done in order.
    pub fn commit_copies(&self) {
        self.emit(Opcode::new("cp.async.commit_group"), []);
    }

    /// Waits until at most this many groups of this thread's copies, the last ones, are pending; 0
    /// waits for all. The other threads see them after a barrier of the block.
    pub fn wait_copies(&self, pending: u32) {
        self.emit(Opcode::new("cp.async.wait_group"), [Operand::u32(pending).into()]);
    }
}

/// Only copies of 16 bytes can leave L1 alone.
fn copy(bytes: u32) -> Opcode {
    Opcode::new(if bytes == 16 { "cp.async.cg.shared.global" } else { "cp.async.ca.shared.global" })
}

/// Tensor cores of a warp. All 32 lanes come here together: what happens where some are missing,
/// PTX leaves open.
impl Code {
    /// Reads four matrices of 8 rows of 16 bytes: lane `8 * i + j` gives the address of row `j` of
    /// matrix `i`, a multiple of 16, and gets of each of them the 4 bytes `lane % 4` of row
    /// `lane / 4`.
    #[must_use]
    pub fn load_matrices<T: Element>(&self, row: Ptr<'_, Shared, T>) -> [Val<'_, u32>; 4] {
        self.load_four(Opcode::new("ldmatrix.sync.aligned.m8n8.x4.shared.b16"), row)
    }

    /// The same with matrices of 8 halves a row, each of them transposed.
    #[must_use]
    pub fn load_matrices_transposed<T: Element>(
        &self,
        row: Ptr<'_, Shared, T>,
    ) -> [Val<'_, u32>; 4] {
        self.load_four(Opcode::new("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"), row)
    }

    fn load_four<T: Element>(&self, opcode: Opcode, row: Ptr<'_, Shared, T>) -> [Val<'_, u32>; 4] {
        let regs = std::array::from_fn(|_| self.edit(|body| body.reg(u32::TYPE)));
        let values = asm::Arg::Vector(regs.iter().map(|reg| Operand::Reg(*reg)).collect());
        self.emit(opcode, [values, row.address().into()]);
        regs.map(|reg| self.wrap(reg))
    }

    /// Adds the product of 16 rows and 8 columns, of the depth of one instruction, to sums.
    ///
    /// A lane holds of the sums row `lane / 4`, columns `2 * (lane % 4)` and the next one, then the
    /// same 8 rows further down. Of the left factor it holds 4 bytes (two halves, or one f32)
    /// of that row, at depth `lane % 4` of such, of the row 8 further down, then both of the second
    /// half of the depth; of the right one the same of column `lane / 4`.
    pub fn multiply_add(
        &self,
        factors: Factors,
        sums: &[Var<'_, f32>; 4],
        left: [Val<'_, u32>; 4],
        right: [Val<'_, u32>; 2],
    ) {
        let (shape, name) = (format!("m16n8k{}", factors.depth()), factors.name());
        let opcode = Opcode::new("mma.sync.aligned").with(&shape).with("row.col.f32");
        let sums = asm::Arg::Vector(sums.iter().map(|sum| sum.reg().into()).collect());
        let left = asm::Arg::Vector(left.map(Arg::operand).into());
        let right = asm::Arg::Vector(right.map(Arg::operand).into());
        self.emit(opcode.with(name).with(name).with("f32"), [sums.clone(), left, right, sums]);
    }
}
