//! The persistent tile scheduler: which block computes which task.

use super::Variant;
use super::params::{Params, ScheduleParams};
use crate::kernels::attention::shape::{Attention, argument_error};
use crate::kernels::{GpuSpec, PlanError};
use crate::typed::{KernelBuilder, Val};

/// How tasks are distributed to blocks. A task is a tile of rows of a head; or, with split-KV, a
/// slice of its keys for all rows.
///
/// With a causal mask, tiles differ in length. If there are enough tiles, a block computes pairs of
/// a long tile and a short one, and all pairs are equally long. Otherwise the long tiles come
/// first, and every other round is assigned to the blocks in reverse order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    /// Tasks per head: tiles of its rows, or slices of its keys.
    pub tasks_per_head: u32,
    /// Tiles of keys per slice.
    tiles_per_slice: u32,
    /// Heads whose tiles are interleaved: the longest tiles of all these heads come first.
    interleaved_heads: u32,
    /// Whether tasks are pairs of tiles.
    is_paired: bool,
    /// Number of tasks, or of pairs of tasks, over all heads.
    work_items: u32,
    pub blocks: u32,
}

impl Schedule {
    pub fn new(
        attention: &Attention,
        variant: &Variant,
        tasks_per_head: u32,
        gpu: GpuSpec,
    ) -> Result<Self, PlanError> {
        let heads = if variant.packs_heads() { attention.kv_heads } else { attention.heads };
        let heads = u64::from(attention.batch) * u64::from(heads);
        let resident_blocks = u64::from(gpu.multiprocessors.max(1) * variant.tile.resident);
        let pair_count = heads * u64::from(tasks_per_head.div_ceil(2));
        let is_paired = variant.causal && fills_waves(pair_count, resident_blocks);
        let work_items = if is_paired { pair_count } else { heads * u64::from(tasks_per_head) };
        let fits = |work_items: &u32| *work_items < 1 << 30;
        let work_items = u32::try_from(work_items).ok().filter(fits).ok_or_else(|| {
            let queries = attention.queries;
            let problem = format!("{queries} of {heads} heads, above the limit of a launch");
            argument_error(
                "queries",
                problem,
                "split the batch, heads or queries over several calls",
            )
        })?;
        let tiles_per_slice = attention.keys.div_ceil(variant.tile.keys).div_ceil(tasks_per_head);
        let interleaved_heads = if variant.causal && !is_paired { heads as u32 } else { 1 };
        let blocks = work_items.min(resident_blocks as u32);
        Ok(Self {
            tasks_per_head,
            tiles_per_slice,
            interleaved_heads,
            is_paired,
            work_items,
            blocks,
        })
    }

    /// Returns the values of [`ScheduleParams`], in order.
    pub fn parameter_values(&self) -> [u32; 5] {
        [
            self.tasks_per_head,
            self.tiles_per_slice,
            self.interleaved_heads,
            self.is_paired.into(),
            self.work_items,
        ]
    }
}

/// Whether the waves of resident blocks, the last one included, are at least 90 % full.
fn fills_waves(work_items: u64, resident_blocks: u64) -> bool {
    10 * work_items >= 9 * work_items.div_ceil(resident_blocks) * resident_blocks
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
    pub slice: Val<'k, u32>,
}

impl<'k> Params<'k> {
    /// Writes the loop over this block's tasks; `work` also receives the parity of the iteration.
    pub fn for_each_task(
        &self,
        k: &'k KernelBuilder,
        variant: &Variant,
        work: impl FnOnce(Task<'k>, Val<'k, u32>),
    ) {
        let (step, parity) = (k.var(0u32), k.var(0u32));
        let (blocks, block, pair_shift) =
            (k.block_count(0), k.block_id(0), self.schedule.pair_shift);
        k.loop_(|exit| {
            // With pairs, two steps are a round, and the lowest bit selects the tile of a pair.
            let (round, second) = (step.get() >> pair_shift, step.get() & pair_shift);
            let is_forward = (round & 1).eq(0);
            let nth = round.mul_add(blocks, is_forward.select(block, blocks - 1 - block));
            exit.break_if(nth.ge(self.schedule.work_items));
            let (task, unpaired) = if variant.packs_heads() {
                (self.slice_task(nth, variant), k.constant(0u32))
            } else {
                self.tile_task(nth, second, variant)
            };
            work(task, parity.get());
            parity.set(parity.get() ^ 1);
            step.set(step.get() + unpaired + 1);
        });
    }

    /// Returns the task of a tile of rows, and 1 if the tile is the first of a pair that has no
    /// second one, else 0. Heads are interleaved in groups; within a group the longest tiles come
    /// first.
    fn tile_task(
        &self,
        nth: Val<'k, u32>,
        second: Val<'k, u32>,
        variant: &Variant,
    ) -> (Task<'k>, Val<'k, u32>) {
        let ScheduleParams { tasks_per_head, interleaved_heads, pair_shift, .. } = self.schedule;
        let per_head = (tasks_per_head + pair_shift) >> pair_shift;
        let (head_group, index_in_group) = div_rem(nth, interleaved_heads * per_head);
        let first_head = head_group * interleaved_heads;
        let heads_left = self.batch * self.heads - first_head;
        let (position, head) = div_rem(index_in_group, interleaved_heads.min(heads_left));
        let (batch, head) = div_rem(first_head + head, self.heads);
        let mirrored = tasks_per_head - 1 - position;
        let tile = second.eq(0).select(mirrored, position);
        let rows = 64 * variant.tile.consumers;
        let first_row = tile * rows;
        let visible_keys = if variant.causal { self.keys.min(first_row + rows) } else { self.keys };
        let begin = nth.builder().constant(0u32);
        let (kv_head, end) = (head / self.group_size, tiles(visible_keys, variant));
        let unpaired = (pair_shift.ne(second) & mirrored.eq(position)).select::<u32>(1, 0);
        (Task { batch, head, kv_head, first_row, begin, end, slice: begin }, unpaired)
    }

    /// Returns the task of all rows of the heads that share keys, and a slice of these keys.
    fn slice_task(&self, nth: Val<'k, u32>, variant: &Variant) -> Task<'k> {
        let ScheduleParams { tasks_per_head, tiles_per_slice, .. } = self.schedule;
        let (head, slice) = div_rem(nth, tasks_per_head);
        let (batch, kv_head) = div_rem(head, self.heads / self.group_size);
        let begin = slice * tiles_per_slice;
        let end = (begin + tiles_per_slice).min(tiles(self.keys, variant));
        let first_row = nth.builder().constant(0u32);
        Task { batch, head: kv_head * self.group_size, kv_head, first_row, begin, end, slice }
    }
}

/// Returns quotient and remainder.
fn div_rem<'k>(a: Val<'k, u32>, b: Val<'k, u32>) -> (Val<'k, u32>, Val<'k, u32>) {
    let quotient = a / b;
    (quotient, a - quotient * b)
}

/// Returns the number of tiles of this many keys.
fn tiles<'k>(keys: Val<'k, u32>, variant: &Variant) -> Val<'k, u32> {
    (keys + (variant.tile.keys - 1)) / variant.tile.keys
}
