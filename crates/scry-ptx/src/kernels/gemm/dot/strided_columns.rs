//! Skinny GEMM with an N-contiguous (row-major) `b` of any alignment: the lanes of a warp read
//! adjacent elements of a row of `b` (coalesced), and the rows, that is K indices, are distributed
//! round-robin over warps and blocks.

use super::cluster_reduce::ReceiveBuffer;
use super::{Dot, Params, WARPS};
use crate::kernels::gemm::memory::{load_element_if, to_u64};
use crate::kernels::gemm::rasterization::BlockTile;
use crate::typed::{Val, Var};

/// Columns per block: two per lane.
pub(super) const COLUMNS: u32 = 64;

/// Writes the kernel's body.
pub(super) fn write<'k>(params: &Params<'k>, dot: &Dot, at: &BlockTile<'k>) {
    let (k, values) = (params.k, dot.rows() * COLUMNS);
    let receive = (dot.split_k > 1).then(|| ReceiveBuffer::new(k, dot.split_k, values));
    let memory = k.shared::<f32>(WARPS * values, 16);
    let accumulators: Vec<_> = (0..2 * dot.rows()).map(|_| k.var(0.0f32)).collect();
    accumulate(params, dot, at, &accumulators);
    let own = memory.at(k.warp() * values + k.lane());
    (0..).zip(&accumulators).for_each(|(nth, sum)| own.at(32 * nth).store(sum.get()));
    k.sync();
    let total = |nth: Val<'k, u32>| {
        let from = |warp: u32| memory.at(nth).at(warp * values).load();
        (1..WARPS).fold(from(0), |sum, warp| sum + from(warp))
    };
    let finish = |nth: Val<'k, u32>, sum| {
        params.finish(dot, at, [nth / COLUMNS, at.column + nth % COLUMNS], sum);
    };
    let each = |write: &dyn Fn(Val<'k, u32>)| {
        k.for_range(k.thread_id(), values, 32 * WARPS, write);
    };
    let Some(receive) = receive else { return each(&|nth| finish(nth, total(nth))) };
    k.wait_cluster();
    each(&|nth| receive.send(nth, total(nth)));
    receive.in_first_block(|| each(&|nth| finish(nth, receive.sum_over_blocks(nth))));
}

/// Accumulates the outer products for the K indices of this warp, with several loads in flight.
/// Elements out of bounds count as zero.
fn accumulate<'k>(
    params: &Params<'k>,
    dot: &Dot,
    at: &BlockTile<'k>,
    accumulators: &[Var<'k, f32>],
) {
    let (k, element, k_per_warp) = (params.k, dot.gemm.element, dot.loads_in_flight());
    let size = u64::from(element.size());
    let [a, b] = [0, 1]
        .map(|side| params.operands[side].at_wide(to_u64(at.batch) * params.strides[side] * size));
    let columns = [0, 32].map(|next| at.column + k.lane() + next);
    let a_rows: Vec<_> =
        (0..dot.rows()).map(|row| k.constant(row).copied().min(params.m - 1)).collect();
    let warp = if dot.split_k > 1 { k.cluster_rank() * WARPS + k.warp() } else { k.warp() };
    k.for_range(warp * k_per_warp, params.k_dim, WARPS * dot.split_k * k_per_warp, |first| {
        let k_indices: Vec<_> = (0..k_per_warp).map(|nth| first + nth).collect();
        let in_bounds: Vec<_> = k_indices.iter().map(|k_index| k_index.lt(params.k_dim)).collect();
        let across = |k_index: &Val<'k, u32>, side: usize| to_u64(*k_index) * params.ld[side];
        let columns = columns.map(|column| {
            let read = |(k_index, in_bounds): (&Val<'k, u32>, &Val<'k, bool>)| {
                let from = b.at_wide((across(k_index, 1) + to_u64(column)) * size);
                load_element_if(from, element, *in_bounds & column.lt(params.n))
            };
            k_indices.iter().zip(&in_bounds).map(read).collect::<Vec<_>>()
        });
        let rows = a_rows.iter().map(|row| {
            let read = |(k_index, in_bounds): (&Val<'k, u32>, &Val<'k, bool>)| {
                let offset = match dot.a_is_k_strided() {
                    true => across(k_index, 0) + to_u64(*row),
                    false => to_u64(*row) * params.ld[0] + to_u64(*k_index),
                };
                load_element_if(a.at_wide(offset * size), element, *in_bounds)
            };
            k_indices.iter().zip(&in_bounds).map(read).collect::<Vec<_>>()
        });
        super::accumulate(&[rows.collect(), columns.into()], accumulators);
    });
}
