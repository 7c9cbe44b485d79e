//! A consumer warpgroup: 64 rows of queries against all tiles of keys.

use super::layout::{RingCursor, SharedMemory};
use super::params::Params;
use super::strip::Strip;
use super::{FlashPipeline, Output, Variant, epilogue};
use crate::typed::hopper::{Accumulators, Matrix, MmaType, OperandA, Swizzle, Transposed};
use crate::typed::{KernelBuilder, Val};
use crate::types::PtxType;

/// The first of the named barriers by which consumers alternate, one per consumer.
const PING_PONG_BARRIER: u32 = 1;
/// Threads of such a barrier: the consumer that waits, and the one that lets it continue.
const PING_PONG_THREADS: u32 = 256;
/// Maximum columns of accumulators, of the results and of one tile, that fit in registers.
const MAX_ACCUMULATOR_COLUMNS: u32 = 256;

/// Writes the code of a consumer.
pub(super) fn write<'k>(
    k: &'k KernelBuilder,
    variant: &Variant,
    params: &Params<'k>,
    shared: &SharedMemory<'k>,
    index: Val<'k, u32>,
) {
    if let Some((_, registers)) = variant.registers() {
        k.setmaxnreg_inc(registers);
    }
    release_first_consumer(k, variant, index);
    let cursors = [shared.keys().cursor(k), shared.values().cursor(k)];
    params.for_each_task(k, variant, |task, parity| {
        let strip = Strip::new(k, variant, params, task, index);
        let [keys, values] = cursors;
        let consumer = Consumer { strip, shared, index, keys, values };
        consumer.run(parity);
        epilogue::store_results(&consumer);
    });
    epilogue::wait_for_stores(k, variant);
}

/// A consumer and its task.
pub(super) struct Consumer<'k, 'a> {
    pub strip: Strip<'k, 'a>,
    pub shared: &'a SharedMemory<'k>,
    /// Index of the consumer.
    pub index: Val<'k, u32>,
    keys: RingCursor<'k>,
    values: RingCursor<'k>,
}

impl<'k> Consumer<'k, '_> {
    /// Computes a task.
    fn run(&self, parity: Val<'k, u32>) {
        self.shared.queries_full().wait(parity);
        match self.strip.variant.pipeline {
            FlashPipeline::Overlapped => self.run_overlapped(),
            FlashPipeline::Sequential => self.run_sequential(),
        }
    }

    /// Processes one tile after the other.
    fn run_sequential(&self) {
        self.strip.for_each_tile(self.strip.k.var(self.strip.task.end), |tile, may_be_masked| {
            self.start_scores();
            let bias = self.strip.fetch_bias(tile, may_be_masked);
            self.strip.k.wgmma_wait_group(0);
            self.release(&self.keys);
            self.strip.compute_weights(tile, may_be_masked, bias);
            self.strip.pack_weights();
            self.add_values();
        });
        self.release_queries();
    }

    /// Software-pipelined: the score MMAs of the next tile are issued before the value MMAs of the
    /// current one, and its softmax overlaps with these.
    fn run_overlapped(&self) {
        let k = self.strip.k;
        let tiles_left = k.var(self.strip.task.end - 1);
        self.start_scores();
        k.wgmma_wait_group(0);
        self.release(&self.keys);
        self.strip.compute_weights(
            tiles_left.get(),
            true,
            self.strip.fetch_bias(tiles_left.get(), true),
        );
        self.strip.pack_weights();
        self.strip.for_each_tile(tiles_left, |tile, may_be_masked| {
            self.wait_for_mma_slot();
            self.start_scores();
            self.start_values();
            self.pass_mma_slot();
            let bias = self.strip.fetch_bias(tile, may_be_masked);
            k.wgmma_wait_group(1);
            self.release(&self.keys);
            self.strip.compute_weights(tile, may_be_masked, bias);
            k.wgmma_wait_group(0);
            self.release(&self.values);
            self.strip.pack_weights();
        });
        self.release_queries();
        self.start_values();
        k.wgmma_wait_group(0);
        self.release(&self.values);
    }
}

/// MMAs.
impl<'k> Consumer<'k, '_> {
    fn mma_type(&self) -> MmaType {
        if self.strip.variant.element == PtxType::F16 { MmaType::F16 } else { MmaType::Bf16 }
    }

    /// Issues the MMAs of queries and the next tile of keys.
    fn start_scores(&self) {
        let (k, layout) = (self.strip.k, &self.shared.layout);
        self.keys.wait_full();
        let queries = Matrix::new(self.shared.queries(self.index), 16, 1024, Swizzle::B128);
        let keys = self.keys.as_keys();
        let mma_operands = self.strip.variant.products().iter().flat_map(|(left, right)| {
            let chunks = 0..self.strip.variant.chunks();
            chunks.flat_map(move |chunk| (0..4).map(move |step| (*left, *right, chunk, step)))
        });
        k.wgmma_fence();
        for (nth, (left, right, chunk, step)) in mma_operands.enumerate() {
            let query = queries.at(layout.query_chunk(left, chunk) + 32 * step);
            let key = keys.at(layout.tile_chunk(right, chunk) + 32 * step);
            let (left, added) = (OperandA::Shared(query), self.constant_bool(nth > 0));
            self.strip.scores.multiply(self.mma_type(), left, key, added, Transposed::default());
        }
        k.wgmma_commit_group();
    }

    /// Returns a constant predicate.
    fn constant_bool(&self, value: bool) -> Val<'k, bool> {
        self.strip.k.constant(u32::from(value)).ne(0)
    }

    /// Issues the MMAs that accumulate weights times the next tile of values.
    fn start_values(&self) {
        self.strip.rescale();
        self.values.wait_full();
        self.multiply_values(&self.strip.accumulators, 0, true);
    }

    /// Accumulates weights times the next tile of values, and releases the tile. Tensor cores do
    /// not round to nearest when they accumulate: for `f32` operands a tile has accumulators of its
    /// own, which are added to the others in `f32`.
    fn add_values(&self) {
        if self.strip.variant.terms == 1 {
            self.start_values();
            self.strip.k.wgmma_wait_group(0);
        } else {
            self.values.wait_full();
            let columns = if 2 * self.strip.variant.width > MAX_ACCUMULATOR_COLUMNS {
                64
            } else {
                self.strip.variant.width
            };
            let tile_accumulators = Accumulators::new(self.strip.k, columns);
            for first in (0..self.strip.variant.width).step_by(columns as usize) {
                self.add_tile(&tile_accumulators, first);
            }
        }
        self.release(&self.values);
    }

    /// Computes a tile's own accumulators for the columns from `first` on, and adds them.
    fn add_tile(&self, tile_accumulators: &Accumulators<'k>, first: u32) {
        self.multiply_values(tile_accumulators, first, false);
        self.strip.k.wgmma_wait_group(0);
        self.strip.add_accumulators(tile_accumulators, first);
    }

    /// Issues the MMAs of weights and of the next tile of values, for the columns from `column` on.
    /// `added` says whether they add to the accumulators or overwrite them.
    fn multiply_values(&self, accumulators: &Accumulators<'k>, column: u32, added: bool) {
        let (k, layout) = (self.strip.k, &self.shared.layout);
        let values = self.values.as_values();
        let transposed = Transposed { a: false, b: true };
        let steps = self.strip.variant.tile.keys / 16;
        k.wgmma_fence();
        let mma_operands = self.strip.variant.products().iter();
        let mma_operands =
            mma_operands.flat_map(|(left, right)| (0..steps).map(move |s| (*left, *right, s)));
        for (nth, (left, right, step)) in mma_operands.enumerate() {
            let words = &self.strip.weights[left as usize][4 * step as usize..];
            let weights = [0, 1, 2, 3].map(|word: usize| words[word].get());
            let value = values.at(layout.tile_chunk(right, column / 64) + 16 * 128 * step);
            let (left, added) =
                (OperandA::Registers(weights), self.constant_bool(added || nth > 0));
            accumulators.multiply(self.mma_type(), left, value, added, transposed);
        }
        k.wgmma_commit_group();
    }

    /// Releases a tile, and advances to the next one.
    fn release(&self, cursor: &RingCursor<'k>) {
        cursor.empty().arrive_if(self.strip.k.lane().eq(0));
        cursor.advance();
    }
}

impl Consumer<'_, '_> {
    /// Releases the queries once all scores of a task are computed, unless the results reuse their
    /// memory: then the epilogue releases them.
    fn release_queries(&self) {
        if self.shared.layout.has_result_buffer() || self.strip.variant.output != Output::Tiles {
            self.shared.queries_empty().arrive_if(self.strip.k.lane().eq(0));
        }
    }
}

/// Lets the first consumer start without waiting: the last one arrives at its barrier.
fn release_first_consumer(k: &KernelBuilder, variant: &Variant, index: Val<'_, u32>) {
    let last = variant.tile.consumers - 1;
    if last > 0 && variant.pipeline == FlashPipeline::Overlapped {
        k.if_then(index.eq(last), || k.arrive(PING_PONG_BARRIER, PING_PONG_THREADS));
    }
}

/// Consumers issue their MMAs alternately (ping-pong scheduling).
impl Consumer<'_, '_> {
    fn is_ping_pong(&self) -> bool {
        self.strip.variant.tile.consumers > 1
    }

    fn wait_for_mma_slot(&self) {
        if self.is_ping_pong() {
            self.strip.k.sync_named(self.index + PING_PONG_BARRIER, PING_PONG_THREADS);
        }
    }

    fn pass_mma_slot(&self) {
        if self.is_ping_pong() {
            let next = self.index + 1;
            let next = next.eq(self.strip.variant.tile.consumers).select::<u32>(0, next);
            self.strip.k.arrive(next + PING_PONG_BARRIER, PING_PONG_THREADS);
        }
    }
}
