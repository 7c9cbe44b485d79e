//! Blocks of a cluster that have multiplied a part of the common dimension each: they leave their
//! sums in shared memory, and each adds a share of them up, always in the same order.

use super::schedule::Schedule;
use super::store::{Place, Results};
use super::variant::{GROUP_ROWS, Store, Variant, WARP_ROWS, WARPGROUP};
use crate::kernels::gemm::Order;
use crate::kernels::gemm::memory::{load_number, store_number, wide};
use crate::typed::hopper::Sums;
use crate::typed::{Code, Ptr, Shared, Val};

/// The barrier of the warpgroups that multiply.
const BARRIER: u32 = 1;

/// Distance of rows in shared memory: neighbours along rows and columns lie in different banks.
const fn pitch(variant: &Variant) -> u32 {
    variant.tile.columns + 1
}

/// Leaves the sums where the stages were, once nobody multiplies any more.
pub(super) fn share(k: &Code, variant: Variant, memory: Ptr<'_, Shared, u8>, sums: &Sums<'_>) {
    k.sync_some(BARRIER, variant.tile.groups * WARPGROUP);
    let (lane, warp) = (k.lane(), k.warp());
    let row = (warp >> 2) * GROUP_ROWS + (warp & 3) * WARP_ROWS + (lane >> 2);
    let to = memory.cast::<f32>().at(row * pitch(&variant) + (lane & 3) * 2);
    for eight in 0..sums.columns() / 8 {
        for nth in 0..4 {
            let at = eight * 8 + nth % 2 + nth / 2 * 8 * pitch(&variant);
            to.at(at).store(sums.get((4 * eight + nth) as usize));
        }
    }
}

/// Adds up and writes the block's share of the tile; what the threads do that multiply.
pub(super) fn write(
    k: &Code,
    variant: Variant,
    memory: Ptr<'_, Shared, u8>,
    schedule: &Schedule<'_>,
    results: &Results<'_>,
) {
    let (Place::Memory(lines), Store::Team(order)) = (results.place, variant.store) else {
        return;
    };
    let Variant { tile, output, finish, .. } = variant;
    let (part, threads) = (schedule.of_team(), tile.groups * WARPGROUP);
    let stride = wide(part.result) * lines.stride;
    let (first, step) = (schedule.rank() * threads + k.thread_id(), threads * tile.team);
    // Another block's memory is far away: several sums are fetched before one is written.
    let each = tile.columns / (2 * tile.team);
    let batch = [8, 4, 2].into_iter().find(|batch| each % batch == 0).unwrap_or(1);
    k.for_range(first, tile.rows() * tile.columns, step * batch, |nth| {
        let places = (0..batch).map(|other| within_tile(order, &variant, nth + step * other));
        let places: Vec<_> = places.collect();
        let sums = places.iter().map(|[row, column]| {
            total(memory.cast::<f32>().at(*row * pitch(&variant) + *column), tile.team)
        });
        let sums: Vec<_> = sums.collect();
        for ([row, column], sum) in places.into_iter().zip(sums) {
            let (row, column) = (part.row + row, part.column + column);
            let (line, nth) = if order == Order::Rows { (row, column) } else { (column, row) };
            let element = stride + wide(line) * lines.leading + wide(nth);
            let to = lines.start.at_wide(element * u64::from(output.size()));
            k.when(row.lt(results.m) & column.lt(results.n), || {
                let bias = results.bias_of(row, column);
                let was = finish.reads.then(|| load_number(to, output, false));
                let value = results.factors.finish(finish.activation, sum, was, bias);
                store_number(to, output, value);
            });
        }
    });
}

/// Row and column of an element, counted as results lie in memory.
fn within_tile<'k>(order: Order, variant: &Variant, nth: Val<'k, u32>) -> [Val<'k, u32>; 2] {
    let line = match order {
        Order::Rows => variant.tile.columns,
        Order::Columns => variant.tile.rows(),
    };
    let (outer, inner) = (nth / line, nth % line);
    if order == Order::Rows { [outer, inner] } else { [inner, outer] }
}

/// The sum over the blocks of the team.
fn total<'k>(at: Ptr<'k, Shared, f32>, team: u32) -> Val<'k, f32> {
    let shares: Vec<_> = (0..team).map(|block| at.load_in(block)).collect();
    shares.into_iter().reduce(|sum, share| sum + share).expect("a team has a block")
}
