//! Cancellation polls in loops that are not proven to terminate, and between workgroups.
//!
//! The host writes the last cancelled launch to its own memory, and reads of that are serialised:
//! they take about a microsecond each. Threads of a warp that diverged in a loop poll one by one,
//! so that a device may have a hundred thousand pollers. Therefore the device polls host memory for
//! all of them, once in [`HOST_POLL_NANOSECONDS`]: the first thread for which that is due; the
//! others read what it has found.

use scry_ir::GridSource;

use super::{Lowering, Param};
use crate::asm::{Address, Arg, Label, Opcode};
use crate::types::{Operand, PtxType, Reg};

/// Iterations of a thread between reads of the clock, a power of two.
const POLL_PERIOD: u32 = 64;

/// Minimum ticks of the clock between two polls of a thread in loops: about 17 ms. Iterations are
/// no measure of time: one may need nanoseconds, or wait for all other threads.
const POLL_TICKS: u32 = 1 << 25;

/// Minimum time between two reads of host memory by a device.
const HOST_POLL_NANOSECONDS: u64 = 1 << 18;

/// Bytes from the index of the current launch to the time of the last read of host memory.
const POLLED_AT: i64 = 8;

/// Bytes from there to the last cancelled launch, as read then.
const FOUND: i64 = 16;

/// Ticks of the clock between the first polls of two warps on consecutive multiprocessors.
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
    launch: PolledLaunch,
}

/// The registers that tell whether the launch is cancelled.
#[derive(Clone, Copy)]
struct PolledLaunch {
    /// The index of this launch.
    epoch: Reg,
    /// The address of this index, in device memory, and of what [`POLLED_AT`] and [`FOUND`] tell.
    device: Reg,
    /// The address of the last cancelled launch's index, in host memory.
    host: Reg,
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
        let device = self.pointer_param(Param::Epoch);
        let epoch = self.read(device, 0);
        let host = self.pointer_param(Param::CancelledEpoch);
        let iterations = self.b.copy(PtxType::U32, Operand::u32(0));
        let polled_at = self.initial_polled_at();
        let launch = PolledLaunch { epoch, device, host };
        self.entry.poll = Some(Poll { iterations, polled_at, launch });
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

    /// Reads a number that others write.
    fn read(&mut self, address: Reg, offset: i64) -> Reg {
        let result = self.b.reg(PtxType::U64);
        let args: Vec<Arg> = vec![result.into(), Address::reg(address, offset).into()];
        self.b.emit(Opcode::new("ld.volatile.global.u64"), args);
        result
    }

    /// Emits a poll at the end of an iteration: branches to `top` if none is due, exits the thread
    /// if its launch is cancelled, and otherwise falls through.
    pub(super) fn poll(&mut self, top: Label) {
        let Some(Poll { iterations, polled_at, launch }) = self.entry.poll else { return };
        let operands = [iterations.into(), Operand::u32(1)];
        self.b.op_into(iterations, Opcode::new("add.u32"), &operands);
        let phase =
            self.b.typed("and", PtxType::B32, &[iterations.into(), Operand::u32(POLL_PERIOD - 1)]);
        let is_not_due = self.b.compare("ne", PtxType::U32, phase.into(), Operand::u32(0));
        self.b.branch_if(is_not_due, top);
        self.cancellation_poll_if_due((polled_at, Operand::u32(POLL_TICKS)), launch, top);
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
            self.cancellation_poll_if_due((polled_at, period.into()), poll.launch, top);
        }
    }

    /// Emits a poll that is due if this many ticks have passed since the last one; branches to
    /// `top` if it is not due.
    fn cancellation_poll_if_due(
        &mut self,
        (polled_at, ticks): (Reg, Operand),
        launch: PolledLaunch,
        top: Label,
    ) {
        let now = self.clock();
        let passed = self.b.typed("sub", PtxType::U32, &[now.into(), polled_at.into()]);
        let is_early = self.b.compare("lt", PtxType::U32, passed.into(), ticks);
        self.b.branch_if(is_early, top);
        self.b.assign(polled_at, now.into());
        let found = self.read(launch.device, FOUND);
        let is_cancelled = self.b.compare("le", PtxType::U64, launch.epoch.into(), found.into());
        self.b.ret_if(is_cancelled);
        self.read_host_if_due(launch, top);
    }

    /// Reads host memory if that is due, and this is the first thread of the device to find so;
    /// branches to `top` if it is not due. Threads exit at their next poll, so that converged ones
    /// exit together.
    fn read_host_if_due(&mut self, launch: PolledLaunch, top: Label) {
        let last = self.read(launch.device, POLLED_AT);
        let now = self.b.reg(PtxType::U64);
        self.b.emit(Opcode::new("mov.u64"), vec![now.into(), "%globaltimer".into()]);
        let passed = self.b.typed("sub", PtxType::S64, &[now.into(), last.into()]);
        // Signed: another thread may have read the timer later.
        let period = Operand::u64(HOST_POLL_NANOSECONDS);
        let is_early = self.b.compare("lt", PtxType::S64, passed.into(), period);
        self.b.branch_if(is_early, top);
        let seen = self.b.reg(PtxType::U64);
        let at = |offset| Address::reg(launch.device, offset).into();
        let args = vec![seen.into(), at(POLLED_AT), last.into(), now.into()];
        self.b.emit(Opcode::new("atom.relaxed.gpu.global.cas.b64"), args);
        // By guards, since branches would let the threads of a warp diverge.
        let is_first = self.b.compare("eq", PtxType::U64, seen.into(), last.into());
        let found = self.b.copy(PtxType::U64, Operand::u64(0));
        let args = vec![found.into(), Address::reg(launch.host, 0).into()];
        self.b.emit_if(is_first, true, Opcode::new("ld.volatile.global.u64"), args);
        let args = vec![at(FOUND), found.into()];
        self.b.emit_if(is_first, true, Opcode::new("st.volatile.global.u64"), args);
    }
}
