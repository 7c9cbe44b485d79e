//! Cancellation polls in loops that are not proven to terminate, and between workgroups.

use scry_ir::GridSource;

use super::{Lowering, Param};
use crate::asm::{Address, Arg, Label, Opcode};
use crate::types::{Operand, PtxType, Reg};

/// Iterations of a thread between reads of the clock, a power of two.
const POLL_PERIOD: u32 = 64;

/// Minimum ticks of the clock between two polls of a warp in loops: about 17 ms. Iterations are no
/// measure of time: one may need nanoseconds, or wait for all other threads.
const POLL_TICKS: u32 = 1 << 25;

/// Ticks of the clock between the first polls of two warps on consecutive multiprocessors. Polls
/// read host memory and are serialised, at about one per microsecond.
const STAGGER_TICKS: u32 = 1 << 11;

/// Maximum multiprocessors of a device: with 64 warps each, the first polls of all resident warps
/// fill one period.
const MAX_MULTIPROCESSORS: u32 = 1 << 8;

/// Ticks of the clock per warp between the polls of two blocks that loop over workgroups. If all
/// warps polled at once, a launch would need milliseconds more. A device holds thousands of warps,
/// so that each of them polls a few times a second.
const WARP_TICKS: u32 = 1 << 16;

/// The poll schedule of a warp that loops over workgroups.
#[derive(Clone, Copy)]
pub(super) struct PollSchedule {
    /// The clock at the last poll.
    polled_at: Reg,
    /// Ticks between polls.
    period: Reg,
}

/// The registers of the cancellation poll.
#[derive(Clone, Copy)]
pub(super) struct Poll {
    /// Iterations so far, over all loops that may not terminate.
    iterations: Reg,
    /// The clock at the last poll.
    polled_at: Reg,
    /// The index of this launch.
    epoch: Reg,
    /// The address of the last cancelled launch's index.
    cancelled_epoch: Reg,
}

impl Lowering<'_> {
    /// Sets up the poll if the kernel has loops that may not terminate, or loops over workgroups.
    pub(super) fn cancellation_poll_entry(&mut self) {
        let loops_over_workgroups = self.options.grid == GridSource::Counts;
        if !self.options.poll_cancellation
            || !(loops_over_workgroups || super::control::may_not_terminate(&self.kir.body))
        {
            return;
        }
        let epoch = self.pointer_param(Param::Epoch);
        let epoch = self.read(epoch, "ld.volatile.global.u64");
        let cancelled_epoch = self.pointer_param(Param::CancelledEpoch);
        let iterations = self.b.copy(PtxType::U32, Operand::u32(0));
        let polled_at = self.initial_polled_at();
        self.entry.poll = Some(Poll { iterations, polled_at, epoch, cancelled_epoch });
    }

    /// Returns the initial `polled_at` in loops: the earliest time of a warp's first poll, minus
    /// the period. First polls are staggered over the resident warps. So short loops rarely poll,
    /// and a launch of few warps is cancelled sooner.
    fn initial_polled_at(&mut self) -> Reg {
        let (warp, processor) = (self.b.special("%warpid"), self.b.special("%smid"));
        let warps = [warp.into(), Operand::u32(MAX_MULTIPROCESSORS), processor.into()];
        let slot = self.b.typed("mad.lo", PtxType::U32, &warps);
        let now = self.clock();
        let ticks = Operand::u32(STAGGER_TICKS);
        let first = self.b.typed("mad.lo", PtxType::U32, &[slot.into(), ticks, now.into()]);
        self.b.typed("sub", PtxType::U32, &[first.into(), Operand::u32(POLL_TICKS)])
    }

    /// Reads the low half of the multiprocessor's clock.
    fn clock(&mut self) -> Reg {
        let now = self.b.reg(PtxType::U32);
        self.b.emit(Opcode::new("mov.u32"), vec![now.into(), "%clock".into()]);
        now
    }

    fn read(&mut self, address: Reg, opcode: &str) -> Reg {
        let result = self.b.reg(PtxType::U64);
        let args: Vec<Arg> = vec![result.into(), Address::reg(address, 0).into()];
        self.b.emit(Opcode::new(opcode), args);
        result
    }

    /// Emits a poll at the end of an iteration: branches to `top` if none is due, exits the thread
    /// if its launch is cancelled, and otherwise falls through.
    pub(super) fn poll(&mut self, top: Label) {
        let Some(Poll { iterations, polled_at, epoch, cancelled_epoch }) = self.entry.poll else {
            return;
        };
        let operands = [iterations.into(), Operand::u32(1)];
        self.b.op_into(iterations, Opcode::new("add.u32"), &operands);
        let phase =
            self.b.typed("and", PtxType::B32, &[iterations.into(), Operand::u32(POLL_PERIOD - 1)]);
        let is_not_due = self.b.compare("ne", PtxType::U32, phase.into(), Operand::u32(0));
        self.b.branch_if(is_not_due, top);
        self.cancellation_poll_if_due(
            (polled_at, Operand::u32(POLL_TICKS)),
            (epoch, cancelled_epoch),
            top,
        );
    }

    /// Computes the poll schedule of a kernel that loops over workgroups. All warps of a block poll
    /// at about the same time. The polls of the blocks are evenly spread, so that they cost a few
    /// percent of the time.
    pub(super) fn cancellation_poll_schedule(&mut self) -> Option<PollSchedule> {
        self.entry.poll?;
        let ticks = Operand::u32(WARP_TICKS * self.thread_count().div_ceil(32));
        let (block, blocks) = (self.b.special("%ctaid.x"), self.b.special("%nctaid.x"));
        let period = self.b.typed("mul.lo", PtxType::U32, &[blocks.into(), ticks]);
        let now = self.clock();
        let first = self.b.typed("mad.lo", PtxType::U32, &[block.into(), ticks, now.into()]);
        let polled_at = self.b.typed("sub", PtxType::U32, &[first.into(), period.into()]);
        Some(PollSchedule { polled_at, period })
    }

    /// Emits a poll at the end of a workgroup: branches to `top`, the next workgroup, if none is
    /// due, exits the thread if its launch is cancelled, and otherwise falls through.
    pub(super) fn cancellation_poll_at(&mut self, schedule: Option<PollSchedule>, top: Label) {
        if let (Some(PollSchedule { polled_at, period }), Some(poll)) = (schedule, self.entry.poll)
        {
            self.cancellation_poll_if_due(
                (polled_at, period.into()),
                (poll.epoch, poll.cancelled_epoch),
                top,
            );
        }
    }

    /// Emits a poll that is due if this many ticks have passed since the last one; branches to
    /// `top` if it is not due.
    fn cancellation_poll_if_due(
        &mut self,
        (polled_at, ticks): (Reg, Operand),
        (epoch, cancelled_epoch): (Reg, Reg),
        top: Label,
    ) {
        let now = self.clock();
        let passed = self.b.typed("sub", PtxType::U32, &[now.into(), polled_at.into()]);
        let is_early = self.b.compare("lt", PtxType::U32, passed.into(), ticks);
        self.b.branch_if(is_early, top);
        self.b.assign(polled_at, now.into());
        let last_cancelled = self.read(cancelled_epoch, "ld.volatile.global.u64");
        let is_cancelled = self.b.compare("le", PtxType::U64, epoch.into(), last_cancelled.into());
        self.b.ret_if(is_cancelled);
    }
}
