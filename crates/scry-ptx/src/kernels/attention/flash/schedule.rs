//! The persistent tile scheduler: which block computes which task.

use super::Variant;
use super::params::{Params, ScheduleParams};
use crate::kernels::attention::shape::{Attention, refusal};
use crate::kernels::{GpuSpec, PlanError};
use crate::typed::{Code, Val};

/// How tasks are distributed. A task is a tile of rows of a head; or, where all rows fit one tile,
/// a slice of its keys.
///
/// With a causal mask, tiles differ in length. Either a block computes a long tile and a short one,
/// and all such pairs are equally long; or, if there are too few pairs for that, the long tiles
/// come first, and every other round is distributed in reverse.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    /// Tiles of rows per head, or slices of its keys.
    pub pieces: u32,
    /// Tiles of keys per slice.
    each: u32,
    /// Heads whose tiles are interleaved.
    section: u32,
    /// Whether tasks are pairs of tiles.
    pairs: bool,
    /// Number of tiles, or pairs of them, over all heads.
    units: u32,
    pub blocks: u32,
}

impl Schedule {
    pub fn new(
        of: &Attention,
        variant: &Variant,
        pieces: u32,
        machine: GpuSpec,
    ) -> Result<Self, PlanError> {
        let heads = if variant.packed() { of.kv_heads } else { of.heads };
        let heads = u64::from(of.batch) * u64::from(heads);
        let slots = u64::from(machine.multiprocessors.max(1) * variant.tile.resident);
        let paired = heads * u64::from(pieces.div_ceil(2));
        let pairs = variant.causal && balanced(paired, slots);
        let units = if pairs { paired } else { heads * u64::from(pieces) };
        let fits = |units: &u32| *units < 1 << 30;
        let units = u32::try_from(units).ok().filter(fits).ok_or_else(|| {
            let problem = format!("{} of {heads} heads", of.queries);
            refusal("queries", problem, "compute it in parts")
        })?;
        let each = of.keys.div_ceil(variant.tile.keys).div_ceil(pieces);
        let section = if variant.causal && !pairs { heads as u32 } else { 1 };
        let blocks = units.min(slots as u32);
        Ok(Self { pieces, each, section, pairs, units, blocks })
    }

    /// Returns them as parameters, in order.
    pub fn numbers(&self) -> [u32; 5] {
        [self.pieces, self.each, self.section, self.pairs.into(), self.units]
    }
}

/// Whether nearly all blocks are busy in the last wave too.
fn balanced(units: u64, slots: u64) -> bool {
    10 * units >= 9 * units.div_ceil(slots) * slots
}

/// A task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task<'k> {
    pub batch: Val<'k, u32>,
    /// The head of queries, or the first of those that share keys.
    pub head: Val<'k, u32>,
    pub kv_head: Val<'k, u32>,
    /// The first row of the block.
    pub first_row: Val<'k, u32>,
    /// The first tile of keys.
    pub begin: Val<'k, u32>,
    /// The end of the tiles of keys (exclusive), greater than `begin`.
    pub end: Val<'k, u32>,
    /// Index of the slice of keys.
    pub part: Val<'k, u32>,
}

impl<'k> Params<'k> {
    /// Writes the loop over this block's tasks, with the parity of the iteration.
    pub fn each_task(
        &self,
        k: &'k Code,
        variant: &Variant,
        work: impl FnOnce(Task<'k>, Val<'k, u32>),
    ) {
        let (step, parity) = (k.var(0u32), k.var(0u32));
        let (blocks, block, pairs) = (k.block_count(0), k.block_id(0), self.plan.pairs);
        k.repeat(|exit| {
            let (round, second) = (step.get() >> pairs, step.get() & pairs);
            let forth = (round & 1).equals(0);
            let nth = round.mul_add(blocks, forth.select(block, blocks - 1 - block));
            exit.when(nth.ge(self.plan.units));
            let (task, alone) = if variant.packed() {
                (self.part(nth, variant), k.constant(0u32))
            } else {
                self.tile(nth, second, variant)
            };
            work(task, parity.get());
            parity.set(parity.get() ^ 1);
            step.set(step.get() + alone + 1);
        });
    }

    /// Returns a tile of rows of a head, and whether it is the first of a pair without a second
    /// one. Heads are interleaved in sections; within a section the longest tiles come first.
    fn tile(
        &self,
        nth: Val<'k, u32>,
        second: Val<'k, u32>,
        variant: &Variant,
    ) -> (Task<'k>, Val<'k, u32>) {
        let ScheduleParams { pieces, section, pairs, .. } = self.plan;
        let per_head = (pieces + pairs) >> pairs;
        let (nth_section, rest) = divided(nth, section * per_head);
        let before = nth_section * section;
        let left = self.batch * self.heads - before;
        let (place, head) = divided(rest, section.min(left));
        let (batch, head) = divided(before + head, self.heads);
        let mirrored = pieces - 1 - place;
        let tile = second.equals(0).select(mirrored, place);
        let rows = 64 * variant.tile.consumers;
        let first_row = tile * rows;
        let seen = if variant.causal { self.keys.min(first_row + rows) } else { self.keys };
        let begin = nth.code().constant(0u32);
        let (kv_head, end) = (head / self.group, tiles(seen, variant));
        let alone = (pairs.differs(second) & mirrored.equals(place)).select::<u32>(1, 0);
        (Task { batch, head, kv_head, first_row, begin, end, part: begin }, alone)
    }

    /// Returns all rows of the heads that share keys, and a slice of these.
    fn part(&self, nth: Val<'k, u32>, variant: &Variant) -> Task<'k> {
        let ScheduleParams { pieces, each, .. } = self.plan;
        let (head, part) = divided(nth, pieces);
        let (batch, kv_head) = divided(head, self.heads / self.group);
        let begin = part * each;
        let end = (begin + each).min(tiles(self.keys, variant));
        let first_row = nth.code().constant(0u32);
        Task { batch, head: kv_head * self.group, kv_head, first_row, begin, end, part }
    }
}

/// Returns quotient and remainder.
fn divided<'k>(a: Val<'k, u32>, b: Val<'k, u32>) -> (Val<'k, u32>, Val<'k, u32>) {
    let quotient = a / b;
    (quotient, a - quotient * b)
}

/// Returns the number of tiles of this many keys.
fn tiles<'k>(keys: Val<'k, u32>, variant: &Variant) -> Val<'k, u32> {
    (keys + (variant.tile.keys - 1)) / variant.tile.keys
}
