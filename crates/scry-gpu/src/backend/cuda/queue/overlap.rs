//! Decides which commands overlap: those that may, where that is worth its cost.
//!
//! Barriers divide steps into segments. The commands of a segment may overlap: they can be
//! distributed over several streams, which fork off the main stream by an event and join it by
//! events. Collectives beside other commands have a stream of their own. Launches of consecutive
//! segments may overlap by programmatic dependent launch (PDL).

use crate::core::command::{BufferRange, Command, Dispatch, Groups, Role, Step};

/// Maximum number of streams that share the commands of a segment, including the main stream.
pub(crate) const MAX_STREAMS: usize = 4;

/// Minimum number of small dispatches for which a segment is always distributed. Fork and join cost
/// the host about ten short calls, half the cost of launching this many kernels.
const MIN_DISPATCHES: usize = 8;

/// As [`MIN_DISPATCHES`], while the device is busy with earlier work: host time costs nothing then.
const MIN_DISPATCHES_BUSY: usize = 2;

/// A dispatch is small if it has at most this fraction (1/n) of the threads resident on the device.
/// Larger ones leave too little of the device idle.
const SMALL_FRACTION: u64 = 2;

/// Splits steps at the barriers.
pub(crate) fn segments(steps: &[Step]) -> impl Iterator<Item = &[Step]> {
    steps.split(|step| matches!(step, Step::Barrier(_))).filter(|segment| !segment.is_empty())
}

/// Returns the commands of a segment.
pub(crate) fn commands(segment: &[Step]) -> impl Iterator<Item = &Command> {
    segment.iter().filter_map(|step| match step {
        Step::Run(command) => Some(command),
        Step::Barrier(_) => None,
    })
}

/// Returns the dispatches among steps.
pub(crate) fn dispatches(steps: &[Step]) -> impl Iterator<Item = &Dispatch> {
    commands(steps).filter_map(|command| match command {
        Command::Dispatch(dispatch) => Some(dispatch),
        Command::Fill { .. } | Command::Copy { .. } => None,
    })
}

/// Returns whether a command is a collective.
pub(crate) fn is_collective(command: &Command) -> bool {
    matches!(command, Command::Dispatch(dispatch) if dispatch.role == Role::Collective)
}

/// Returns whether a segment has a collective that other commands can overlap. It mostly moves data
/// between devices. Indirect launches are excluded: like collectives, they need all their blocks to
/// be resident.
pub(crate) fn has_collective_and_others(segment: &[Step]) -> bool {
    let collectives = commands(segment).filter(|command| is_collective(command)).count();
    let has_others = collectives > 0 && collectives < segment.len();
    has_others && !dispatches(segment).any(Dispatch::is_indirect)
}

/// Returns whether a launch may start before the previous one has finished (PDL), given that its
/// kernel executes `griddepcontrol.wait` before it accesses anything but the bindings
/// `pdl_reads`.
///
/// Proof: a launch starts when each block of the previous one has executed
/// `griddepcontrol.launch_dependents` or has ended. Kernels launch dependents only after their own
/// `griddepcontrol.wait`, and no block ends before it. So when a launch starts, everything before
/// its predecessor is complete and visible: it overlaps only its predecessor, and early reads are
/// safe unless the predecessor writes there. All other accesses come after the wait, when the
/// predecessor's writes are visible. A kernel without PDL runs after everything before it, and its
/// dependents start at the earliest when each of its blocks has ended. When a launch is complete so
/// is everything before it, because no launch completes before it has waited.
///
/// Everything else is fully ordered: commands that are not launches, cuBLAS products, ends of
/// submissions, timed work, segments on several streams and, in graphs, launches that follow a
/// segment of several commands.
pub(crate) fn uses_pdl(pdl_reads: &[usize], dispatch: &Dispatch, before: &Dispatch) -> bool {
    let reads = pdl_reads.iter().filter_map(|index| dispatch.bindings.get(*index));
    let is_written =
        |read| before.bindings.iter().any(|bound| bound.writes && overlap(bound.range, read));
    !reads.map(|bound| bound.range).any(is_written)
}

/// Returns whether two ranges share a byte.
fn overlap(a: BufferRange, b: BufferRange) -> bool {
    a.memory == b.memory && a.offset < b.end() && b.offset < a.end()
}

/// Returns the dispatch if the segment consists of a single one.
pub(crate) fn lone_dispatch(segment: &[Step]) -> Option<&Dispatch> {
    match segment {
        [Step::Run(Command::Dispatch(dispatch))] => Some(dispatch),
        _ => None,
    }
}

/// How segments are distributed on a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Distribution {
    /// Maximum number of threads that are resident on the device at once.
    pub(crate) resident_threads: u64,
}

impl Distribution {
    /// Returns the number of streams, up to [`MAX_STREAMS`], to distribute a segment over.
    /// `block_threads` returns the number of threads in a block of a dispatch; `is_busy`
    /// whether the device is busy with earlier work.
    pub(crate) fn stream_count(
        &self,
        segment: &[Step],
        block_threads: impl Fn(&Dispatch) -> u64,
        is_busy: impl FnOnce() -> bool,
    ) -> usize {
        if segment.len() < MIN_DISPATCHES_BUSY {
            return 1;
        }
        let small = dispatches(segment).filter(|it| self.is_small(it, block_threads(it)));
        let count = small.take(MIN_DISPATCHES).count();
        match count >= MIN_DISPATCHES || count >= MIN_DISPATCHES_BUSY && is_busy() {
            true => count.min(MAX_STREAMS),
            false => 1,
        }
    }

    fn is_small(&self, dispatch: &Dispatch, block_threads: u64) -> bool {
        let blocks = match dispatch.groups {
            Groups::Direct(grid) => grid.map(u64::from).into_iter().fold(1, u64::saturating_mul),
            // Large: its grid has all blocks that can be resident.
            Groups::Indirect(_) => u64::MAX,
        };
        let threads = blocks.saturating_mul(block_threads);
        threads.saturating_mul(SMALL_FRACTION) <= self.resident_threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::command::{Barrier, BoundBuffer, Stages};
    use crate::core::driver::{KernelId, MemoryId};
    use crate::core::id::Slots;

    const DISTRIBUTION: Distribution = Distribution { resident_threads: 1024 };
    const BARRIER: Step =
        Step::Barrier(Barrier { before: Stages::COMPUTE, after: Stages::COMPUTE });

    fn kernel() -> KernelId {
        Slots::default().insert(())
    }

    fn memory() -> MemoryId {
        Slots::default().insert(())
    }

    /// Returns a launch of `blocks` blocks.
    fn run(blocks: u32) -> Step {
        let groups = Groups::Direct([1, blocks, 1]);
        let (bindings, immediates) = (Vec::new(), Vec::new());
        let dispatch =
            Dispatch { kernel: kernel(), bindings, groups, immediates, role: Role::Launch };
        Step::Run(Command::Dispatch(dispatch))
    }

    fn fill() -> Step {
        let dst = BufferRange { memory: memory(), offset: 0, size: 4 };
        Step::Run(Command::Fill { dst, pattern: 0 })
    }

    /// Returns a dispatch with these bindings: memory, first byte, number of bytes, and whether the
    /// kernel writes them.
    fn launch(bindings: &[(MemoryId, u64, u64, bool)]) -> Dispatch {
        let bound = |&(memory, offset, size, writes): &(MemoryId, u64, u64, bool)| BoundBuffer {
            range: BufferRange { memory, offset, size },
            writes,
        };
        let bindings = bindings.iter().map(bound).collect();
        let (groups, immediates) = (Groups::Direct([1; 3]), Vec::new());
        Dispatch { kernel: kernel(), bindings, groups, immediates, role: Role::Launch }
    }

    /// Returns the number of streams on an idle and on a busy device, for blocks of 64 threads.
    fn stream_counts(segment: &[Step]) -> (usize, usize) {
        let count = |is_busy| DISTRIBUTION.stream_count(segment, |_| 64, || is_busy);
        (count(false), count(true))
    }

    #[test]
    fn barriers_divide_steps_into_segments() {
        let lengths = |steps: &[Step]| segments(steps).map(<[Step]>::len).collect::<Vec<_>>();
        assert_eq!(lengths(&[]), [0; 0]);
        assert_eq!(lengths(&[BARRIER, BARRIER]), [0; 0]);
        assert_eq!(lengths(&[run(1), fill(), run(2)]), [3]);
        let steps = [BARRIER, run(1), BARRIER, BARRIER, fill(), run(3), BARRIER, run(4), BARRIER];
        assert_eq!(lengths(&steps), [1, 2, 1]);
        let in_segments: Vec<&Step> = segments(&steps).flatten().collect();
        let commands: Vec<&Step> = steps.iter().filter(|step| **step != BARRIER).collect();
        assert_eq!(in_segments, commands, "in order");
        assert_eq!(dispatches(&steps).count(), 3);
        assert_eq!(super::commands(&steps).count(), 4);
    }

    #[test]
    fn pdl_requires_disjoint_early_reads() {
        let mut slots = Slots::default();
        let [w, x, y] = [(); 3].map(|()| slots.insert(()));
        let uses_pdl_after = |before: &[(MemoryId, u64, u64, bool)], early: &[usize]| {
            // Weights, activations, results.
            let dispatch = launch(&[(w, 64, 64, false), (x, 0, 64, false), (y, 0, 64, true)]);
            uses_pdl(early, &dispatch, &launch(before))
        };
        // The predecessor writes the weights, all or one byte of them.
        assert!(!uses_pdl_after(&[(w, 0, 256, true)], &[0]));
        assert!(!uses_pdl_after(&[(x, 0, 4, false), (w, 127, 1, true)], &[0]));
        assert!(!uses_pdl_after(&[(w, 0, 65, true)], &[0]));
        // The predecessor reads them, or writes the bytes beside them.
        assert!(uses_pdl_after(&[(w, 64, 64, false), (y, 0, 64, true)], &[0]));
        assert!(uses_pdl_after(&[(w, 0, 64, true), (w, 128, 64, true)], &[0]));
        // The predecessor writes the activations and results, which are accessed after the wait.
        assert!(uses_pdl_after(&[(x, 0, 64, true), (y, 0, 64, true)], &[0]));
        assert!(!uses_pdl_after(&[(x, 0, 64, true)], &[0, 1]));
        assert!(uses_pdl_after(&[(w, 64, 64, true), (x, 0, 64, true)], &[]));
    }

    #[test]
    fn lone_dispatches_are_found() {
        let lone = |steps: &[Step]| {
            segments(steps).map(|segment| lone_dispatch(segment).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(lone(&[run(1), BARRIER, run(2)]), [true, true]);
        assert_eq!(lone(&[run(1), BARRIER, fill(), BARRIER, run(2)]), [true, false, true]);
        assert_eq!(lone(&[run(1), run(2), BARRIER, run(3), fill()]), [false, false]);
    }

    #[test]
    fn collectives_overlap_others_only() {
        let mut dispatch = launch(&[]);
        dispatch.role = Role::Collective;
        let collective = || Step::Run(Command::Dispatch(dispatch.clone()));
        assert!(has_collective_and_others(&[collective(), run(1)]));
        assert!(has_collective_and_others(&[fill(), collective(), collective()]));
        assert!(!has_collective_and_others(&[collective(), collective()]));
        assert!(!has_collective_and_others(&[run(1), fill()]));
    }

    #[test]
    fn chains_are_never_distributed() {
        assert_eq!(stream_counts(&[run(1)]), (1, 1));
        assert_eq!(stream_counts(&[]), (1, 1));
    }

    #[test]
    fn few_dispatches_distribute_only_when_busy() {
        let small = |count| stream_counts(&vec![run(1); count]);
        assert_eq!(small(2), (1, 2));
        assert_eq!(small(3), (1, 3));
        assert_eq!(small(7), (1, MAX_STREAMS));
        assert_eq!(small(8), (MAX_STREAMS, MAX_STREAMS));
        assert_eq!(small(5000), (MAX_STREAMS, MAX_STREAMS));
    }

    #[test]
    fn large_dispatches_are_not_distributed() {
        // 8 blocks of 64 threads are half of the resident threads.
        assert_eq!(stream_counts(&vec![run(8); 100]), (MAX_STREAMS, MAX_STREAMS));
        assert_eq!(stream_counts(&vec![run(9); 100]), (1, 1));
        assert_eq!(stream_counts(&vec![run(u32::MAX); 100]), (1, 1));
        // A mixture of large and small dispatches.
        assert_eq!(stream_counts(&[run(99), run(1), run(99), run(2)]), (1, 2));
    }

    #[test]
    fn indirect_launches_are_never_small() {
        let counts = BufferRange { memory: memory(), offset: 0, size: Groups::SIZE };
        let Step::Run(Command::Dispatch(direct)) = run(1) else { unreachable!() };
        let indirect = Dispatch { groups: Groups::Indirect(Box::new(counts)), ..direct };
        let indirect = Step::Run(Command::Dispatch(indirect));
        assert_eq!(stream_counts(&vec![indirect.clone(); 100]), (1, 1));
        assert_eq!(stream_counts(&[indirect, run(1), run(1)]), (1, 2));
    }

    #[test]
    fn transfers_alone_are_not_distributed() {
        assert_eq!(stream_counts(&vec![fill(); 100]), (1, 1));
        assert_eq!(stream_counts(&[fill(), run(1), fill()]), (1, 1));
    }

    #[test]
    fn queries_device_only_if_needed() {
        let never = || panic!("the device must not be queried");
        assert_eq!(DISTRIBUTION.stream_count(&vec![run(1); 8], |_| 64, never), MAX_STREAMS);
        assert_eq!(DISTRIBUTION.stream_count(&[run(1), fill()], |_| 64, never), 1);
    }
}
