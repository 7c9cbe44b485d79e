//! The epilogue: stores results through TMA, as rows, or as partial results.

use super::consumer::Consumer;
use super::layout::ROW;
use super::params::{Out, Rows};
use super::softmax::row_registers;
use super::strip::Strip;
use super::{Output, Variant};
use crate::kernels::attention::scalar::{Rounding, to_u64};
use crate::typed::{Global, KernelBuilder, Ptr, Shared, Val};

/// The first of the named barriers that synchronise the threads of a consumer, one per consumer.
const CONSUMER_BARRIER: u32 = 4;

/// Stores the results of a task.
pub(super) fn store_results(consumer: &Consumer<'_, '_>) {
    let strip = &consumer.strip;
    match &strip.params.out {
        Out::Tiles(map) => store_tiles(consumer, *map),
        Out::Rows(rows) => store_rows(strip, rows),
        Out::Partial(accumulators, stats) => store_partial(strip, *accumulators, *stats),
    }
}

/// Stages the tile in shared memory and stores it through TMA, which omits out-of-bounds rows and
/// columns. One thread issues the stores of all tiles of a consumer.
fn store_tiles<'k>(consumer: &Consumer<'k, '_>, map: Val<'k, u64>) {
    let (strip, shared) = (&consumer.strip, consumer.shared);
    let (k, task) = (strip.k, strip.task);
    strip.normalise();
    let barrier = consumer.index + CONSUMER_BARRIER;
    let first = (k.thread_id() & 127).eq(0);
    k.if_then(first, || k.bulk_wait_group_read(0));
    k.sync_named(barrier, 128);
    let tile = shared.results(consumer.index);
    stage(consumer, tile);
    k.fence_proxy_async();
    k.sync_named(barrier, 128);
    k.if_then(first, || {
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
    if !shared.layout.has_result_buffer() {
        k.if_then(first, || k.bulk_wait_group_read(0));
        shared.queries_empty().arrive_if(k.lane().eq(0));
    }
}

/// Waits until TMA has read shared memory, before the block exits.
pub(super) fn wait_for_stores(k: &KernelBuilder, variant: &Variant) {
    if variant.output == Output::Tiles {
        k.if_then((k.thread_id() & 127).eq(0), || k.bulk_wait_group_read(0));
    }
}

/// Stages accumulators as 16-bit floats: 16 rows × 16 columns per `stmatrix`, swizzled.
fn stage<'k>(consumer: &Consumer<'k, '_>, tile: Ptr<'k, Shared, u8>) {
    let (strip, layout) = (&consumer.strip, &consumer.shared.layout);
    let k = strip.k;
    let (lane, warp) = (k.lane(), k.warp() & 3);
    let row = tile.plus_bytes((warp * 16 + (lane & 15)) * ROW);
    let rounding = Rounding::new(strip.variant.element);
    for pair in 0..4 {
        let chunk_index = ((lane >> 4) + 2 * pair) ^ (lane & 7);
        let at = row.plus_bytes(chunk_index * 16);
        for chunk in 0..strip.variant.chunks() {
            let first = (chunk * 32 + pair * 8) as usize;
            let word = |nth: usize| {
                let low = first + 2 * nth;
                rounding.pack([strip.accumulators.get(low), strip.accumulators.get(low + 1)])
            };
            let at = at.offset(layout.query_chunk(0, chunk).into());
            k.stmatrix(at, [0, 1, 2, 3].map(word));
        }
    }
}

/// Stores this thread's elements of one of its two rows, as `f32`.
fn store_row_f32<'k>(strip: &Strip<'k, '_>, thread_row: usize, to: Ptr<'k, Global, f32>) {
    let to = to.at(strip.column);
    for nth in row_registers(&strip.accumulators, thread_row).step_by(2) {
        let column = 8 * (nth / 4) as u32;
        for column_parity in 0..2 {
            let in_bounds = (strip.column + (column + column_parity)).lt(strip.params.head_dim);
            let value = strip.accumulators.get(nth + column_parity as usize);
            strip.k.if_then(in_bounds, || to.at(column + column_parity).store(value));
        }
    }
}

/// Stores this thread's elements of one of its two rows as 16-bit floats, two at once.
fn store_row_16bit<'k>(strip: &Strip<'k, '_>, thread_row: usize, to: Ptr<'k, Global, u32>) {
    let to = to.at(strip.column >> 1);
    let rounding = Rounding::new(strip.variant.element);
    for nth in row_registers(&strip.accumulators, thread_row).step_by(2) {
        let column = 8 * (nth / 4) as u32;
        let in_bounds = (strip.column + column).lt(strip.params.head_dim);
        let word = rounding.pack([strip.accumulators.get(nth), strip.accumulators.get(nth + 1)]);
        strip.k.if_then(in_bounds, || to.at(column / 2).store(word));
    }
}

/// Stores results row by row.
pub(super) fn store_rows<'k>(strip: &Strip<'k, '_>, rows: &Rows<'k>) {
    strip.normalise();
    for thread_row in 0..2 {
        let in_bounds = (strip.row + 8 * thread_row as u32).lt(strip.params.queries);
        let query = strip.query(thread_row);
        strip.k.if_then(in_bounds, || match strip.variant.terms {
            1 => store_row_16bit(strip, thread_row, rows.row_address(2, query).cast()),
            _ => store_row_f32(strip, thread_row, rows.row_address(4, query).cast()),
        });
    }
}

/// Stores partial results for [`Combine`](super::super::combine): accumulators, and for each row
/// its scaled maximum and its total.
fn store_partial<'k>(
    strip: &Strip<'k, '_>,
    accumulators: Ptr<'k, Global, f32>,
    stats: Ptr<'k, Global, f32>,
) {
    let (params, task) = (strip.params, strip.task);
    for thread_row in 0..2 {
        let max_and_total = strip.max_and_total(thread_row);
        let in_bounds = (strip.row + 8 * thread_row as u32).lt(params.queries * params.group_size);
        strip.k.if_then(in_bounds, || {
            let [batch, head, query] = strip.query(thread_row);
            let head = (task.slice * params.batch + batch) * params.heads + head;
            let nth = to_u64(head) * to_u64(params.queries) + to_u64(query);
            store_row_f32(strip, thread_row, accumulators.at_wide(nth * to_u64(params.head_dim)));
            strip.k.if_then(strip.column.eq(0), || {
                stats.at_wide(nth * 2).store_vector(max_and_total);
            });
        });
    }
}
