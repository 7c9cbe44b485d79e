//! The producer: one thread issues all TMA loads, as far ahead as the rings allow.

use super::Variant;
use super::layout::{Places, Walk};
use super::params::Params;
use super::schedule::Task;
use crate::typed::{Code, Val};

pub(super) fn copy<'k>(
    k: &'k Code,
    variant: &Variant,
    params: &Params<'k>,
    maps: [Val<'k, u64>; 3],
    shared: &Places<'k>,
) {
    if let Some((registers, _)) = variant.registers() {
        k.release_registers(registers);
    }
    let (keys, values) = (shared.keys().walk(k), shared.values().walk(k));
    let work = |task, parity| {
        let producer = Producer { k, variant, params, maps, shared, task, keys, values };
        producer.run(parity);
    };
    let first = k.warp().equals(4 * variant.tile.consumers);
    k.when(first, || k.when(k.elect_one(), || params.each_task(k, variant, work)));
}

struct Producer<'k, 'a> {
    k: &'k Code,
    variant: &'a Variant,
    params: &'a Params<'k>,
    maps: [Val<'k, u64>; 3],
    shared: &'a Places<'k>,
    task: Task<'k>,
    keys: Walk<'k>,
    values: Walk<'k>,
}

impl<'k> Producer<'k, '_> {
    /// Loads the operands of a task. The queries come second, since their memory is released last.
    fn run(&self, parity: Val<'k, u32>) {
        let last = self.task.end - 1;
        self.tile(&self.keys, 1, last);
        self.shared.queries_empty().wait(parity ^ 1);
        self.queries();
        self.tile(&self.values, 2, last);
        let left = self.k.var(last);
        self.k.repeat(|exit| {
            exit.when(left.get().le(self.task.begin));
            left.set(left.get() - 1);
            self.tile(&self.keys, 1, left.get());
            self.tile(&self.values, 2, left.get());
        });
    }

    /// Returns the batch coordinate of a term.
    fn batch(&self, part: u32) -> Val<'k, u32> {
        self.params.batch.mul_add(part, self.task.batch)
    }

    /// Returns the terms and column chunks of an operand.
    fn pieces(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let chunks = self.variant.chunks();
        (0..self.variant.parts).flat_map(move |part| (0..chunks).map(move |chunk| (part, chunk)))
    }

    fn queries(&self) {
        let (k, full) = (self.k, self.shared.queries_full());
        let rows = if self.variant.packed() {
            self.params.queries * self.params.group
        } else {
            k.constant(64 * self.variant.tile.consumers).copied()
        };
        full.arrive_expect_tx(rows * (128 * self.variant.chunks() * self.variant.parts));
        for consumer in 0..self.variant.tile.consumers {
            let to = self.shared.queries(k.constant(consumer));
            for (part, chunk) in self.pieces() {
                let to = to.offset(self.shared.layout.query_chunk(part, chunk).into());
                let (column, batch) = (k.constant(64 * chunk), self.batch(part));
                let (map, task) = (self.maps[0], self.task);
                if self.variant.packed() {
                    let zero = k.constant(0u32);
                    k.tma_load(to, map, [column, zero, zero, task.kv_head, batch], full);
                } else {
                    let row = task.first_row + 64 * consumer;
                    k.tma_load(to, map, [column, row, task.head, batch], full);
                }
            }
        }
    }

    /// Loads the next tile of an operand once its stage is empty.
    fn tile(&self, walk: &Walk<'k>, operand: usize, nth: Val<'k, u32>) {
        walk.wait_empty();
        let full = walk.full();
        full.arrive_expect_tx(self.shared.layout.tile());
        let (to, row) = (walk.tile(), nth * self.variant.tile.keys);
        for (part, chunk) in self.pieces() {
            let to = to.offset(self.shared.layout.tile_chunk(part, chunk).into());
            let at = [self.k.constant(64 * chunk), row, self.task.kv_head, self.batch(part)];
            self.k.tma_load(to, self.maps[operand], at, full);
        }
        walk.advance();
    }
}
