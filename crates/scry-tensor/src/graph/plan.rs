//! Memory of a plan: where the results of kernels are stored, in a few arenas.
//!
//! A result is at a multiple of 256 bytes, in an arena that its kernel does not read: WebGPU
//! rejects kernels that read and write one buffer, even in different ranges. A kernel that computes
//! each element from the element at the same position of an operand that no later kernel reads
//! replaces it in place: both are one block. A product does so with its residual.
//! [`packing`](super::packing) chooses the places of blocks. Outputs are not in arenas.

use super::grouped::{BufferId, Grouped, Kernel, Origin, Work};
use super::packing::{self, Block};

/// Offsets are multiples of this many bytes: the largest alignment of bindings.
pub(crate) const ALIGNMENT: u64 = crate::sharding::ALIGNMENT;

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

/// Plans the memory of kernels, in arenas of at most `max_arena` bytes if no result is larger.
/// There are arenas of `kept` bytes, the largest first.
pub(crate) fn plan(grouped: &Grouped, max_arena: u64, kept: &[u64]) -> MemoryPlan {
    let (blocks, in_place) = blocks(grouped);
    let packing = packing::pack(&blocks.blocks, max_arena, kept);
    let slot = |block: &Option<usize>| {
        let (arena, offset) = packing.places[(*block)?];
        Some(Slot { arena, offset, bytes: blocks.blocks[(*block)?].bytes })
    };
    let slots = blocks.of.iter().map(slot).collect();
    let peak = packing::peak(&blocks.blocks);
    MemoryPlan { slots, arenas: packing.arenas, in_place, peak }
}

/// Returns for each kernel the operand that its result replaces, if it does.
pub(crate) fn in_place(grouped: &Grouped) -> Vec<Option<u32>> {
    blocks(grouped).1
}

/// Returns the blocks of results, and for each kernel the operand that its result replaces.
fn blocks(grouped: &Grouped) -> (Blocks, Vec<Option<u32>>) {
    let mut blocks = Blocks::new(grouped);
    let last_uses = last_uses(grouped);
    let mut in_place = Vec::with_capacity(grouped.kernels.len());
    for (position, kernel) in grouped.kernels.iter().enumerate() {
        let is_planned = grouped.buffers[kernel.result.index()].origin == Origin::Result;
        let replaced = is_planned.then(|| blocks.replaced(grouped, position, &last_uses)).flatten();
        in_place.push(replaced.map(|(operand, _)| operand));
        for result in kernel.results() {
            let info = &grouped.buffers[result.index()];
            if info.origin == Origin::Result && info.bytes > 0 {
                let last = last_uses[result.index()].max(position);
                let block = replaced.and_then(|(_, buffer)| blocks.of[buffer.index()]);
                blocks.add(result, info.bytes as u64, position..=last, block);
            }
        }
        blocks.keep_apart(kernel);
    }
    (blocks, in_place)
}

/// Returns for each buffer the position of the last kernel that reads it; 0 if none does.
fn last_uses(grouped: &Grouped) -> Vec<usize> {
    let mut last = vec![0; grouped.buffers.len()];
    for (position, kernel) in grouped.kernels.iter().enumerate() {
        kernel.operands().iter().for_each(|operand| last[operand.index()] = position);
    }
    last
}

/// Blocks of memory: a result, and those that replace it in place.
struct Blocks {
    blocks: Vec<Block>,
    /// The block of each buffer that is in an arena.
    of: Vec<Option<usize>>,
}

impl Blocks {
    fn new(grouped: &Grouped) -> Self {
        Self { blocks: Vec::new(), of: vec![None; grouped.buffers.len()] }
    }

    /// Adds a result, to a block that it replaces if there is one.
    fn add(
        &mut self,
        result: BufferId,
        bytes: u64,
        used: std::ops::RangeInclusive<usize>,
        replaced: Option<usize>,
    ) {
        let (first, last) = used.into_inner();
        let position = replaced.unwrap_or(self.blocks.len());
        self.of[result.index()] = Some(position);
        match self.blocks.get_mut(position) {
            Some(block) => block.last = last,
            None => {
                let bytes = bytes.next_multiple_of(ALIGNMENT);
                self.blocks.push(Block { bytes, first, last, apart: Vec::new() });
            }
        }
    }

    /// Records that a kernel writes other arenas than it reads.
    fn keep_apart(&mut self, kernel: &Kernel) {
        let block = |buffer: &BufferId| self.of[buffer.index()];
        let read: Vec<usize> = kernel.operands().iter().filter_map(block).collect();
        let written: Vec<usize> = kernel.results().iter().filter_map(block).collect();
        for (from, to) in read.iter().flat_map(|from| written.iter().map(move |to| (*from, *to))) {
            if from != to && !self.blocks[from].apart.contains(&to) {
                self.blocks[from].apart.push(to);
                self.blocks[to].apart.push(from);
            }
        }
    }

    /// Returns the operand that the result of a kernel may replace, and its buffer.
    fn replaced(
        &self,
        grouped: &Grouped,
        position: usize,
        last_uses: &[usize],
    ) -> Option<(u32, BufferId)> {
        let kernel = &grouped.kernels[position];
        let bytes = grouped.buffers[kernel.result.index()].bytes;
        if let Some((operand, buffer)) = kernel.residual() {
            let is_last =
                self.of[buffer.index()].is_some() && last_uses[buffer.index()] == position;
            return is_last.then_some((operand as u32, buffer));
        }
        let Work::Map { map, operands, .. } = &kernel.work else { return None };
        let fits = |n: &usize| {
            let (buffer, layout) = &operands[*n];
            let is_read_once = operands.iter().filter(|(other, _)| other == buffer).count() == 1;
            self.of[buffer.index()].is_some()
                && is_read_once
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

    /// Checks that arenas which have room for a plan are used again.
    fn check_kept(grouped: &Grouped, plan: &MemoryPlan) {
        for room in [0, ALIGNMENT, 4 * ALIGNMENT] {
            let mut kept: Vec<u64> = plan.arenas.iter().map(|bytes| bytes + room).collect();
            kept.sort_unstable_by(|a, b| b.cmp(a));
            let mut again = super::plan(grouped, u64::MAX, &kept).arenas;
            again.sort_unstable_by(|a, b| b.cmp(a));
            let fits = again.len() <= kept.len() && again.iter().zip(&kept).all(|(a, b)| a <= b);
            assert!(fits, "{again:?} instead of {kept:?}");
        }
    }

    /// Returns the largest sum of the places that hold a result which a kernel writes or a later
    /// one reads.
    fn largest_live_set(grouped: &Grouped, plan: &MemoryPlan) -> u64 {
        let last = last_uses(grouped);
        let live_at = |n: usize| {
            let results = grouped.kernels[..=n].iter().enumerate();
            let live = results.filter(|(at, it)| *at == n || last[it.result.index()] >= n);
            let mut slots: Vec<Slot> =
                live.filter_map(|(_, it)| plan.slots[it.result.index()]).collect();
            slots.sort_by_key(|slot| (slot.arena, slot.offset));
            slots.dedup();
            slots.iter().map(|slot| slot.bytes).sum()
        };
        (0..grouped.kernels.len()).map(live_at).max().unwrap_or(0)
    }

    #[test]
    fn chain_replaces_in_place() {
        let grouped = kernels(&[100; 5], &[&[0], &[1], &[2], &[3], &[4]]);
        let plan = plan(&grouped, u64::MAX, &[]);
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
        for _ in 0..1000 {
            let count = 2 + below(20);
            let counts: Vec<usize> =
                (0..count).map(|_| sizes[below(sizes.len() as u32) as usize]).collect();
            let reads: Vec<Vec<u32>> = (0..count)
                .map(|n| (0..1 + below(3)).map(|_| n.saturating_sub(below(5))).collect())
                .collect();
            let reads: Vec<&[u32]> = reads.iter().map(Vec::as_slice).collect();
            let grouped = kernels(&counts, &reads);
            let plan = plan(&grouped, u64::MAX, &[]);
            check(&grouped, &plan);
            assert_eq!(plan.peak, largest_live_set(&grouped, &plan));
            let total: u64 = plan.arenas.iter().sum();
            ratios.push(total as f64 / plan.peak as f64);
            check_kept(&grouped, &plan);
        }
        ratios.sort_by(f64::total_cmp);
        let (median, worst) = (ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
        // The worst are small: one large block has to be in another arena than a later one.
        assert!(median <= 1.05 && worst <= 1.5, "{median} {worst}");
    }
}
