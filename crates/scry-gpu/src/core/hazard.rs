//! Hazard tracking: places barriers between conflicting commands, for all drivers.
//!
//! For each stage S that executes commands, [`Hazards`] records every access that is not yet
//! ordered before later commands in S. A command that conflicts with one of them gets a barrier
//! first. A barrier orders *everything* before it, so it clears the set of its stage. Two accesses
//! conflict if they share a byte and one of them writes.
//!
//! The sets persist across submissions, so ordering holds from one batch to the next on the same
//! queue.

use crate::core::command::{Barrier, BufferRange, Command, Stages, Step};
use crate::core::handles::MemoryId;

/// The stages that execute commands.
const EXECUTING: [Stages; 2] = [Stages::COMPUTE, Stages::TRANSFER];

/// The accesses that later commands may have to wait for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hazards {
    /// For each stage in [`EXECUTING`], the accesses not yet ordered before later commands there.
    unordered: [Unordered; 2],
}

/// Accesses that one stage has not yet waited for.
#[derive(Debug, Clone, Default)]
struct Unordered {
    reads: Ranges,
    writes: Ranges,
    /// The stages of these accesses.
    stages: Option<Stages>,
}

impl Hazards {
    /// Adds a command after all earlier ones. Returns the barrier to put before it, if it conflicts
    /// with any of them.
    pub(crate) fn add(&mut self, command: &Command) -> Option<Barrier> {
        let stage = command.stage();
        let barrier = self.barrier_before(command, stage);
        let [compute, transfer] = &mut self.unordered;
        command.for_each_access(|range, writes| {
            compute.record(range, writes, stage);
            transfer.record(range, writes, stage);
        });
        barrier
    }

    /// Becomes a copy of others; reuses its memory.
    pub(crate) fn copy_from(&mut self, others: &Self) {
        for (own, other) in self.unordered.iter_mut().zip(&others.unordered) {
            own.reads.copy_from(&other.reads);
            own.writes.copy_from(&other.writes);
            own.stages = other.stages;
        }
    }

    /// Returns a barrier that orders all earlier commands before all later ones.
    pub(crate) fn order_all(&mut self) -> Barrier {
        self.unordered.iter_mut().for_each(Unordered::clear);
        let all = Stages::COMPUTE | Stages::TRANSFER;
        Barrier { before: all, after: all }
    }

    /// Returns the commands as steps, each preceded by the barrier that it needs.
    pub(crate) fn schedule(&mut self, commands: impl IntoIterator<Item = Command>) -> Vec<Step> {
        let commands = commands.into_iter();
        // At most one barrier per command.
        let mut steps = Vec::with_capacity(2 * commands.size_hint().0);
        for command in commands {
            steps.extend(self.add(&command).map(Step::Barrier));
            steps.push(Step::Run(command));
        }
        steps
    }

    fn barrier_before(&mut self, command: &Command, stage: Stages) -> Option<Barrier> {
        let index =
            EXECUTING.iter().position(|s| *s == stage).expect("a command executes in one of these");
        let unordered = &mut self.unordered[index];
        let before = unordered.stages?;
        let mut conflict = false;
        command.for_each_access(|range, writes| conflict |= unordered.conflicts(range, writes));
        if !conflict {
            return None;
        }
        unordered.clear();
        Some(Barrier { before, after: stage })
    }
}

impl Unordered {
    fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.stages = None;
    }

    fn conflicts(&self, range: BufferRange, writes: bool) -> bool {
        self.writes.overlap(range) || (writes && self.reads.overlap(range))
    }

    fn record(&mut self, range: BufferRange, writes: bool, stage: Stages) {
        self.stages = Some(self.stages.map_or(stage, |stages| stages | stage));
        if writes { self.writes.insert(range) } else { self.reads.insert(range) }
    }
}

/// Number of lists in [`Ranges`], indexed by a hash of the allocation to keep each list short.
const LISTS: usize = 16;

/// A set of bytes of allocations, as sorted, disjoint and non-adjacent ranges.
#[derive(Debug, Clone, Default)]
struct Ranges([Vec<Range>; LISTS]);

#[derive(Debug, Clone, Copy)]
struct Range {
    memory: MemoryId,
    start: u64,
    end: u64,
}

impl Ranges {
    fn clear(&mut self) {
        self.0.iter_mut().for_each(Vec::clear);
    }

    fn copy_from(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| own.clone_from(other));
    }

    fn overlap(&self, range: BufferRange) -> bool {
        let list = &self.0[range.memory.index() % LISTS];
        let above = list.partition_point(|other| other.key() < (range.memory, range.end()));
        let last = above.checked_sub(1).map(|last| list[last]);
        last.is_some_and(|last| last.memory == range.memory && last.end > range.offset)
    }

    /// Adds a range, merged with those that it overlaps or touches.
    fn insert(&mut self, range: BufferRange) {
        let list = &mut self.0[range.memory.index() % LISTS];
        let (memory, mut start, mut end) = (range.memory, range.offset, range.end());
        let above = list.partition_point(|range| range.key() <= (memory, end));
        let touches = |range: &&Range| range.memory == memory && range.end >= start;
        let count = list[..above].iter().rev().take_while(touches).count();
        let merged = &mut list[above - count..above];
        let Some(last) = merged.last() else {
            return list.insert(above, Range { memory, start, end });
        };
        end = end.max(last.end);
        start = start.min(merged[0].start);
        merged[0] = Range { memory, start, end };
        if count > 1 {
            list.drain(above - count + 1..above);
        }
    }
}

impl Range {
    fn key(&self) -> (MemoryId, u64) {
        (self.memory, self.start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::command::{BoundBuffer, Groups, Role};
    use crate::core::handles::MemoryMark;
    use crate::core::id::Slots;

    fn memories(count: usize) -> Vec<MemoryId> {
        let mut slots = Slots::<MemoryMark, ()>::default();
        (0..count).map(|_| slots.insert(())).collect()
    }

    fn copy(from: BufferRange, to: BufferRange) -> Command {
        Command::Copy { src: from, dst: to }
    }

    #[test]
    fn only_first_read_after_write_waits() {
        let m = memories(3);
        let range = |i: usize| BufferRange { memory: m[i], offset: 0, size: 16 };
        let steps = Hazards::default().schedule([
            copy(range(0), range(1)),
            copy(range(1), range(2)),
            copy(range(1), BufferRange { memory: m[0], offset: 32, size: 16 }),
        ]);
        let barriers: Vec<_> = steps.iter().map(|s| matches!(s, Step::Barrier(_))).collect();
        assert_eq!(barriers, [false, true, false, false]);
    }

    #[test]
    fn barriers_order_only_their_stages() {
        let m = memories(2);
        let range = |i: usize| BufferRange { memory: m[i], offset: 0, size: 16 };
        let mut kernels = Slots::default();
        let dispatch = |kernel, range| {
            Command::Dispatch(crate::core::command::Dispatch {
                kernel,
                bindings: vec![BoundBuffer { range, writes: true }],
                groups: Groups::Direct([1; 3]),
                immediates: Vec::new(),
                role: Role::Launch,
            })
        };
        let kernel = kernels.insert(());
        let mut hazards = Hazards::default();
        assert_eq!(hazards.add(&Command::Fill { dst: range(0), pattern: 0 }), None);
        let transfer_to_compute = Barrier { before: Stages::TRANSFER, after: Stages::COMPUTE };
        assert_eq!(hazards.add(&dispatch(kernel, range(0))), Some(transfer_to_compute));
        // The copy reads bytes that the fill and the dispatch wrote.
        let both_to_transfer =
            Barrier { before: Stages::COMPUTE | Stages::TRANSFER, after: Stages::TRANSFER };
        assert_eq!(hazards.add(&copy(range(0), range(1))), Some(both_to_transfer));
    }

    /// (memory, offset, size, written)
    type Access = (usize, u64, u64, bool);

    fn conflict(a: &Access, b: &Access) -> bool {
        a.0 == b.0 && a.1 < b.1 + b.2 && b.1 < a.1 + a.2 && (a.3 || b.3)
    }

    proptest! {
        /// Compares with the definition: conflicting commands have a barrier between them, and each
        /// barrier is due to a conflict with a command after the previous barrier.
        #[test]
        fn barriers_match_conflicts_exactly(
            commands in prop::collection::vec(
                prop::collection::vec((0usize..3, 0u64..40, 1u64..12, any::<bool>()), 1..4),
                1..40,
            )
        ) {
            let m = memories(3);
            let mut kernels = Slots::default();
            let kernel = kernels.insert(());
            let mut hazards = Hazards::default();
            let mut since_barrier: Vec<Access> = Vec::new();
            for accesses in &commands {
                let bindings = accesses.iter().map(|&(i, offset, size, writes)| {
                    BoundBuffer { range: BufferRange { memory: m[i], offset, size }, writes }
                });
                let command = Command::Dispatch(crate::core::command::Dispatch {
                    kernel,
                    bindings: bindings.collect(),
                    groups: Groups::Direct([1; 3]),
                    immediates: Vec::new(),
                    role: Role::Launch,
                });
                let needed =
                    accesses.iter().any(|a| since_barrier.iter().any(|b| conflict(a, b)));
                prop_assert_eq!(hazards.add(&command).is_some(), needed);
                if needed {
                    since_barrier.clear();
                }
                since_barrier.extend(accesses);
            }
        }
    }
}
