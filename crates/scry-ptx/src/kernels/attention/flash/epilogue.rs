//! Results leave: as tiles through shared memory, as rows, or as partial sums.

use super::consumer::Consumer;
use super::layout::ROW;
use super::params::{Out, Rows};
use super::softmax::{of_row, scaled};
use crate::kernels::attention::scalar::{Rounding, wide};
use crate::typed::{Global, Ptr, Shared, Val};

/// The first of the barriers of the threads of each consumer.
const OWN: u32 = 4;

pub(super) fn write(consumer: &Consumer<'_, '_>) {
    match &consumer.params.out {
        Out::Tiles(map) => tiles(consumer, *map),
        Out::Rows(rows) => each_row(consumer, rows),
        Out::Partial(sums, extents) => partial(consumer, *sums, *extents),
    }
}

/// Divides sums by the totals of weights; a row without weights is 0.
fn normalise(consumer: &Consumer<'_, '_>) {
    let factor = |row| {
        let total = consumer.softmax.total(row);
        total.equals(0.0).select::<f32>(0.0, total.recip())
    };
    scaled(&consumer.sums, [factor(0), factor(1)]);
}

/// Puts the tile where the queries were, and has it copied from there, which leaves out the rows
/// and columns that there are none of.
fn tiles<'k>(consumer: &Consumer<'k, '_>, map: Val<'k, u64>) {
    let (k, task) = (consumer.k, consumer.task);
    normalise(consumer);
    let own = consumer.number + OWN;
    k.sync_some(own, 128);
    let tile = consumer.shared.queries(consumer.number);
    stage(consumer, tile);
    k.fence_async();
    k.sync_some(own, 128);
    let first = (k.warp() & 3).equals(0);
    k.when(first, || {
        k.when(k.elected(), || {
            let row = task.first_row + consumer.number * 64;
            for chunk in 0..consumer.variant.chunks() {
                let from = tile.offset(consumer.shared.layout.query_chunk(0, chunk).into());
                k.write_tile(from, map, [k.constant(64 * chunk), row, task.head, task.batch]);
            }
            k.commit_tiles();
            k.wait_tiles(0);
        });
    });
}

/// Stores sums as halves: 16 rows of 16 columns with each instruction of a warp, swizzled.
fn stage<'k>(consumer: &Consumer<'k, '_>, tile: Ptr<'k, Shared, u8>) {
    let k = consumer.k;
    let (lane, warp) = (k.lane(), k.warp() & 3);
    let row = tile.plus_bytes((warp * 16 + (lane & 15)) * ROW);
    let rounding = Rounding::to(consumer.variant.element);
    for pair in 0..4 {
        let piece = ((lane >> 4) + 2 * pair) ^ (lane & 7);
        let at = row.plus_bytes(piece * 16);
        for chunk in 0..consumer.variant.chunks() {
            let first = (chunk * 32 + pair * 8) as usize;
            let word = |nth: usize| {
                let low = first + 2 * nth;
                rounding.word([consumer.sums.get(low), consumer.sums.get(low + 1)])
            };
            let at = at.offset(consumer.shared.layout.query_chunk(0, chunk).into());
            k.store_matrices(at, [0, 1, 2, 3].map(word));
        }
    }
}

/// Writes the numbers of a row that this thread has.
fn row<'k>(consumer: &Consumer<'k, '_>, half: usize, to: Ptr<'k, Global, f32>) {
    let k = consumer.k;
    let to = to.at(consumer.column);
    for nth in of_row(&consumer.sums, half).step_by(2) {
        let column = 8 * (nth / 4) as u32;
        for odd in 0..2 {
            let inside = (consumer.column + (column + odd)).lt(consumer.params.head_dim);
            let value = consumer.sums.get(nth + odd as usize);
            k.when(inside, || to.at(column + odd).store(value));
        }
    }
}

fn each_row<'k>(consumer: &Consumer<'k, '_>, rows: &Rows<'k>) {
    normalise(consumer);
    for half in 0..2 {
        let inside = (consumer.row + 8 * half as u32).lt(consumer.params.queries);
        consumer.k.when(inside, || {
            row(consumer, half, rows.row(4, consumer.query(half)).cast());
        });
    }
}

/// Writes what other parts of the keys are combined with: sums, and of each row its scaled maximum
/// and its total.
fn partial<'k>(
    consumer: &Consumer<'k, '_>,
    sums: Ptr<'k, Global, f32>,
    extents: Ptr<'k, Global, f32>,
) {
    let (k, params, task) = (consumer.k, consumer.params, consumer.task);
    for half in 0..2 {
        let (total, most) = (consumer.softmax.total(half), consumer.softmax.extent(half));
        let inside = (consumer.row + 8 * half as u32).lt(params.queries * params.group);
        k.when(inside, || {
            let [batch, head, query] = consumer.query(half);
            let head = (task.part * params.batch + batch) * params.heads + head;
            let nth = wide(head) * wide(params.queries) + wide(query);
            row(consumer, half, sums.at_wide(nth * wide(params.head_dim)));
            k.when(consumer.column.equals(0), || {
                extents.at_wide(nth * 2).store_vector([most, total]);
            });
        });
    }
}
