//! The producer: one thread asks for copies of all tiles, as far ahead as the rings allow.

use super::Variant;
use super::layout::{Places, Walk};
use super::params::{Params, Task};
use crate::typed::{Code, Val};

pub(super) fn copy<'k>(
    k: &'k Code,
    variant: &Variant,
    params: &Params<'k>,
    shared: &Places<'k>,
    task: &Task<'k>,
) {
    if let Some((few, _)) = variant.registers() {
        k.release_registers(few);
    }
    let producer = Producer { k, variant, params, shared, task };
    k.when(k.warp().equals(0), || k.when(k.elected(), || producer.run()));
}

struct Producer<'k, 'a> {
    k: &'k Code,
    variant: &'a Variant,
    params: &'a Params<'k>,
    shared: &'a Places<'k>,
    task: &'a Task<'k>,
}

impl<'k> Producer<'k, '_> {
    fn run(&self) {
        let [_, keys, values] = self.params.maps;
        self.queries();
        let (key, value) = (self.shared.keys().walk(self.k), self.shared.values().walk(self.k));
        let left = self.k.var(self.task.end);
        self.k.repeat(|exit| {
            exit.when(left.get().le(self.task.begin));
            left.set(left.get() - 1);
            self.tile(&key, keys, left.get());
            self.tile(&value, values, left.get());
        });
    }

    /// The operand of the batch that has a part of each number.
    fn batch(&self, part: u32) -> Val<'k, u32> {
        self.params.batch.mul_add(part, self.task.batch)
    }

    /// The parts and chunks of columns of an operand.
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
        full.arrive_expecting(rows * (128 * self.variant.chunks() * self.variant.parts));
        for consumer in 0..self.variant.tile.consumers {
            let to = self.shared.queries(k.constant(consumer));
            for (part, chunk) in self.pieces() {
                let to = to.offset(self.shared.layout.query_chunk(part, chunk).into());
                let (column, batch) = (k.constant(64 * chunk), self.batch(part));
                let (map, task) = (self.params.maps[0], self.task);
                if self.variant.packed() {
                    let zero = k.constant(0u32);
                    k.fetch_tile(to, map, [column, zero, zero, task.kv_head, batch], full);
                } else {
                    let row = task.first_row + 64 * consumer;
                    k.fetch_tile(to, map, [column, row, task.head, batch], full);
                }
            }
        }
    }

    fn tile(&self, walk: &Walk<'k>, map: Val<'k, u64>, nth: Val<'k, u32>) {
        walk.wait_empty();
        let full = walk.full();
        full.arrive_expecting(self.shared.layout.tile());
        let (to, row) = (walk.tile(), nth * self.variant.tile.keys);
        for (part, chunk) in self.pieces() {
            let to = to.offset(self.shared.layout.tile_chunk(part, chunk).into());
            let at = [self.k.constant(64 * chunk), row, self.task.kv_head, self.batch(part)];
            self.k.fetch_tile(to, map, at, full);
        }
        walk.advance();
    }
}
