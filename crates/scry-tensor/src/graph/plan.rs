//! Memory of a plan: where the results of kernels are stored, in a few arenas.
//!
//! A result is placed in the smallest gap that holds it (best fit), at a multiple of 256 bytes, in
//! an arena that its kernel does not read: WebGPU rejects kernels that read and write one buffer,
//! even in different ranges. A kernel that computes each element from the element at the same
//! position of an operand that no later kernel reads replaces it in place. Outputs are not in
//! arenas.

use super::grouped::{BufferId, Grouped, Kernel, Origin, Work};

/// Offsets are multiples of this many bytes: the largest alignment of bindings.
pub(crate) const ALIGNMENT: u64 = 256;

/// A range of an arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) arena: usize,
    pub(crate) offset: u64,
    /// Bytes, a multiple of [`ALIGNMENT`].
    pub(crate) bytes: u64,
}

/// The memory of the results of kernels.
#[derive(Debug, Default)]
pub(crate) struct MemoryPlan {
    /// The place of each buffer that is in an arena.
    pub(crate) slots: Vec<Option<Slot>>,
    /// The bytes of each arena.
    pub(crate) arenas: Vec<u64>,
    /// For each kernel the operand that its result replaces.
    pub(crate) in_place: Vec<Option<u32>>,
    /// The largest sum of results that are needed at one time, in bytes.
    pub(crate) peak: u64,
}

/// Plans the memory of kernels.
pub(crate) fn plan(grouped: &Grouped) -> MemoryPlan {
    let last_uses = last_uses(grouped);
    let mut plan = MemoryPlan { slots: vec![None; grouped.buffers.len()], ..Default::default() };
    // Buffers in arenas that a later kernel reads.
    let mut live: Vec<BufferId> = Vec::new();
    for (position, kernel) in grouped.kernels.iter().enumerate() {
        let is_planned = grouped.buffers[kernel.result.index()].origin == Origin::Result;
        let in_place = is_planned.then(|| plan.replaced(grouped, position, &last_uses)).flatten();
        plan.in_place.push(in_place.map(|(operand, _)| operand));
        for result in kernel.results() {
            let info = &grouped.buffers[result.index()];
            if info.origin != Origin::Result || info.bytes == 0 {
                continue;
            }
            let slot = match in_place {
                Some((_, buffer)) => {
                    live.retain(|it| *it != buffer);
                    plan.slots[buffer.index()]
                }
                None => Some(plan.place(kernel, info.bytes as u64, &live)),
            };
            plan.slots[result.index()] = slot;
            live.push(result);
        }
        let bytes = live.iter().filter_map(|it| plan.slots[it.index()]).map(|slot| slot.bytes);
        plan.peak = plan.peak.max(bytes.sum());
        live.retain(|it| last_uses[it.index()] > position);
    }
    plan
}

/// Returns for each buffer the position of the last kernel that reads it; 0 if none does.
fn last_uses(grouped: &Grouped) -> Vec<usize> {
    let mut last = vec![0; grouped.buffers.len()];
    for (position, kernel) in grouped.kernels.iter().enumerate() {
        kernel.operands().iter().for_each(|operand| last[operand.index()] = position);
    }
    last
}

impl MemoryPlan {
    /// Returns the operand that the result of a kernel may replace, and its buffer.
    fn replaced(
        &self,
        grouped: &Grouped,
        position: usize,
        last_uses: &[usize],
    ) -> Option<(u32, BufferId)> {
        let kernel = &grouped.kernels[position];
        let Work::Map { map, operands, .. } = &kernel.work else { return None };
        let bytes = grouped.buffers[kernel.result.index()].bytes;
        let fits = |n: &usize| {
            let (buffer, layout) = &operands[*n];
            let Some(slot) = self.slots[buffer.index()] else { return false };
            let others = operands.iter().enumerate().filter(|(other, _)| other != n);
            let is_alone = others.clone().all(|(_, (other, _))| {
                self.slots[other.index()].is_none_or(|other| other.arena != slot.arena)
            });
            is_alone
                && last_uses[buffer.index()] == position
                && grouped.buffers[buffer.index()].bytes == bytes
                && map.operands[*n].size() == map.output.size()
                && layout.is_contiguous()
                && layout.offset == 0
                && !map.is_gathered(*n)
        };
        let found = (0..operands.len()).find(fits)?;
        Some((found as u32, operands[found].0))
    }

    /// Returns the best place for the result of a kernel.
    fn place(&mut self, kernel: &Kernel, bytes: u64, live: &[BufferId]) -> Slot {
        let bytes = bytes.next_multiple_of(ALIGNMENT);
        let arena_of = |buffer: &BufferId| self.slots[buffer.index()].map(|slot| slot.arena);
        let read: Vec<usize> = kernel.operands().iter().filter_map(arena_of).collect();
        let candidates = (0..self.arenas.len()).filter(|arena| !read.contains(arena));
        // By the growth of the arena, then by the space that is left in the gap.
        let best = candidates
            .map(|arena| {
                let (offset, gap) = self.gap(arena, bytes, live);
                let growth = (offset + bytes).saturating_sub(self.arenas[arena]);
                (growth, gap, arena, offset)
            })
            .min();
        let (arena, offset) = match best {
            Some((_, _, arena, offset)) => (arena, offset),
            None => {
                self.arenas.push(0);
                (self.arenas.len() - 1, 0)
            }
        };
        self.arenas[arena] = self.arenas[arena].max(offset + bytes);
        Slot { arena, offset, bytes }
    }

    /// Returns the offset and the size of the smallest gap of an arena that holds `bytes`; else the
    /// end of what is in use.
    fn gap(&self, arena: usize, bytes: u64, live: &[BufferId]) -> (u64, u64) {
        let mut used: Vec<Slot> = live.iter().filter_map(|it| self.slots[it.index()]).collect();
        used.retain(|slot| slot.arena == arena);
        used.sort_by_key(|slot| slot.offset);
        let (mut end, mut best) = (0, None);
        for slot in &used {
            let gap = slot.offset.saturating_sub(end);
            if gap >= bytes && best.is_none_or(|(_, size)| gap < size) {
                best = Some((end, gap));
            }
            end = end.max(slot.offset + slot.bytes);
        }
        let rest = self.arenas[arena].saturating_sub(end);
        match best {
            Some((_, size)) if rest >= bytes && rest < size => (end, rest),
            Some(best) => best,
            None => (end, rest.max(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::grouped::BufferInfo;
    use super::super::reason::Reason;
    use super::*;
    use crate::dtype::DType;
    use crate::expr::{Expression, Map};
    use crate::shape::{Layout, Shape};

    /// Returns the map that adds its operands.
    fn sum(operands: usize) -> Map {
        let mut e = Expression::default();
        let mut result = e.operand(DType::F32);
        for _ in 1..operands {
            let next = e.operand(DType::F32);
            result = e.binary(scry_gpu::kir::BinaryOp::Add, result, next);
        }
        e.finish(result, DType::F32)
    }

    /// Returns kernels that each add earlier results; kernel n writes buffer n + 1, and buffer 0 is
    /// an input.
    fn kernels(counts: &[usize], reads: &[&[u32]]) -> Grouped {
        let info = |origin, count: usize| BufferInfo { origin, bytes: count * 4 };
        let mut buffers = vec![info(Origin::Input(0), counts[0])];
        let mut kernels = Vec::new();
        for (n, (count, operands)) in counts.iter().zip(reads).enumerate() {
            let shape = Shape::from([*count]);
            let layout = Layout::contiguous(shape.clone());
            let operands: Vec<_> =
                operands.iter().map(|it| (BufferId(*it), layout.clone())).collect();
            let (map, arguments, gathered) = (sum(operands.len()), Vec::new(), None);
            buffers.push(info(Origin::Result, *count));
            let result = BufferId(n as u32 + 1);
            let work = Work::Map { map, operands, arguments, gathered };
            let (nodes, reason) = (Vec::new(), Reason::Library);
            kernels.push(Kernel { work, result, shape, nodes, reason, value: None });
        }
        Grouped { kernels, buffers, outputs: Vec::new() }
    }

    /// Checks what holds for every plan.
    fn check(grouped: &Grouped, plan: &MemoryPlan) {
        let last = last_uses(grouped);
        for (n, kernel) in grouped.kernels.iter().enumerate() {
            let Some(own) = plan.slots[kernel.result.index()] else { continue };
            assert_eq!(own.offset % ALIGNMENT, 0);
            assert!(own.offset + own.bytes <= plan.arenas[own.arena]);
            let Work::Map { operands, .. } = &kernel.work else { continue };
            for (position, (operand, _)) in operands.iter().enumerate() {
                let Some(slot) = plan.slots[operand.index()] else { continue };
                let is_replaced = plan.in_place[n] == Some(position as u32);
                assert!(is_replaced || slot.arena != own.arena, "kernel {n} reads and writes");
                assert!(!is_replaced || slot == own && last[operand.index()] == n);
            }
            // Results that are needed later are elsewhere.
            for (other, needed) in grouped.kernels[..n].iter().map(|it| (it.result, n)) {
                let Some(slot) = plan.slots[other.index()] else { continue };
                let overlaps = slot.arena == own.arena
                    && slot.offset < own.offset + own.bytes
                    && own.offset < slot.offset + slot.bytes;
                assert!(!overlaps || last[other.index()] <= needed, "kernel {n} overwrites");
            }
        }
    }

    #[test]
    fn chain_replaces_in_place() {
        let grouped = kernels(&[100; 5], &[&[0], &[1], &[2], &[3], &[4]]);
        let plan = plan(&grouped);
        check(&grouped, &plan);
        assert_eq!((plan.arenas.as_slice(), plan.peak), (&[512][..], 512));
        assert_eq!(plan.in_place, [None, Some(0), Some(0), Some(0), Some(0)]);
    }

    #[test]
    fn kernels_never_read_and_write_one_arena() {
        let mut state = 7u32;
        let mut below = |n: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % n
        };
        let (mut ratios, sizes) = (Vec::new(), [1, 60, 64, 65, 200, 1000]);
        for _ in 0..300 {
            let count = 2 + below(20);
            let counts: Vec<usize> =
                (0..count).map(|_| sizes[below(sizes.len() as u32) as usize]).collect();
            let reads: Vec<Vec<u32>> = (0..count)
                .map(|n| (0..1 + below(3)).map(|_| n.saturating_sub(below(5))).collect())
                .collect();
            let reads: Vec<&[u32]> = reads.iter().map(Vec::as_slice).collect();
            let grouped = kernels(&counts, &reads);
            let plan = plan(&grouped);
            check(&grouped, &plan);
            let total: u64 = plan.arenas.iter().sum();
            ratios.push(total as f64 / plan.peak as f64);
        }
        ratios.sort_by(f64::total_cmp);
        let (median, worst) = (ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
        assert!(median <= 1.35 && worst <= 2.5, "{median} {worst}");
    }
}
