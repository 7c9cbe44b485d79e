//! The epilogue: stores results through TMA, as rows, or as partial results.

use super::consumer::Consumer;
use super::layout::ROW;
use super::params::{Out, Rows};
use super::softmax::of_row;
use super::strip::Strip;
use super::{Output, Variant};
use crate::kernels::attention::scalar::{Rounding, wide};
use crate::typed::{Code, Global, Ptr, Shared, Val};

/// The first of the named barriers of each consumer's threads.
const OWN: u32 = 4;

pub(super) fn write(consumer: &Consumer<'_, '_>) {
    let strip = &consumer.strip;
    match &strip.params.out {
        Out::Tiles(map) => tiles(consumer, *map),
        Out::Rows(rows) => each_row(strip, rows),
        Out::Partial(accumulators, extents) => partial(strip, *accumulators, *extents),
    }
}

/// Stages the tile in shared memory and stores it through TMA, which omits out-of-bounds rows and
/// columns. One thread issues the stores of all tiles of a consumer.
fn tiles<'k>(consumer: &Consumer<'k, '_>, map: Val<'k, u64>) {
    let (strip, shared) = (&consumer.strip, consumer.shared);
    let (k, task) = (strip.k, strip.task);
    strip.normalise();
    let own = consumer.number + OWN;
    let first = (k.thread_id() & 127).equals(0);
    k.when(first, || k.bulk_wait_group_read(0));
    k.sync_named(own, 128);
    let tile = shared.results(consumer.number);
    stage(consumer, tile);
    k.fence_proxy_async();
    k.sync_named(own, 128);
    k.when(first, || {
        for chunk in 0..strip.variant.chunks() {
            let from = tile.offset(shared.layout.query_chunk(0, chunk).into());
            k.tma_store(
                from,
                map,
                [k.constant(64 * chunk), strip.first_row, task.head, task.batch],
            );
        }
        k.bulk_commit_group();
    });
    if !shared.layout.apart() {
        k.when(first, || k.bulk_wait_group_read(0));
        shared.queries_empty().arrive_if(k.lane().equals(0));
    }
}

/// Waits until TMA has read shared memory.
pub(super) fn end(k: &Code, variant: &Variant) {
    if variant.output == Output::Tiles {
        k.when((k.thread_id() & 127).equals(0), || k.bulk_wait_group_read(0));
    }
}

/// Stages accumulators as 16-bit floats: 16 rows × 16 columns per `stmatrix`, swizzled.
fn stage<'k>(consumer: &Consumer<'k, '_>, tile: Ptr<'k, Shared, u8>) {
    let (strip, layout) = (&consumer.strip, &consumer.shared.layout);
    let k = strip.k;
    let (lane, warp) = (k.lane(), k.warp() & 3);
    let row = tile.plus_bytes((warp * 16 + (lane & 15)) * ROW);
    let rounding = Rounding::to(strip.variant.element);
    for pair in 0..4 {
        let piece = ((lane >> 4) + 2 * pair) ^ (lane & 7);
        let at = row.plus_bytes(piece * 16);
        for chunk in 0..strip.variant.chunks() {
            let first = (chunk * 32 + pair * 8) as usize;
            let word = |nth: usize| {
                let low = first + 2 * nth;
                rounding.word([strip.accumulators.get(low), strip.accumulators.get(low + 1)])
            };
            let at = at.offset(layout.query_chunk(0, chunk).into());
            k.stmatrix(at, [0, 1, 2, 3].map(word));
        }
    }
}

/// Stores this thread's elements of a row.
fn row<'k>(strip: &Strip<'k, '_>, half: usize, to: Ptr<'k, Global, f32>) {
    let to = to.at(strip.column);
    for nth in of_row(&strip.accumulators, half).step_by(2) {
        let column = 8 * (nth / 4) as u32;
        for odd in 0..2 {
            let inside = (strip.column + (column + odd)).lt(strip.params.head_dim);
            let value = strip.accumulators.get(nth + odd as usize);
            strip.k.when(inside, || to.at(column + odd).store(value));
        }
    }
}

/// Stores them as 16-bit floats, two at once.
fn row_of_halves<'k>(strip: &Strip<'k, '_>, half: usize, to: Ptr<'k, Global, u32>) {
    let to = to.at(strip.column >> 1);
    let rounding = Rounding::to(strip.variant.element);
    for nth in of_row(&strip.accumulators, half).step_by(2) {
        let column = 8 * (nth / 4) as u32;
        let inside = (strip.column + column).lt(strip.params.head_dim);
        let word = rounding.word([strip.accumulators.get(nth), strip.accumulators.get(nth + 1)]);
        strip.k.when(inside, || to.at(column / 2).store(word));
    }
}

/// Stores results row by row.
pub(super) fn each_row<'k>(strip: &Strip<'k, '_>, rows: &Rows<'k>) {
    strip.normalise();
    for half in 0..2 {
        let inside = (strip.row + 8 * half as u32).lt(strip.params.queries);
        let query = strip.query(half);
        strip.k.when(inside, || match strip.variant.parts {
            1 => row_of_halves(strip, half, rows.row(2, query).cast()),
            _ => row(strip, half, rows.row(4, query).cast()),
        });
    }
}

/// Stores partial results for [`Combine`](super::super::combine): accumulators, and for each row
/// its scaled maximum and its total.
fn partial<'k>(
    strip: &Strip<'k, '_>,
    accumulators: Ptr<'k, Global, f32>,
    extents: Ptr<'k, Global, f32>,
) {
    let (params, task) = (strip.params, strip.task);
    for half in 0..2 {
        let extent = strip.extent(half);
        let inside = (strip.row + 8 * half as u32).lt(params.queries * params.group);
        strip.k.when(inside, || {
            let [batch, head, query] = strip.query(half);
            let head = (task.part * params.batch + batch) * params.heads + head;
            let nth = wide(head) * wide(params.queries) + wide(query);
            row(strip, half, accumulators.at_wide(nth * wide(params.head_dim)));
            strip.k.when(strip.column.equals(0), || {
                extents.at_wide(nth * 2).store_vector(extent);
            });
        });
    }
}
