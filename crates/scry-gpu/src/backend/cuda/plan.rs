//! Which commands may overlap, and whether it pays to let them.
//!
//! Barriers cut steps into segments. What is in one segment may overlap: it can be spread over
//! several streams, which are forked off the main one by an event and joined to it by events.

use crate::command::{Command, Dispatch, Step};

/// Streams that share the commands of a segment that is spread: the main one, and those at its
/// side.
pub(super) const LANES: usize = 4;

/// Dispatches with room beside them from which on a segment is always spread. To fork and to join
/// takes the host about ten short calls, half as many as it takes to launch so many kernels.
const SPREAD: usize = 8;

/// As many if the device is behind with earlier work: then the host's time is free.
const SPREAD_BEHIND: usize = 2;

/// A dispatch has room beside it if its threads are at most one in so many of those that the device
/// holds at once. The rest of a device is soon too little to be worth a fork.
const ROOM: u64 = 2;

/// The steps between barriers.
pub(super) fn segments(steps: &[Step]) -> impl Iterator<Item = &[Step]> {
    steps.split(|step| matches!(step, Step::Barrier(_))).filter(|segment| !segment.is_empty())
}

/// The commands of a segment.
pub(super) fn commands(segment: &[Step]) -> impl Iterator<Item = &Command> {
    segment.iter().filter_map(|step| match step {
        Step::Run(command) => Some(command),
        Step::Barrier(_) => None,
    })
}

/// The launches among steps.
pub(super) fn dispatches(steps: &[Step]) -> impl Iterator<Item = &Dispatch> {
    commands(steps).filter_map(|command| match command {
        Command::Dispatch(dispatch) => Some(dispatch),
        Command::Fill { .. } | Command::Copy { .. } => None,
    })
}

/// How work is spread on a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Threads that the device holds at once.
    pub(super) threads: u64,
}

impl Plan {
    /// Over how many streams a segment is spread, up to [`LANES`]. `workgroup` gives the threads of
    /// a workgroup of a dispatch; `is_behind` says whether the device has earlier work to do.
    pub(super) fn lanes(
        &self,
        segment: &[Step],
        workgroup: impl Fn(&Dispatch) -> u64,
        is_behind: impl FnOnce() -> bool,
    ) -> usize {
        if segment.len() < SPREAD_BEHIND {
            return 1;
        }
        let with_room = dispatches(segment).filter(|of| self.has_room(of, workgroup(of)));
        let count = with_room.take(SPREAD).count();
        match count >= SPREAD || count >= SPREAD_BEHIND && is_behind() {
            true => count.min(LANES),
            false => 1,
        }
    }

    fn has_room(&self, dispatch: &Dispatch, workgroup: u64) -> bool {
        let groups = dispatch.groups.iter().map(|n| u64::from(*n)).fold(1, u64::saturating_mul);
        groups.saturating_mul(workgroup).saturating_mul(ROOM) <= self.threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Barrier, Span, Stages};
    use crate::driver::{KernelId, MemoryId};
    use crate::id::Slots;

    const PLAN: Plan = Plan { threads: 1024 };
    const BARRIER: Step =
        Step::Barrier(Barrier { before: Stages::COMPUTE, after: Stages::COMPUTE });

    fn kernel() -> KernelId {
        Slots::default().insert(())
    }

    fn memory() -> MemoryId {
        Slots::default().insert(())
    }

    /// A launch of so many workgroups.
    fn run(groups: u32) -> Step {
        let groups = [1, groups, 1];
        let (bindings, immediates) = (Vec::new(), Vec::new());
        let dispatch = Dispatch { kernel: kernel(), bindings, groups, immediates, copies: false };
        Step::Run(Command::Dispatch(dispatch))
    }

    fn fill() -> Step {
        let dst = Span { memory: memory(), offset: 0, size: 4 };
        Step::Run(Command::Fill { dst, pattern: 0 })
    }

    /// Lanes on a device that is idle, and on one that is behind, for workgroups of 64 threads.
    fn lanes(segment: &[Step]) -> (usize, usize) {
        let of = |is_behind| PLAN.lanes(segment, |_| 64, || is_behind);
        (of(false), of(true))
    }

    #[test]
    fn barriers_cut_steps_and_nothing_is_lost_between_them() {
        let lengths = |steps: &[Step]| segments(steps).map(<[Step]>::len).collect::<Vec<_>>();
        assert_eq!(lengths(&[]), [0; 0]);
        assert_eq!(lengths(&[BARRIER, BARRIER]), [0; 0]);
        assert_eq!(lengths(&[run(1), fill(), run(2)]), [3]);
        let steps = [BARRIER, run(1), BARRIER, BARRIER, fill(), run(3), BARRIER, run(4), BARRIER];
        assert_eq!(lengths(&steps), [1, 2, 1]);
        let kept: Vec<&Step> = segments(&steps).flatten().collect();
        let commands: Vec<&Step> = steps.iter().filter(|step| **step != BARRIER).collect();
        assert_eq!(kept, commands, "in order");
        assert_eq!(dispatches(&steps).count(), 3);
        assert_eq!(super::commands(&steps).count(), 4);
    }

    #[test]
    fn a_chain_is_never_spread() {
        assert_eq!(lanes(&[run(1)]), (1, 1));
        assert_eq!(lanes(&[]), (1, 1));
    }

    #[test]
    fn many_small_dispatches_are_spread_and_few_only_where_the_host_has_time() {
        let small = |count| lanes(&vec![run(1); count]);
        assert_eq!(small(2), (1, 2));
        assert_eq!(small(3), (1, 3));
        assert_eq!(small(7), (1, LANES));
        assert_eq!(small(8), (LANES, LANES));
        assert_eq!(small(5000), (LANES, LANES));
    }

    #[test]
    fn what_fills_the_device_is_not_spread() {
        // 8 workgroups of 64 threads are half of what it holds.
        assert_eq!(lanes(&vec![run(8); 100]), (LANES, LANES));
        assert_eq!(lanes(&vec![run(9); 100]), (1, 1));
        assert_eq!(lanes(&vec![run(u32::MAX); 100]), (1, 1));
        // Among large ones there are small ones.
        assert_eq!(lanes(&[run(99), run(1), run(99), run(2)]), (1, 2));
    }

    #[test]
    fn transfers_alone_are_not_spread() {
        assert_eq!(lanes(&vec![fill(); 100]), (1, 1));
        assert_eq!(lanes(&[fill(), run(1), fill()]), (1, 1));
    }

    #[test]
    fn the_device_is_asked_only_if_it_matters() {
        let never = || panic!("it does not matter");
        assert_eq!(PLAN.lanes(&vec![run(1); 8], |_| 64, never), LANES);
        assert_eq!(PLAN.lanes(&[run(1), fill()], |_| 64, never), 1);
    }
}
