//! A consumer warpgroup: 64 rows of queries against all tiles of keys.

use super::layout::{Places, Walk};
use super::params::Params;
use super::strip::Strip;
use super::{Form, Output, Variant, epilogue};
use crate::typed::hopper::{Accumulators, Left, Matrix, MmaType, Swizzle, Transposed};
use crate::typed::{Code, Val};
use crate::types::PtxType;

/// The first of the named barriers by which consumers alternate.
const PING_PONG_BARRIER: u32 = 1;
/// Maximum columns of accumulators, old and new, in registers.
const SUMS: u32 = 256;

pub(super) fn compute<'k>(
    k: &'k Code,
    variant: &Variant,
    params: &Params<'k>,
    shared: &Places<'k>,
    number: Val<'k, u32>,
) {
    if let Some((_, many)) = variant.registers() {
        k.claim_registers(many);
    }
    release_first_consumer(k, variant, number);
    let walks = [shared.keys().walk(k), shared.values().walk(k)];
    params.each_task(k, variant, |task, parity| {
        let strip = Strip::new(k, variant, params, task, number);
        let [keys, values] = walks;
        let consumer = Consumer { strip, shared, number, keys, values };
        consumer.run(parity);
        epilogue::write(&consumer);
    });
    epilogue::end(k, variant);
}

/// A consumer and its task.
pub(super) struct Consumer<'k, 'a> {
    pub strip: Strip<'k, 'a>,
    pub shared: &'a Places<'k>,
    /// Index of the consumer.
    pub number: Val<'k, u32>,
    keys: Walk<'k>,
    values: Walk<'k>,
}

impl<'k> Consumer<'k, '_> {
    fn run(&self, parity: Val<'k, u32>) {
        self.shared.queries_full().wait(parity);
        match self.strip.variant.form {
            Form::Overlapped => self.overlapped(),
            Form::Plain => self.plain(),
        }
    }

    /// Processes one tile after the other.
    fn plain(&self) {
        self.strip.tiles(self.strip.k.var(self.strip.task.end), |tile, hidden| {
            self.start_scores();
            let bias = self.strip.fetch_bias(tile, hidden);
            self.strip.k.wgmma_wait_group(0);
            self.release(&self.keys);
            self.strip.weigh(tile, hidden, bias);
            self.strip.pack();
            self.add_values();
        });
        self.release_queries();
    }

    /// Software-pipelined: the score MMAs of the next tile are issued before the value MMAs of the
    /// current one, and its softmax overlaps with these.
    fn overlapped(&self) {
        let k = self.strip.k;
        let left = k.var(self.strip.task.end - 1);
        self.start_scores();
        k.wgmma_wait_group(0);
        self.release(&self.keys);
        self.strip.weigh(left.get(), true, self.strip.fetch_bias(left.get(), true));
        self.strip.pack();
        self.strip.tiles(left, |tile, hidden| {
            self.wait_for_mma_slot();
            self.start_scores();
            self.start_values();
            self.pass_mma_slot();
            let bias = self.strip.fetch_bias(tile, hidden);
            k.wgmma_wait_group(1);
            self.release(&self.keys);
            self.strip.weigh(tile, hidden, bias);
            k.wgmma_wait_group(0);
            self.release(&self.values);
            self.strip.pack();
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
        let queries = Matrix::new(self.shared.queries(self.number), 16, 1024, Swizzle::B128);
        let keys = self.keys.as_keys();
        let pieces = self.strip.variant.products().iter().flat_map(|(left, right)| {
            let chunks = 0..self.strip.variant.chunks();
            chunks.flat_map(move |chunk| (0..4).map(move |step| (*left, *right, chunk, step)))
        });
        k.wgmma_fence();
        for (nth, (left, right, chunk, step)) in pieces.enumerate() {
            let query = queries.at(layout.query_chunk(left, chunk) + 32 * step);
            let key = keys.at(layout.tile_chunk(right, chunk) + 32 * step);
            let (left, added) = (Left::Shared(query), self.truth(nth > 0));
            self.strip.scores.multiply(self.mma_type(), left, key, added, Transposed::default());
        }
        k.wgmma_commit_group();
    }

    fn truth(&self, holds: bool) -> Val<'k, bool> {
        self.strip.k.constant(u32::from(holds)).differs(0)
    }

    /// Issues the MMAs that accumulate weights times the next tile of values.
    fn start_values(&self) {
        self.strip.shrink();
        self.values.wait_full();
        self.multiply_values(&self.strip.accumulators, 0, true);
    }

    /// Accumulates weights times the next tile of values. Tensor cores do not round to nearest when
    /// they accumulate: where that matters, a tile has accumulators of its own.
    fn add_values(&self) {
        if self.strip.variant.parts == 1 {
            self.start_values();
            self.strip.k.wgmma_wait_group(0);
        } else {
            self.values.wait_full();
            let columns =
                if 2 * self.strip.variant.width > SUMS { 64 } else { self.strip.variant.width };
            let fresh = Accumulators::new(self.strip.k, columns);
            for first in (0..self.strip.variant.width).step_by(columns as usize) {
                self.add_fresh(&fresh, first);
            }
        }
        self.release(&self.values);
    }

    /// Adds a tile's own accumulators, from a column on.
    fn add_fresh(&self, fresh: &Accumulators<'k>, first: u32) {
        self.multiply_values(fresh, first, false);
        self.strip.k.wgmma_wait_group(0);
        self.strip.add_accumulators(fresh, first);
    }

    /// Issues the MMAs of weights and some columns of the next tile of values.
    fn multiply_values(&self, accumulators: &Accumulators<'k>, column: u32, added: bool) {
        let (k, layout) = (self.strip.k, &self.shared.layout);
        let values = self.values.as_values();
        let transposed = Transposed { left: false, right: true };
        let steps = self.strip.variant.tile.keys / 16;
        k.wgmma_fence();
        let pieces = self.strip.variant.products().iter();
        let pieces = pieces.flat_map(|(left, right)| (0..steps).map(move |s| (*left, *right, s)));
        for (nth, (left, right, step)) in pieces.enumerate() {
            let words = &self.strip.weights[left as usize][4 * step as usize..];
            let weights = [0, 1, 2, 3].map(|word: usize| words[word].get());
            let value = values.at(layout.tile_chunk(right, column / 64) + 16 * 128 * step);
            let (left, added) = (Left::Registers(weights), self.truth(added || nth > 0));
            accumulators.multiply(self.mma_type(), left, value, added, transposed);
        }
        k.wgmma_commit_group();
    }

    /// Releases a tile, and advances to the next one.
    fn release(&self, walk: &Walk<'k>) {
        walk.empty().arrive_if(self.strip.k.lane().equals(0));
        walk.advance();
    }
}

/// Signals that all scores of a task have been computed, unless the results reuse the memory of the
/// queries.
impl Consumer<'_, '_> {
    fn release_queries(&self) {
        if self.shared.layout.apart() || self.strip.variant.output != Output::Tiles {
            self.shared.queries_empty().arrive_if(self.strip.k.lane().equals(0));
        }
    }
}

/// Lets the first consumer start without waiting.
fn release_first_consumer(k: &Code, variant: &Variant, number: Val<'_, u32>) {
    let last = variant.tile.consumers - 1;
    if last > 0 && variant.form == Form::Overlapped {
        k.when(number.equals(last), || k.arrive(PING_PONG_BARRIER, 256));
    }
}

/// Consumers issue their MMAs alternately (ping-pong scheduling).
impl Consumer<'_, '_> {
    fn is_ping_pong(&self) -> bool {
        self.strip.variant.tile.consumers > 1
    }

    fn wait_for_mma_slot(&self) {
        if self.is_ping_pong() {
            self.strip.k.sync_named(self.number + PING_PONG_BARRIER, 256);
        }
    }

    fn pass_mma_slot(&self) {
        if self.is_ping_pong() {
            let next = self.number + 1;
            let next = next.equals(self.strip.variant.tile.consumers).select::<u32>(0, next);
            self.strip.k.arrive(next + PING_PONG_BARRIER, 256);
        }
    }
}
