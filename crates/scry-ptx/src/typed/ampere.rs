//! Ampere features (`sm_80`): asynchronous copies to shared memory (`cp.async`), and tensor cores
//! with operands in registers (`mma.sync`).

use super::hopper::MmaType;
use super::value::{Element, ToOperand, Val};
use super::{Global, KernelBuilder, Ptr, Shared, Var};
use crate::asm::{self, Opcode};
use crate::types::Operand;

/// Asynchronous copies to shared memory: 4, 8 or 16 bytes each, aligned to their size. ptxas
/// rejects other sizes; a misaligned address is a launch failure ("misaligned address"), which
/// makes the context unusable. The source must not be written, nor the destination accessed, until
/// [`KernelBuilder::cp_async_wait_group`] has returned for the copy's group.
impl KernelBuilder {
    /// Copies 4, 8 or 16 bytes (`cp.async`).
    pub fn cp_async<T: Element>(
        &self,
        to: Ptr<'_, Shared, T>,
        from: Ptr<'_, Global, T>,
        bytes: u32,
    ) {
        let args = [to.address().into(), from.address().into(), Operand::u32(bytes).into()];
        self.emit(copy_opcode(bytes), args);
    }

    /// Copies 4, 8 or 16 bytes under a predicate.
    pub fn cp_async_if<T: Element>(
        &self,
        condition: Val<'_, bool>,
        to: Ptr<'_, Shared, T>,
        from: Ptr<'_, Global, T>,
        bytes: u32,
    ) {
        let args = vec![to.address().into(), from.address().into(), Operand::u32(bytes).into()];
        let pred = condition.reg();
        self.edit(|body| body.emit_if(pred, true, copy_opcode(bytes), args));
    }

    /// Copies the first `read` bytes, at most `bytes`, and writes zeros for the rest of them. If
    /// `read` is 0, `from` may be any address.
    pub fn cp_async_zero_fill<T: Element>(
        &self,
        to: Ptr<'_, Shared, T>,
        from: Ptr<'_, Global, T>,
        bytes: u32,
        read: Val<'_, u32>,
    ) {
        let size = Operand::u32(bytes).into();
        self.emit(
            copy_opcode(bytes),
            [to.address().into(), from.address().into(), size, read.reg().into()],
        );
    }

    /// Commits this thread's copies since the last commit as a group, which may be empty
    /// (`cp.async.commit_group`). Groups complete in order.
    pub fn cp_async_commit_group(&self) {
        self.emit(Opcode::new("cp.async.commit_group"), []);
    }

    /// Waits until at most this many of this thread's most recent groups are pending
    /// (`cp.async.wait_group`); 0 waits for all. Other threads see the copies after a block
    /// barrier.
    pub fn cp_async_wait_group(&self, pending: u32) {
        self.emit(Opcode::new("cp.async.wait_group"), [Operand::u32(pending).into()]);
    }
}

/// Returns the opcode of a copy; only 16-byte copies can bypass L1 (`.cg`).
fn copy_opcode(bytes: u32) -> Opcode {
    Opcode::new(if bytes == 16 { "cp.async.cg.shared.global" } else { "cp.async.ca.shared.global" })
}

/// Tensor cores of a warp. All 32 lanes must be active: the result is undefined otherwise.
impl KernelBuilder {
    /// Loads four 8 × 8 matrices of 16-bit elements (`ldmatrix`). Lane `8 * i + j` passes the
    /// address of row `j` of matrix `i`, 16 bytes at a multiple of 16. Lane `l` receives of each
    /// matrix the 4 bytes at `4 * (l % 4)` of row `l / 4`.
    #[must_use]
    pub fn ldmatrix<T: Element>(&self, row: Ptr<'_, Shared, T>) -> [Val<'_, u32>; 4] {
        self.load_four(Opcode::new("ldmatrix.sync.aligned.m8n8.x4.shared.b16"), row)
    }

    /// As [`KernelBuilder::ldmatrix`], with each matrix transposed (`ldmatrix.trans`).
    #[must_use]
    pub fn ldmatrix_trans<T: Element>(&self, row: Ptr<'_, Shared, T>) -> [Val<'_, u32>; 4] {
        self.load_four(Opcode::new("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"), row)
    }

    fn load_four<T: Element>(&self, opcode: Opcode, row: Ptr<'_, Shared, T>) -> [Val<'_, u32>; 4] {
        let regs = std::array::from_fn(|_| self.edit(|body| body.reg(u32::TYPE)));
        let values = asm::Arg::Vector(regs.iter().map(|reg| Operand::Reg(*reg)).collect());
        self.emit(opcode, [values, row.address().into()]);
        regs.map(|reg| self.wrap(reg))
    }

    /// Multiplies 16 rows by 8 columns, with the K of one instruction ([`MmaType::k_dim`]), and
    /// adds the products to the accumulators (`mma.sync`).
    ///
    /// The registers of lane `l` are:
    /// - accumulators: row `l / 4`, columns `2 * (l % 4)` and the next one; then the same columns
    ///   of the row 8 below;
    /// - `left`: the 4 bytes (two 16-bit floats or one `f32`) at `4 * (l % 4)` along K of row
    ///   `l / 4`, and of the row 8 below; then the same in the second half of K;
    /// - `right`: the 4 bytes at `4 * (l % 4)` along K of column `l / 4`; then the same in the
    ///   second half of K.
    pub fn mma(
        &self,
        mma_type: MmaType,
        accumulators: &[Var<'_, f32>; 4],
        left: [Val<'_, u32>; 4],
        right: [Val<'_, u32>; 2],
    ) {
        let (shape, name) = (format!("m16n8k{}", mma_type.k_dim()), mma_type.name());
        let opcode = Opcode::new("mma.sync.aligned").with(&shape).with("row.col.f32");
        let accumulators =
            asm::Arg::Vector(accumulators.iter().map(|sum| sum.reg().into()).collect());
        let left = asm::Arg::Vector(left.map(ToOperand::operand).into());
        let right = asm::Arg::Vector(right.map(ToOperand::operand).into());
        self.emit(
            opcode.with(name).with(name).with("f32"),
            [accumulators.clone(), left, right, accumulators],
        );
    }
}
