//! Split-KV reduction: combines the partial results of slices of the keys, `out = sum(w_p * sums_p)
//! / sum(w_p * total_p)`, where `w_p = 2^(most_p - most)`.

use super::scalar::{wide, write};
use super::shape::{Attention, Strides, refusal};
use crate::kernels::name::Name;
use crate::kernels::{
    BufferAccess, BufferParameter, KernelInterface, LaunchShape, Parameter, PlanError, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Code, Global, Ptr, Shared, Val, Var};
use crate::types::PtxType;

/// Warps per block. Each reduces every eighth slice of a row.
const WARPS: u32 = 8;

/// One block per row. Lane `l` has the columns `l`, `l + 32`, ….
#[derive(Debug)]
pub(super) struct Combine {
    of: Attention,
    pieces: u32,
    rows: u32,
}

fn rows(of: &Attention) -> u64 {
    [of.batch, of.heads, of.queries].into_iter().map(u64::from).fold(1, u64::saturating_mul)
}

/// Returns the number of partial sums, and of maxima and totals, of all slices.
pub(super) fn lens(of: &Attention, pieces: u32) -> [u64; 2] {
    let rows = rows(of).saturating_mul(pieces.into());
    [rows.saturating_mul(of.head_dim.into()), rows.saturating_mul(2)]
}

impl Combine {
    pub(super) fn new(of: Attention, pieces: u32) -> Result<Self, PlanError> {
        let rows = u32::try_from(rows(&of)).ok().filter(|rows| *rows < 1 << 31);
        let too_many = || refusal("queries", format!("{} in all", of.queries), "split the batch");
        Ok(Self { of, pieces, rows: rows.ok_or_else(too_many)? })
    }

    /// Returns the bytes of the partial results.
    pub(super) fn bytes(&self) -> [u64; 2] {
        lens(&self.of, self.pieces).map(|len| 4 * len)
    }

    fn lane_columns(&self) -> u32 {
        self.of.head_dim.div_ceil(32)
    }
}

impl PtxKernel for Combine {
    fn name(&self) -> String {
        let name = Name::new("attention_combine").with(self.of.element.name());
        name.with(format_args!("d{}", 32 * self.lane_columns())).build()
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxEntry {
        let (lane_columns, element) = (self.lane_columns(), self.of.element);
        typed::kernel(&self.name(), target, [32 * WARPS, 1, 1], |k| {
            combine(k, lane_columns, element)
        })
    }

    fn launch(&self) -> LaunchShape {
        LaunchShape { grid: [self.rows, 1, 1], block: [32 * WARPS, 1, 1], dynamic_shared: 0 }
    }

    fn interface(&self) -> KernelInterface {
        let all = self.of.buffers().expect("they were checked when the plan was made");
        let part = |(name, len)| BufferParameter {
            name,
            access: BufferAccess::Read,
            element: PtxType::F32,
            len,
        };
        let lens = lens(&self.of, self.pieces);
        let mut buffers: Vec<_> = ["sums", "extents"].into_iter().zip(lens).map(part).collect();
        buffers.extend(all.last().cloned());
        let mut parameters: Vec<_> = (0..3).map(Parameter::Pointer).collect();
        let Strides { batch, head, row } = self.of.out;
        parameters.extend([batch, head, row].map(Parameter::U64));
        let counts = [self.of.heads, self.of.queries, self.of.head_dim, self.pieces, self.rows];
        parameters.extend(counts.map(Parameter::U32));
        KernelInterface { buffers, parameters }
    }
}

fn combine(k: &Code, lane_columns: u32, element: PtxType) {
    let row = Row::new(k);
    let out = k.pointer::<u8>("out");
    let strides = ["batch", "head", "row"].map(|name| k.number::<u64>(name));
    let [heads, queries] = ["heads", "queries"].map(|name| k.number::<u32>(name));
    let counts = ["head_dim", "pieces", "rows"].map(|name| k.number::<u32>(name));
    let (total, accumulators) = row.reduce_slices(lane_columns, counts);
    let shared = k.shared::<f32>(WARPS * (32 * lane_columns + 1), 4);
    let total = row.reduce_warps(shared, total);
    let factor = total.equals(0.0).select::<f32>(0.0, total.recip());
    let (head, query) = (row.number / queries, row.number % queries);
    let at = [head / heads, head % heads, query];
    let [batch, head, query] = [0, 1, 2].map(|axis| wide(at[axis]) * strides[axis]);
    for (nth, sum) in accumulators.into_iter().enumerate() {
        let (tile, column) = (shared.at(WARPS + 32 * WARPS * nth as u32), row.column(nth as u32));
        tile.at(row.warp * 32 + row.lane).store(sum);
        k.sync();
        k.when(row.warp.equals(0) & column.lt(counts[0]), || {
            let accumulators = (0..WARPS).map(|warp| tile.at(row.lane + 32 * warp).load());
            let sum = accumulators.reduce(|a, b| a + b).expect("there are several warps");
            write(element, out, batch + head + query + wide(column), sum * factor);
        });
    }
}

/// The row of a block, and its operands.
struct Row<'k> {
    k: &'k Code,
    accumulators: Ptr<'k, Global, f32>,
    extents: Ptr<'k, Global, f32>,
    number: Val<'k, u32>,
    lane: Val<'k, u32>,
    warp: Val<'k, u32>,
}

impl<'k> Row<'k> {
    fn new(k: &'k Code) -> Self {
        let (accumulators, extents) = (k.pointer("sums"), k.pointer("extents"));
        Self { k, accumulators, extents, number: k.block_id(0), lane: k.lane(), warp: k.warp() }
    }

    fn column(&self, nth: u32) -> Val<'k, u32> {
        self.lane + 32 * nth
    }

    /// Returns the index of this row in a slice.
    fn partial_index(&self, part: Val<'k, u32>, rows: Val<'k, u32>) -> Val<'k, u64> {
        wide(part) * wide(rows) + wide(self.number)
    }

    /// Returns the total and the sums of the slices that this warp reduces.
    fn reduce_slices(
        &self,
        lane_columns: u32,
        [head_dim, pieces, rows]: [Val<'k, u32>; 3],
    ) -> (Val<'k, f32>, Vec<Val<'k, f32>>) {
        let k = self.k;
        let most = self.row_max(pieces, rows);
        let total = k.var(0.0f32);
        let all: Vec<_> = (0..lane_columns).map(|_| k.var(0.0f32)).collect();
        k.for_range(self.warp, pieces, WARPS, |piece| {
            let nth = self.partial_index(piece, rows);
            let [high, sum] = self.extents.at_wide(nth * 2).load_constant_vector();
            let weight = (high - most).exp2();
            total.set(sum.mul_add(weight, total.get()));
            let from = self.accumulators.at_wide(nth * wide(head_dim));
            for (nth, all) in all.iter().enumerate() {
                let column = self.column(nth as u32);
                k.when(column.lt(head_dim), || {
                    let sum = from.at(column).load_constant();
                    all.set(sum.mul_add(weight, all.get()));
                });
            }
        });
        (total.get(), all.into_iter().map(Var::get).collect())
    }

    /// Returns the maximum scaled score; 0 if there is none.
    fn row_max(&self, pieces: Val<'k, u32>, rows: Val<'k, u32>) -> Val<'k, f32> {
        let most = self.k.var(f32::NEG_INFINITY);
        self.k.for_range(self.lane, pieces, 32, |piece| {
            let extent = self.extents.at_wide(self.partial_index(piece, rows) * 2);
            most.set(most.get().max(extent.load_constant()));
        });
        let most = self.k.reduce_warp(most.get(), 32, |a, b| a.max(b));
        most.equals(f32::NEG_INFINITY).select(0.0, most)
    }

    /// Returns the sum over all warps.
    fn reduce_warps(&self, shared: Ptr<'k, Shared, f32>, mine: Val<'k, f32>) -> Val<'k, f32> {
        self.k.when(self.lane.equals(0), || shared.at(self.warp).store(mine));
        self.k.sync();
        let totals = (0..WARPS).map(|warp| shared.at(warp).load());
        totals.reduce(|a, b| a + b).expect("there are several warps")
    }
}
