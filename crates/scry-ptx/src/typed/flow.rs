//! Control flow, barriers and warp shuffles.

use super::KernelBuilder;
use super::value::{Element, ToOperand, Val};
use crate::asm::{self, Label, Opcode};
use crate::types::{Operand, PtxType};

/// All lanes of a warp.
const FULL_MASK: u32 = u32::MAX;

/// The exit of a loop.
#[derive(Debug, Clone, Copy)]
pub struct LoopExit<'k> {
    k: &'k KernelBuilder,
    label: Label,
}

impl LoopExit<'_> {
    /// Exits the loop if the condition is true.
    pub fn break_if(self, condition: Val<'_, bool>) {
        let pred = condition.reg();
        self.k.edit(|body| body.break_if(pred, self.label));
    }
}

/// Control flow.
impl KernelBuilder {
    /// Emits code for threads whose condition is true.
    pub fn if_then(&self, condition: Val<'_, bool>, then_block: impl FnOnce()) {
        let (pred, end) = (condition.reg(), self.edit(|body| body.label()));
        self.edit(|body| body.branch_unless(pred, end));
        then_block();
        self.edit(|body| body.place(end));
    }

    /// Emits code for threads whose condition is true, and other code for those where it is false.
    pub fn if_else(
        &self,
        condition: Val<'_, bool>,
        then_block: impl FnOnce(),
        else_block: impl FnOnce(),
    ) {
        let pred = condition.reg();
        let (other, end) = self.edit(|body| (body.label(), body.label()));
        self.edit(|body| body.branch_unless(pred, other));
        then_block();
        self.edit(|body| {
            body.branch(end);
            body.place(other);
        });
        else_block();
        self.edit(|body| body.place(end));
    }

    /// Emits an endless loop, which its [`LoopExit`] exits.
    pub fn loop_(&self, write: impl FnOnce(LoopExit<'_>)) {
        let (top, end) = self.edit(|body| (body.label(), body.label()));
        self.edit(|body| body.place(top));
        write(LoopExit { k: self, label: end });
        self.edit(|body| {
            body.branch(top);
            body.place(end);
        });
    }

    /// Emits a loop whose counter is `from`, `from + step`, … as long as it is below `to`.
    pub fn for_range<'k>(
        &'k self,
        from: impl ToOperand<u32>,
        to: impl ToOperand<u32>,
        step: impl ToOperand<u32>,
        write: impl FnOnce(Val<'k, u32>),
    ) {
        let counter = self.var::<u32>(from);
        self.loop_(|exit| {
            exit.break_if(counter.get().ge(to));
            write(counter.get());
            self.edit(|body| {
                let add = Opcode::typed("add", PtxType::U32);
                body.op_into(counter.reg(), add, &[counter.reg().into(), step.operand()]);
            });
        });
    }

    /// Exits the thread.
    pub fn ret(&self) {
        self.edit(crate::body::Body::ret);
    }
}

/// Barriers.
impl KernelBuilder {
    /// Waits for all threads of the block (`bar.sync 0`); warps must be converged.
    pub fn sync(&self) {
        self.emit(Opcode::new("bar.sync"), [Operand::u32(0).into()]);
    }

    /// Arrives at named barrier `id` (1 to 15), and waits until `threads` threads, a multiple of
    /// 32, have arrived (`bar.sync`); warps must be converged.
    pub fn sync_named(&self, id: impl ToOperand<u32>, threads: u32) {
        let args = [id.operand().into(), Operand::u32(threads).into()];
        self.emit(Opcode::new("bar.sync"), args);
    }

    /// Arrives at named barrier `id` (1 to 15), for which `threads` threads are expected, without
    /// waiting (`bar.arrive`).
    pub fn arrive(&self, id: impl ToOperand<u32>, threads: u32) {
        let args = [id.operand().into(), Operand::u32(threads).into()];
        self.emit(Opcode::new("bar.arrive"), args);
    }

    /// Waits for all threads of the warp.
    pub fn sync_warp(&self) {
        self.emit(Opcode::new("bar.warp.sync"), [Operand::u32(FULL_MASK).into()]);
    }
}

/// Warp shuffles; all lanes must be active.
impl KernelBuilder {
    /// Returns the 32-bit value of another lane: `mode` is `idx`, `up`, `down` or `bfly`,
    /// and `by` the lane, offset or XOR mask.
    #[must_use]
    pub fn shuffle<'k, T: Element>(
        &'k self,
        mode: &str,
        value: Val<'k, T>,
        by: impl ToOperand<u32>,
    ) -> Val<'k, T> {
        let clamp = if mode == "up" { 0 } else { 31 };
        let operands =
            [value.operand(), by.operand(), Operand::u32(clamp), Operand::u32(FULL_MASK)];
        self.op(Opcode::new("shfl.sync").with(mode).with("b32"), &operands)
    }

    /// Combines the values of each group of `width` consecutive lanes, a power of two; each lane
    /// receives the result of its group. `combine` must be associative and commutative.
    #[must_use]
    pub fn reduce_warp<'k, T: Element>(
        &'k self,
        value: Val<'k, T>,
        width: u32,
        combine: impl Fn(Val<'k, T>, Val<'k, T>) -> Val<'k, T>,
    ) -> Val<'k, T> {
        let mut result = value;
        let mut distance = width / 2;
        while distance > 0 {
            result = combine(result, self.shuffle("bfly", result, distance));
            distance /= 2;
        }
        result
    }

    /// Returns the maximum over the warp of a number that is non-negative, and not -0, in all
    /// lanes. From `sm_80` on this is one `redux.sync`: the bits of such floats have the same order
    /// as integers. There NaN is the maximum; older targets ignore it.
    #[must_use]
    pub fn max_non_negative_of_warp<'k>(&'k self, value: Val<'k, f32>) -> Val<'k, f32> {
        if !self.target().has(80) {
            return self.reduce_warp(value, 32, |a, b| a.max(b));
        }
        let bits = value.cast::<u32>().operand();
        let opcode = Opcode::new("redux.sync.max.u32");
        self.op::<u32>(opcode, &[bits, Operand::u32(FULL_MASK)]).cast()
    }

    /// Returns true in one lane of the warp, always the same one (`elect.sync`, `sm_90`). All lanes
    /// must be active.
    #[must_use]
    pub fn elect_one(&self) -> Val<'_, bool> {
        let pred = self.edit(|body| {
            body.require(8, 0);
            body.reg(PtxType::Pred)
        });
        let lane = asm::Arg::Pair(None, pred);
        self.emit(Opcode::new("elect.sync"), [lane, Operand::u32(FULL_MASK).into()]);
        self.wrap(pred)
    }
}
