//! Parts of the keys put together: `out = sum(w_p * sums_p) / sum(w_p * total_p)`, where
//! `w_p = 2^(most_p - most)`.

use super::scalar::{wide, write};
use super::shape::{Attention, Strides, refusal};
use crate::kernels::{Access, Buffer, Interface, Kernel, KernelError, LaunchShape, Parameter};
use crate::module::PtxKernel;
use crate::target::Target;
use crate::typed::{self, Code, Global, Ptr, Shared, Val};
use crate::types::PtxType;

/// Warps of a block. Each has every eighth part of a row.
const WARPS: u32 = 8;

/// A block for each row. Lane `l` has the columns `l`, `l + 32`, ….
#[derive(Debug)]
pub(super) struct Combine {
    of: Attention,
    pieces: u32,
    rows: u32,
}

fn rows(of: &Attention) -> u64 {
    [of.batch, of.heads, of.queries].into_iter().map(u64::from).fold(1, u64::saturating_mul)
}

/// Numbers of sums, and of maxima and totals, of all parts.
pub(super) fn lens(of: &Attention, pieces: u32) -> [u64; 2] {
    let rows = rows(of).saturating_mul(pieces.into());
    [rows.saturating_mul(of.head_dim.into()), rows.saturating_mul(2)]
}

impl Combine {
    pub(super) fn new(of: Attention, pieces: u32) -> Result<Self, KernelError> {
        let rows = u32::try_from(rows(&of)).ok().filter(|rows| *rows < 1 << 31);
        let too_many = || refusal("queries", format!("{} in all", of.queries), "split the batch");
        Ok(Self { of, pieces, rows: rows.ok_or_else(too_many)? })
    }

    /// Bytes of what is put together.
    pub(super) fn bytes(&self) -> [u64; 2] {
        lens(&self.of, self.pieces).map(|len| 4 * len)
    }

    fn depth(&self) -> u32 {
        self.of.head_dim.div_ceil(32)
    }
}

impl Kernel for Combine {
    fn name(&self) -> String {
        format!("attention_combine_{}_d{}", self.of.element.name(), 32 * self.depth())
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxKernel {
        let (depth, element) = (self.depth(), self.of.element);
        typed::kernel(&self.name(), target, [32 * WARPS, 1, 1], |k| combine(k, depth, element))
    }

    fn launch(&self) -> LaunchShape {
        LaunchShape { grid: [self.rows, 1, 1], block: [32 * WARPS, 1, 1], dynamic_shared: 0 }
    }

    fn interface(&self) -> Interface {
        let all = self.of.buffers().expect("they were checked when the plan was made");
        let part = |(name, len)| Buffer { name, access: Access::Read, element: PtxType::F32, len };
        let lens = lens(&self.of, self.pieces);
        let mut buffers: Vec<_> = ["sums", "extents"].into_iter().zip(lens).map(part).collect();
        buffers.extend(all.last().cloned());
        let mut parameters: Vec<_> = (0..3).map(Parameter::Pointer).collect();
        let Strides { batch, head, row } = self.of.out;
        parameters.extend([batch, head, row].map(Parameter::U64));
        let counts = [self.of.heads, self.of.queries, self.of.head_dim, self.pieces, self.rows];
        parameters.extend(counts.map(Parameter::U32));
        Interface { buffers, parameters }
    }
}

fn combine(k: &Code, depth: u32, element: PtxType) {
    let (sums, extents) = (k.pointer::<f32>("sums"), k.pointer::<f32>("extents"));
    let out = k.pointer::<u8>("out");
    let strides = ["batch", "head", "row"].map(|name| k.number::<u64>(name));
    let [heads, queries, head_dim, pieces, rows] =
        ["heads", "queries", "head_dim", "pieces", "rows"].map(|name| k.number::<u32>(name));
    let (row, lane, warp) = (k.block_id(0), k.lane(), k.warp());
    let most = greatest(k, extents, row, rows, pieces);
    let columns: Vec<_> = (0..depth).map(|nth| lane + 32 * nth).collect();
    let parts: Vec<_> = columns.iter().map(|_| k.var(0.0f32)).collect();
    let total = k.var(0.0f32);
    k.for_range(warp, pieces, WARPS, |piece| {
        let nth = wide(piece) * wide(rows) + wide(row);
        let [high, sum] = extents.at_wide(nth * 2).load_constant_vector();
        let weight = (high - most).exp2();
        total.set(sum.mul_add(weight, total.get()));
        let from = sums.at_wide(nth * wide(head_dim));
        for (part, column) in parts.iter().zip(&columns) {
            k.when(column.lt(head_dim), || {
                let sum = from.at(*column).load_constant();
                part.set(sum.mul_add(weight, part.get()));
            });
        }
    });
    let shared = k.shared::<f32>(WARPS * (32 * depth + 1), 4);
    let all = together(k, shared, warp, lane, total.get());
    let at = [row / queries / heads, row / queries % heads, row % queries];
    let [batch, head, row] = [0, 1, 2].map(|axis| wide(at[axis]) * strides[axis]);
    let factor = all.equals(0.0).select::<f32>(0.0, all.recip());
    for (nth, (part, column)) in parts.iter().zip(&columns).enumerate() {
        let tile = shared.at(WARPS + 32 * WARPS * nth as u32);
        tile.at(warp * 32 + lane).store(part.get());
        k.sync();
        k.when(warp.equals(0) & column.lt(head_dim), || {
            let sums = (0..WARPS).map(|warp| tile.at(lane + 32 * warp).load());
            let sum = sums.reduce(|a, b| a + b).expect("there are several warps");
            write(element, out, batch + head + row + wide(*column), sum * factor);
        });
    }
}

/// The greatest scaled score of a row; 0 if it has none.
fn greatest<'k>(
    k: &'k Code,
    extents: Ptr<'k, Global, f32>,
    row: Val<'k, u32>,
    rows: Val<'k, u32>,
    pieces: Val<'k, u32>,
) -> Val<'k, f32> {
    let most = k.var(f32::NEG_INFINITY);
    k.for_range(k.lane(), pieces, 32, |piece| {
        let nth = wide(piece) * wide(rows) + wide(row);
        most.set(most.get().max(extents.at_wide(nth * 2).load_constant()));
    });
    let most = k.reduce_warp(most.get(), 32, |a, b| a.max(b));
    most.equals(f32::NEG_INFINITY).select(0.0, most)
}

/// The sum of what each warp has.
fn together<'k>(
    k: &'k Code,
    shared: Ptr<'k, Shared, f32>,
    warp: Val<'k, u32>,
    lane: Val<'k, u32>,
    mine: Val<'k, f32>,
) -> Val<'k, f32> {
    k.when(lane.equals(0), || shared.at(warp).store(mine));
    k.sync();
    let totals = (0..WARPS).map(|warp| shared.at(warp).load());
    totals.reduce(|a, b| a + b).expect("there are several warps")
}
