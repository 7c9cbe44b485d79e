//! Split-KV reduction: combines the partial results of slices of the keys.
//!
//! A slice `s` has for each row the maximum `max_s` of its scores, times log2(e), the total of its
//! weights, and accumulators: the weighted sums of its values. Weights are relative to the maximum,
//! so that with `w_s = 2^(max_s - max)` the result is
//! `sum(w_s * accumulators_s) / sum(w_s * total_s)`.

use super::scalar::{store_element, to_u64};
use super::shape::{Attention, Strides, argument_error};
use crate::kernels::name::Name;
use crate::kernels::{
    BufferAccess, BufferParameter, KernelInterface, LaunchShape, Parameter, PlanError, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Global, KernelBuilder, Ptr, Shared, Val, Var};
use crate::types::PtxType;

/// Warps per block. Each reduces every eighth slice of a row.
const WARPS: u32 = 8;

/// One block per row. Lane `l` has the columns `l`, `l + 32`, ….
#[derive(Debug)]
pub(super) struct Combine {
    attention: Attention,
    slices: u32,
    rows: u32,
}

fn rows(attention: &Attention) -> u64 {
    [attention.batch, attention.heads, attention.queries]
        .into_iter()
        .map(u64::from)
        .fold(1, u64::saturating_mul)
}

/// Returns the number of accumulators, and of maxima and totals, over all slices.
pub(super) fn partial_lens(attention: &Attention, slices: u32) -> [u64; 2] {
    let rows = rows(attention).saturating_mul(slices.into());
    [rows.saturating_mul(attention.head_dim.into()), rows.saturating_mul(2)]
}

impl Combine {
    pub(super) fn new(attention: Attention, slices: u32) -> Result<Self, PlanError> {
        let all = rows(&attention);
        let rows = u32::try_from(all).ok().filter(|rows| *rows < 1 << 31);
        let too_many = || {
            let queries = attention.queries;
            let problem = format!("{queries}, in all {all} rows, above the limit of a launch");
            argument_error(
                "queries",
                problem,
                "split the batch, heads or queries over several calls",
            )
        };
        Ok(Self { attention, slices, rows: rows.ok_or_else(too_many)? })
    }

    /// Returns the bytes of the partial results.
    pub(super) fn bytes(&self) -> [u64; 2] {
        partial_lens(&self.attention, self.slices).map(|len| 4 * len)
    }

    fn lane_columns(&self) -> u32 {
        self.attention.head_dim.div_ceil(32)
    }
}

impl PtxKernel for Combine {
    fn name(&self) -> String {
        let name = Name::new("attention_combine").with(self.attention.element.name());
        name.with(format_args!("d{}", 32 * self.lane_columns())).build()
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxEntry {
        let (lane_columns, element) = (self.lane_columns(), self.attention.element);
        typed::kernel(&self.name(), target, [32 * WARPS, 1, 1], |k| {
            combine(k, lane_columns, element)
        })
    }

    fn pdl_reads(&self) -> Option<&'static [usize]> {
        Some(&[])
    }

    fn launch(&self) -> LaunchShape {
        LaunchShape { grid: [self.rows, 1, 1], block: [32 * WARPS, 1, 1], dynamic_shared: 0 }
    }

    fn interface(&self) -> KernelInterface {
        let arguments = self.attention.buffers().expect("they were checked when the plan was made");
        let partial = |(name, len)| BufferParameter {
            name,
            access: BufferAccess::Read,
            element: PtxType::F32,
            len,
        };
        let partial_lens = partial_lens(&self.attention, self.slices);
        let mut buffers: Vec<_> =
            ["accumulators", "stats"].into_iter().zip(partial_lens).map(partial).collect();
        buffers.extend(arguments.last().cloned());
        let mut parameters: Vec<_> = (0..3).map(Parameter::Pointer).collect();
        let Strides { batch, head, row } = self.attention.out;
        parameters.extend([batch, head, row].map(Parameter::U64));
        let counts = [
            self.attention.heads,
            self.attention.queries,
            self.attention.head_dim,
            self.slices,
            self.rows,
        ];
        parameters.extend(counts.map(Parameter::U32));
        KernelInterface { buffers, parameters }
    }
}

fn combine(k: &KernelBuilder, lane_columns: u32, element: PtxType) {
    k.pdl_wait();
    k.pdl_launch_dependents();
    let row = Row::new(k);
    let out = k.pointer_param::<u8>("out");
    let strides =
        ["batch", "head", "row"].map(|axis| k.scalar_param::<u64>(&format!("out_{axis}_stride")));
    let [heads, queries] = ["heads", "queries"].map(|name| k.scalar_param::<u32>(name));
    let counts = ["head_dim", "slices", "rows"].map(|name| k.scalar_param::<u32>(name));
    let (total, accumulators) = row.reduce_slices(lane_columns, counts);
    let shared = k.shared::<f32>(WARPS * (32 * lane_columns + 1), 4);
    let total = row.reduce_warps(shared, total);
    let factor = total.eq(0.0).select::<f32>(0.0, total.recip());
    let (head, query) = (row.row_index / queries, row.row_index % queries);
    let coordinates = [head / heads, head % heads, query];
    let [batch, head, query] = [0, 1, 2].map(|axis| to_u64(coordinates[axis]) * strides[axis]);
    for (index, sum) in accumulators.into_iter().enumerate() {
        let (tile, column) =
            (shared.at(WARPS + 32 * WARPS * index as u32), row.column(index as u32));
        tile.at(row.warp * 32 + row.lane).store(sum);
        k.sync();
        k.if_then(row.warp.eq(0) & column.lt(counts[0]), || {
            let warp_sums = (0..WARPS).map(|warp| tile.at(row.lane + 32 * warp).load());
            let sum = warp_sums.reduce(|a, b| a + b).expect("there are several warps");
            store_element(element, out, batch + head + query + to_u64(column), sum * factor);
        });
    }
}

/// The row of a block, and its operands.
struct Row<'k> {
    k: &'k KernelBuilder,
    accumulators: Ptr<'k, Global, f32>,
    /// Maximum and total of each row and slice.
    stats: Ptr<'k, Global, f32>,
    /// Index over all heads of the batch.
    row_index: Val<'k, u32>,
    lane: Val<'k, u32>,
    warp: Val<'k, u32>,
}

impl<'k> Row<'k> {
    fn new(k: &'k KernelBuilder) -> Self {
        let (accumulators, stats) = (k.pointer_param("accumulators"), k.pointer_param("stats"));
        Self { k, accumulators, stats, row_index: k.block_id(0), lane: k.lane(), warp: k.warp() }
    }

    fn column(&self, index: u32) -> Val<'k, u32> {
        self.lane + 32 * index
    }

    /// Returns the index of this row's partial result for a slice.
    fn partial_index(&self, slice: Val<'k, u32>, rows: Val<'k, u32>) -> Val<'k, u64> {
        to_u64(slice) * to_u64(rows) + to_u64(self.row_index)
    }

    /// Returns the total and the accumulators, summed over the slices that this warp reduces.
    fn reduce_slices(
        &self,
        lane_columns: u32,
        [head_dim, slices, rows]: [Val<'k, u32>; 3],
    ) -> (Val<'k, f32>, Vec<Val<'k, f32>>) {
        let k = self.k;
        let max = self.row_max(slices, rows);
        let total = k.var(0.0f32);
        let accumulators: Vec<_> = (0..lane_columns).map(|_| k.var(0.0f32)).collect();
        k.for_range(self.warp, slices, WARPS, |slice| {
            let index = self.partial_index(slice, rows);
            let [slice_max, slice_total] = self.stats.at_wide(index * 2).load_constant_vector();
            let weight = (slice_max - max).exp2();
            total.set(slice_total.mul_add(weight, total.get()));
            let from = self.accumulators.at_wide(index * to_u64(head_dim));
            for (index, accumulator) in accumulators.iter().enumerate() {
                let column = self.column(index as u32);
                k.if_then(column.lt(head_dim), || {
                    let sum = from.at(column).load_constant();
                    accumulator.set(sum.mul_add(weight, accumulator.get()));
                });
            }
        });
        (total.get(), accumulators.into_iter().map(Var::get).collect())
    }

    /// Returns the maximum score times log2(e); 0 if all are minus infinity.
    fn row_max(&self, slices: Val<'k, u32>, rows: Val<'k, u32>) -> Val<'k, f32> {
        let max = self.k.var(f32::NEG_INFINITY);
        self.k.for_range(self.lane, slices, 32, |slice| {
            let address = self.stats.at_wide(self.partial_index(slice, rows) * 2);
            max.set(max.get().max(address.load_constant()));
        });
        let max = self.k.reduce_warp(max.get(), 32, |a, b| a.max(b));
        max.eq(f32::NEG_INFINITY).select(0.0, max)
    }

    /// Returns the sum of a value over all warps.
    fn reduce_warps(&self, shared: Ptr<'k, Shared, f32>, value: Val<'k, f32>) -> Val<'k, f32> {
        self.k.if_then(self.lane.eq(0), || shared.at(self.warp).store(value));
        self.k.sync();
        let totals = (0..WARPS).map(|warp| shared.at(warp).load());
        totals.reduce(|a, b| a + b).expect("there are several warps")
    }
}
