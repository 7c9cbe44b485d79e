//! Indirect dispatch: kernels that read the number of workgroups from memory.
//!
//! CUDA has no indirect launch. This is a persistent grid with a grid-stride loop over workgroups:
//! the grid has as many blocks as are resident at once, and each block executes workgroups
//! `%ctaid.x`, `%ctaid.x + %nctaid.x` and so on. The loop contains the body of the kernel and the
//! zeroing of its memory. All blocks are resident, and each executes its workgroups in ascending
//! order. A workgroup may therefore wait for workgroups of lower index; on an ordinary grid this
//! works in practice, but is not guaranteed.

use scry_ir::kir::Label;

use super::entry::Used;
use super::{Lowering, Param};
use crate::asm::{Address, Opcode};
use crate::types::{Operand, PtxType, Reg, StateSpace};

/// The grid of an indirect launch.
struct Grid {
    /// Workgroups along x, y and z.
    groups: Vec<Reg>,
    /// The total number of workgroups.
    total: Reg,
}

impl Lowering<'_> {
    /// Emits the kernel as a loop over workgroups.
    pub(super) fn workgroup_loop(&mut self) {
        let used = Used::find(self.kir);
        self.pdl_entry();
        self.read_params(&used);
        let Grid { groups, total } = self.load_grid();
        let block = self.b.special("%ctaid.x");
        // The linear index of the current workgroup.
        let linear = self.b.copy(PtxType::U32, block.into());
        let is_idle = self.b.compare("ge", PtxType::U32, linear.into(), total.into());
        self.b.ret_if(is_idle);
        self.cancellation_poll_entry();
        let schedule = self.cancellation_poll_schedule();
        let (top, next) = (self.b.label(), self.b.label());
        // A `return` of the kernel only ends the current workgroup.
        self.ends[Label::KERNEL.0 as usize] = Some(next);
        self.b.place(top);
        self.workgroup_position(linear, &groups);
        self.compute_builtins(&used);
        self.initialise_memory();
        self.block(&self.kir.body);
        self.b.place(next);
        // Workgroup memory may still be in use by other threads; warps reconverge here.
        self.b.barrier();
        let stride = self.b.special("%nctaid.x");
        let remaining = self.b.typed("sub", PtxType::U32, &[total.into(), linear.into()]);
        let is_last = self.b.compare("le", PtxType::U32, remaining.into(), stride.into());
        self.b.ret_if(is_last);
        self.b.op_into(linear, Opcode::new("add.u32"), &[linear.into(), stride.into()]);
        self.cancellation_poll_at(schedule, top);
        self.b.branch(top);
    }

    /// Loads the workgroup counts. All threads return from the kernel if they are too large: the
    /// rule is that of [`scry_ir::runnable_workgroups`].
    fn load_grid(&mut self) -> Grid {
        let base = self.pointer_param(Param::WorkgroupCounts);
        let mut groups = Vec::with_capacity(3);
        for (axis, width) in (0..).zip(self.kir.workgroup_size) {
            let address = Address::reg(base, 4 * axis);
            let count = self.b.load(StateSpace::Global, PtxType::U32, address, 1, true)[0];
            if width > 1 {
                self.return_on_overflow(count, Operand::u32(width));
            }
            groups.push(count);
        }
        let [x, y, z] = [groups[0], groups[1], groups[2]].map(Operand::Reg);
        self.return_on_overflow(groups[0], y);
        let xy = self.b.typed("mul.lo", PtxType::U32, &[x, y]);
        self.return_on_overflow(xy, z);
        let total = self.b.typed("mul.lo", PtxType::U32, &[xy.into(), z]);
        Grid { groups, total }
    }

    /// Returns from the kernel if `a * b` overflows `u32`.
    fn return_on_overflow(&mut self, a: Reg, b: Operand) {
        let high = self.b.typed("mul.hi", PtxType::U32, &[a.into(), b]);
        let is_too_large = self.b.compare("ne", PtxType::U32, high.into(), Operand::u32(0));
        self.b.ret_if(is_too_large);
    }
}
