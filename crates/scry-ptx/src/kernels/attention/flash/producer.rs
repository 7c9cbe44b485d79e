//! The producer: one thread issues all TMA loads, as far ahead as the rings allow.

use super::Variant;
use super::layout::{RingCursor, SharedMemory};
use super::params::Params;
use super::schedule::Task;
use crate::typed::{KernelBuilder, Val};

/// Indices in [`Producer::maps`].
const QUERIES: usize = 0;
const KEYS: usize = 1;
const VALUES: usize = 2;

/// Writes the code of the producer.
pub(super) fn write<'k>(
    k: &'k KernelBuilder,
    variant: &Variant,
    params: &Params<'k>,
    maps: [Val<'k, u64>; 3],
    shared: &SharedMemory<'k>,
) {
    if let Some((registers, _)) = variant.registers() {
        k.setmaxnreg_dec(registers);
    }
    let (keys, values) = (shared.keys().cursor(k), shared.values().cursor(k));
    let work = |task, parity| {
        let producer = Producer { k, variant, params, maps, shared, task, keys, values };
        producer.run(parity);
    };
    let is_producer = k.warp().eq(4 * variant.tile.consumers);
    k.if_then(is_producer, || k.if_then(k.elect_one(), || params.for_each_task(k, variant, work)));
}

struct Producer<'k, 'a> {
    k: &'k KernelBuilder,
    variant: &'a Variant,
    params: &'a Params<'k>,
    maps: [Val<'k, u64>; 3],
    shared: &'a SharedMemory<'k>,
    task: Task<'k>,
    keys: RingCursor<'k>,
    values: RingCursor<'k>,
}

impl<'k> Producer<'k, '_> {
    /// Loads the operands of a task. The queries are loaded after the first tile of keys, since
    /// their memory is released last.
    fn run(&self, parity: Val<'k, u32>) {
        let last = self.task.end - 1;
        self.load_tile(&self.keys, KEYS, last);
        self.shared.queries_empty().wait(parity ^ 1);
        self.load_queries();
        self.load_tile(&self.values, VALUES, last);
        let tile = self.k.var(last);
        self.k.loop_(|exit| {
            exit.break_if(tile.get().le(self.task.begin));
            tile.set(tile.get() - 1);
            self.load_tile(&self.keys, KEYS, tile.get());
            self.load_tile(&self.values, VALUES, tile.get());
        });
    }

    /// Returns the batch coordinate of a term.
    fn batch_of(&self, term: u32) -> Val<'k, u32> {
        self.params.batch.mul_add(term, self.task.batch)
    }

    /// Returns the terms and column chunks of an operand.
    fn term_chunks(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let chunks = self.variant.chunks();
        (0..self.variant.terms).flat_map(move |term| (0..chunks).map(move |chunk| (term, chunk)))
    }

    /// Loads the queries of all consumers.
    fn load_queries(&self) {
        let (k, full) = (self.k, self.shared.queries_full());
        let rows = if self.variant.packs_heads() {
            self.params.queries * self.params.group_size
        } else {
            k.constant(64 * self.variant.tile.consumers).copied()
        };
        full.arrive_expect_tx(rows * (128 * self.variant.chunks() * self.variant.terms));
        for consumer in 0..self.variant.tile.consumers {
            let to = self.shared.queries(k.constant(consumer));
            for (term, chunk) in self.term_chunks() {
                let to = to.offset(self.shared.layout.query_chunk(term, chunk).into());
                let (column, batch) = (k.constant(64 * chunk), self.batch_of(term));
                let (map, task) = (self.maps[QUERIES], self.task);
                if self.variant.packs_heads() {
                    let zero = k.constant(0u32);
                    k.tma_load(to, map, [column, zero, zero, task.kv_head, batch], full);
                } else {
                    let row = task.first_row + 64 * consumer;
                    k.tma_load(to, map, [column, row, task.head, batch], full);
                }
            }
        }
    }

    /// Loads tile `nth` of an operand into the next stage, once that is empty.
    fn load_tile(&self, cursor: &RingCursor<'k>, operand: usize, nth: Val<'k, u32>) {
        cursor.wait_empty();
        let full = cursor.full();
        full.arrive_expect_tx(self.shared.layout.tile_bytes());
        let (to, row) = (cursor.tile(), nth * self.variant.tile.keys);
        for (term, chunk) in self.term_chunks() {
            let to = to.offset(self.shared.layout.tile_chunk(term, chunk).into());
            let at = [self.k.constant(64 * chunk), row, self.task.kv_head, self.batch_of(term)];
            self.k.tma_load(to, self.maps[operand], at, full);
        }
        cursor.advance();
    }
}
