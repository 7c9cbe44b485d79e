//! The epilogue: stores results from registers through the warp's staging buffer in shared memory.

use super::schedule::WorkItem;
use super::variant::{
    BiasAxis, GROUP_ROWS, ROW_BYTES, STAGING, STAGINGS, Store, Variant, WARP_ROWS,
};
use crate::kernels::gemm::epilogue::EpilogueScalars;
use crate::kernels::gemm::memory::load_number;
use crate::typed::hopper::Accumulators;
use crate::typed::{Bf16x2, Code, F16x2, Global, Ptr, Shared, Val, pack};
use crate::types::PtxType;

/// Destination and epilogue: parameters of the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Results<'k> {
    pub k: &'k Code,
    pub variant: Variant,
    pub place: Place<'k>,
    pub bias: Option<Ptr<'k, Global, u8>>,
    pub scalars: EpilogueScalars<'k>,
    pub m: Val<'k, u32>,
    pub n: Val<'k, u32>,
    /// The block's staging buffer; in [`Warp`], the warp's.
    staging: Ptr<'k, Shared, u8>,
}

/// The destination.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'k> {
    /// A tensor map (TMA).
    Map(Val<'k, u64>),
    /// Global memory.
    Memory(Lines<'k>),
}

/// Rows of results in global memory, with the row stride and the batch stride in elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines<'k> {
    pub start: Ptr<'k, Global, u8>,
    pub ld: Val<'k, u64>,
    pub stride: Val<'k, u64>,
}

/// The results of a warp.
#[derive(Debug, Clone, Copy)]
pub(super) struct Warp<'k> {
    /// Its staging buffer.
    pub staging: Ptr<'k, Shared, u8>,
    /// Its first row.
    pub row: Val<'k, u32>,
    /// Its first column.
    pub column: Val<'k, u32>,
    /// Index of the result.
    pub result: Val<'k, u32>,
}

impl<'k> Results<'k> {
    /// Declares the parameters.
    pub(super) fn new(k: &'k Code, variant: Variant, memory: Ptr<'k, Shared, u8>) -> Self {
        let place = match variant.store {
            Store::Tiles => Place::Map(k.tensor_map("out")),
            Store::Lanes | Store::Cluster(_) => Place::Memory(Lines {
                start: k.pointer("out"),
                ld: k.number("out_leading"),
                stride: k.number("out_stride"),
            }),
        };
        let bias = (variant.finish.bias != BiasAxis::None).then(|| k.pointer("bias"));
        let scalars = EpilogueScalars { alpha: k.number("alpha"), beta: k.number("beta") };
        let (m, n) = (k.number("m"), k.number("n"));
        let staging = memory.offset(variant.staging_at().into());
        Self { k, variant, place, bias, scalars, m, n, staging }
    }

    /// Stores the results of a work item.
    pub(super) fn write(&self, accumulators: &Accumulators<'_>, item: &WorkItem<'_>) {
        let number = self.k.warp();
        let warp = Warp {
            staging: self.staging.plus_bytes(number * (STAGING * STAGINGS)),
            row: item.row + (number / 4) * GROUP_ROWS + (number & 3) * WARP_ROWS,
            column: item.column,
            result: item.result,
        };
        match self.place {
            Place::Map(map) => self.write_tiles(map, accumulators, &warp),
            Place::Memory(lines) => self.write_lanes(&lines, accumulators, &warp),
        }
    }

    /// Waits until TMA has read shared memory, so that the block can exit.
    pub(super) fn finish(&self) {
        if self.variant.store == Store::Tiles {
            self.k.when(self.k.lane().equals(0), || self.k.bulk_wait_group_read(0));
        }
    }

    /// Stores through TMA, slab by slab, double-buffered.
    fn write_tiles<'a>(
        &'a self,
        map: Val<'a, u64>,
        accumulators: &Accumulators<'a>,
        warp: &Warp<'a>,
    ) {
        let (k, columns) = (self.k, self.variant.staged_columns());
        let (leader, slabs) = (k.lane().equals(0), accumulators.columns() / columns);
        // With an odd number of slabs, the last one used the buffer of the next tile's first slab.
        let first = if slabs.is_multiple_of(STAGINGS) { STAGINGS - 1 } else { 0 };
        for slab in 0..slabs {
            let staging = warp.staging.offset((slab % STAGINGS * STAGING).into());
            k.when(leader, || k.bulk_wait_group_read(if slab == 0 { first } else { STAGINGS - 1 }));
            k.sync_warp();
            for eight in slab * columns / 8..(slab + 1) * columns / 8 {
                self.arrange(staging, accumulators, warp, eight);
            }
            k.fence_proxy_async();
            k.sync_warp();
            k.when(leader, || {
                let at = [warp.column + slab * columns, warp.row, warp.result];
                k.tma_store(staging, map, at);
                k.bulk_commit_group();
            });
        }
    }

    /// Stages the results of 8 columns for TMA; of 16-bit floats, 16 columns at a time.
    pub(super) fn arrange<'a>(
        &'a self,
        staging: Ptr<'a, Shared, u8>,
        accumulators: &Accumulators<'a>,
        warp: &Warp<'a>,
        eight: u32,
    ) {
        let local = eight % (self.variant.staged_columns() / 8);
        if self.variant.output == PtxType::F32 {
            put_floats(staging, local, self.finished(accumulators, warp, eight));
        } else if eight.is_multiple_of(2) {
            let [a, b] = self.halves(self.finished(accumulators, warp, eight));
            let [c, d] = self.halves(self.finished(accumulators, warp, eight + 1));
            self.k.stmatrix(matrix_line(staging, local), [a, b, c, d]);
        }
    }

    fn halves<'a>(&self, [a, b, c, d]: [Val<'a, f32>; 4]) -> [Val<'a, u32>; 2] {
        match self.variant.output {
            PtxType::F16 => [pack::<F16x2>(a, b).cast(), pack::<F16x2>(c, d).cast()],
            _ => [pack::<Bf16x2>(a, b).cast(), pack::<Bf16x2>(c, d).cast()],
        }
    }

    /// Returns the finished results of 8 columns in the thread's registers: two of a row, two of
    /// the row 8 below.
    fn finished<'a>(
        &'a self,
        accumulators: &Accumulators<'a>,
        warp: &Warp<'a>,
        eight: u32,
    ) -> [Val<'a, f32>; 4] {
        let lane = self.k.lane();
        let (row, column) = (warp.row + (lane >> 2), warp.column + (lane & 3) * 2 + eight * 8);
        let bias = |nth: u32| match self.variant.finish.bias {
            BiasAxis::None => None,
            BiasAxis::Columns => Some(self.bias_at(column + nth % 2, self.n)),
            BiasAxis::Rows => Some(self.bias_at(row + nth / 2 * 8, self.m)),
        };
        let activation = self.variant.finish.activation;
        std::array::from_fn(|nth| {
            let sum = accumulators.get(4 * eight as usize + nth);
            self.scalars.finish(activation, sum, None, bias(nth as u32))
        })
    }

    /// Returns the bias of a row or column; 0 beyond the last one.
    fn bias_at<'a>(&'a self, index: Val<'a, u32>, len: Val<'a, u32>) -> Val<'a, f32> {
        let value = self.k.var::<f32>(0.0);
        if let Some(bias) = self.bias {
            let element = self.variant.output;
            let at = bias.at_wide(index.convert::<u64>("") * u64::from(element.size()));
            self.k.when(index.lt(len), || value.set(load_number(at, element, false)));
        }
        value.get()
    }
}

/// Returns the address that a lane passes to `stmatrix`: the row of one of four 8 × 8 matrices of
/// 16-bit elements, two below each other, then two to the right.
fn matrix_line<'k>(staging: Ptr<'k, Shared, u8>, eight: u32) -> Ptr<'k, Shared, u8> {
    let lane = staging.code().lane();
    let chunk = ((lane >> 4) ^ (lane & 7)) ^ eight;
    staging.plus_bytes((lane & 15) * ROW_BYTES + (chunk << 4))
}

/// Stores results from registers into swizzled rows of 32 `f32`.
pub(super) fn put_floats<'k>(staging: Ptr<'k, Shared, u8>, eight: u32, values: [Val<'k, f32>; 4]) {
    let lane = staging.code().lane();
    let row = lane >> 2;
    let chunk = (((lane >> 1) & 1) ^ row) ^ (2 * eight);
    let to = staging.plus_bytes(row * ROW_BYTES + (chunk << 4) + ((lane & 1) << 3)).cast::<f32>();
    let [a, b, c, d] = values;
    to.store_vector([a, b]);
    to.offset((8 * ROW_BYTES).into()).store_vector([c, d]);
}
