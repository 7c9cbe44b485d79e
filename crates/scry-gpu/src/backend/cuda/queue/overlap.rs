//! Which commands may overlap, and whether it pays to let them.
//!
//! Barriers cut steps into segments. What is in one segment may overlap: it can be spread over
//! several streams, which are forked off the main one by an event and joined to it by events.

use crate::core::command::{Command, Dispatch, Groups, Span, Step};

/// Streams that share the commands of a segment that is spread: the main one, and those at its
/// side.
pub(crate) const LANES: usize = 4;

/// Dispatches with room beside them from which on a segment is always spread. To fork and to join
/// takes the host about ten short calls, half as many as it takes to launch so many kernels.
const SPREAD: usize = 8;

/// As many if the device is behind with earlier work: then the host's time is free.
const SPREAD_BEHIND: usize = 2;

/// A dispatch has room beside it if its threads are at most one in so many of those that the device
/// holds at once. The rest of a device is soon too little to be worth a fork.
const ROOM: u64 = 2;

/// The steps between barriers.
pub(crate) fn segments(steps: &[Step]) -> impl Iterator<Item = &[Step]> {
    steps.split(|step| matches!(step, Step::Barrier(_))).filter(|segment| !segment.is_empty())
}

/// The commands of a segment.
pub(crate) fn commands(segment: &[Step]) -> impl Iterator<Item = &Command> {
    segment.iter().filter_map(|step| match step {
        Step::Run(command) => Some(command),
        Step::Barrier(_) => None,
    })
}

/// The launches among steps.
pub(crate) fn dispatches(steps: &[Step]) -> impl Iterator<Item = &Dispatch> {
    commands(steps).filter_map(|command| match command {
        Command::Dispatch(dispatch) => Some(dispatch),
        Command::Fill { .. } | Command::Copy { .. } => None,
    })
}

/// Whether a launch may begin while the one just before it still runs, if it waits itself for that
/// one to be done before it touches anything but the bindings that it reads `early`.
///
/// Why that is right: a launch begins when the one before has ended, or each block of it has let
/// the next one begin or has ended. Kernels let the next one begin only after they have waited
/// themselves, and blocks do not end before. So when a launch begins, all that came before the one
/// before it is done and can be seen: it runs beside that one alone, and what it reads early is
/// safe unless that one writes there. All else it reads and writes after it has waited, when the
/// one before is done, and what that wrote can be seen. A kernel that does not wait itself follows
/// everything, as ever; who comes after it begins at the earliest when each of its blocks has
/// ended. Whoever waits for a launch to be done knows that all before is, since no launch is done
/// before it has waited.
///
/// A command that is no launch, a product by cuBLAS, the end of a submission, several launches
/// before one, and what is timed keep all order.
pub(crate) fn begins_early(early: &[usize], dispatch: &Dispatch, before: &Dispatch) -> bool {
    let mut read = early.iter().filter_map(|at| dispatch.bindings.get(*at)).map(|it| it.span);
    !read.any(|read| before.bindings.iter().any(|bound| bound.writes && overlap(bound.span, read)))
}

/// Whether two spans share a byte.
fn overlap(a: Span, b: Span) -> bool {
    a.memory == b.memory && a.offset < b.end() && b.offset < a.end()
}

/// The launch that a segment consists of, if it is nothing else.
pub(crate) fn lone_dispatch(segment: &[Step]) -> Option<&Dispatch> {
    match segment {
        [Step::Run(Command::Dispatch(dispatch))] => Some(dispatch),
        _ => None,
    }
}

/// How work is spread on a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Threads that the device holds at once.
    pub(crate) threads: u64,
}

impl Plan {
    /// Over how many streams a segment is spread, up to [`LANES`]. `workgroup` gives the threads of
    /// a workgroup of a dispatch; `is_behind` says whether the device has earlier work to do.
    pub(crate) fn lanes(
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
        let groups = match dispatch.groups {
            Groups::Direct(groups) => {
                groups.map(u64::from).into_iter().fold(1, u64::saturating_mul)
            }
            // As many as the device holds.
            Groups::Indirect(_) => u64::MAX,
        };
        groups.saturating_mul(workgroup).saturating_mul(ROOM) <= self.threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::command::{Barrier, Bound, Role, Stages};
    use crate::core::driver::{KernelId, MemoryId};
    use crate::core::id::Slots;

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
        let groups = Groups::Direct([1, groups, 1]);
        let (bindings, immediates) = (Vec::new(), Vec::new());
        let dispatch =
            Dispatch { kernel: kernel(), bindings, groups, immediates, role: Role::Launch };
        Step::Run(Command::Dispatch(dispatch))
    }

    fn fill() -> Step {
        let dst = Span { memory: memory(), offset: 0, size: 4 };
        Step::Run(Command::Fill { dst, pattern: 0 })
    }

    /// A launch with these bindings: memory, first byte, bytes, and whether it writes them.
    fn launch(bindings: &[(MemoryId, u64, u64, bool)]) -> Dispatch {
        let bound = |&(memory, offset, size, writes): &(MemoryId, u64, u64, bool)| Bound {
            span: Span { memory, offset, size },
            writes,
        };
        let bindings = bindings.iter().map(bound).collect();
        let (groups, immediates) = (Groups::Direct([1; 3]), Vec::new());
        Dispatch { kernel: kernel(), bindings, groups, immediates, role: Role::Launch }
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
    fn a_launch_begins_early_unless_the_one_before_writes_what_it_reads_early() {
        let mut slots = Slots::default();
        let [w, x, y] = [(); 3].map(|()| slots.insert(()));
        let after = |before: &[(MemoryId, u64, u64, bool)], early: &[usize]| {
            // Weights, activations, results.
            let dispatch = launch(&[(w, 64, 64, false), (x, 0, 64, false), (y, 0, 64, true)]);
            begins_early(early, &dispatch, &launch(before))
        };
        // The weights are written, all or one byte of them.
        assert!(!after(&[(w, 0, 256, true)], &[0]));
        assert!(!after(&[(x, 0, 4, false), (w, 127, 1, true)], &[0]));
        assert!(!after(&[(w, 0, 65, true)], &[0]));
        // They are read, or what lies beside them is written.
        assert!(after(&[(w, 64, 64, false), (y, 0, 64, true)], &[0]));
        assert!(after(&[(w, 0, 64, true), (w, 128, 64, true)], &[0]));
        // The activations are written, and the results, which are touched after the wait.
        assert!(after(&[(x, 0, 64, true), (y, 0, 64, true)], &[0]));
        assert!(!after(&[(x, 0, 64, true)], &[0, 1]));
        assert!(after(&[(w, 64, 64, true), (x, 0, 64, true)], &[]));
    }

    #[test]
    fn only_a_launch_that_stands_alone_can_be_followed_early() {
        let lone = |steps: &[Step]| {
            segments(steps).map(|segment| lone_dispatch(segment).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(lone(&[run(1), BARRIER, run(2)]), [true, true]);
        assert_eq!(lone(&[run(1), BARRIER, fill(), BARRIER, run(2)]), [true, false, true]);
        assert_eq!(lone(&[run(1), run(2), BARRIER, run(3), fill()]), [false, false]);
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
    fn indirect_launches_have_no_room_beside_them() {
        let counts = Span { memory: memory(), offset: 0, size: Groups::SIZE };
        let Step::Run(Command::Dispatch(direct)) = run(1) else { unreachable!() };
        let indirect = Dispatch { groups: Groups::Indirect(Box::new(counts)), ..direct };
        let indirect = Step::Run(Command::Dispatch(indirect));
        assert_eq!(lanes(&vec![indirect.clone(); 100]), (1, 1));
        assert_eq!(lanes(&[indirect, run(1), run(1)]), (1, 2));
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
