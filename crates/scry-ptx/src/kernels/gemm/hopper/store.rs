//! The epilogue: stores results from registers through the warp's staging buffer in shared memory.
//!
//! An *octet* is a group of 8 columns of accumulators, of which a thread has two in each of two
//! rows. A *slab* is the octets that a warp stages at a time.

use super::schedule::WorkItem;
use super::variant::{
    BiasAxis, GROUP_ROWS, ROW_BYTES, STAGING_BUFFERS, STAGING_BYTES, Store, Variant, WARP_ROWS,
};
use crate::kernels::gemm::epilogue::EpilogueScalars;
use crate::typed::hopper::Accumulators;
use crate::typed::{Bf16x2, F16x2, Global, KernelBuilder, Ptr, Shared, Val, pack};
use crate::types::PtxType;

/// Destination and epilogue: parameters of the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Results<'k> {
    pub k: &'k KernelBuilder,
    pub variant: Variant,
    pub destination: Destination<'k>,
    pub bias: Option<Ptr<'k, Global, u8>>,
    pub scalars: EpilogueScalars<'k>,
    pub m: Val<'k, u32>,
    pub n: Val<'k, u32>,
    /// The block's staging buffer; in [`Warp`], the warp's.
    staging: Ptr<'k, Shared, u8>,
}

/// The destination.
#[derive(Debug, Clone, Copy)]
pub(super) enum Destination<'k> {
    /// A tensor map (TMA).
    Map(Val<'k, u64>),
    /// Global memory.
    Memory(OutMemory<'k>),
}

/// Row-major or column-major results in global memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutMemory<'k> {
    pub base: Ptr<'k, Global, u8>,
    /// Leading dimension in elements.
    pub ld: Val<'k, u64>,
    /// Stride of the batch in elements.
    pub stride: Val<'k, u64>,
}

/// The results of a warp.
#[derive(Debug, Clone, Copy)]
pub(super) struct Warp<'k> {
    /// The warp's staging buffer.
    pub staging: Ptr<'k, Shared, u8>,
    /// Its first row.
    pub row: Val<'k, u32>,
    /// Its first column.
    pub column: Val<'k, u32>,
    /// Index of the result.
    pub result: Val<'k, u32>,
    /// The bias of the thread's columns, if it was loaded early.
    column_bias: Option<&'k [Val<'k, f32>]>,
}

/// The most columns of a tile whose bias is loaded early: two for each octet.
const MAX_EARLY_COLUMNS: u32 = 64;

impl<'k> Results<'k> {
    /// Declares the parameters.
    pub(super) fn new(k: &'k KernelBuilder, variant: Variant, memory: Ptr<'k, Shared, u8>) -> Self {
        let destination = match variant.store {
            Store::Tiles => Destination::Map(k.tensor_map_param("out")),
            Store::Lanes | Store::Cluster(_) => Destination::Memory(OutMemory {
                base: k.pointer_param("out"),
                ld: k.scalar_param("out_ld"),
                stride: k.scalar_param("out_stride"),
            }),
        };
        let bias = (variant.epilogue.bias != BiasAxis::None).then(|| k.pointer_param("bias"));
        let scalars =
            EpilogueScalars { alpha: k.scalar_param("alpha"), beta: k.scalar_param("beta") };
        let (m, n) = (k.scalar_param("m"), k.scalar_param("n"));
        let staging = memory.offset(variant.staging_at().into());
        Self { k, variant, destination, bias, scalars, m, n, staging }
    }

    /// Loads the bias of a thread's columns, to wait for it while operands are loaded; `None` if it
    /// is loaded where it is added: of other stores, and of tiles for which it takes too many
    /// registers.
    pub(super) fn load_column_bias<'a>(&'a self, item: &WorkItem<'a>) -> Option<Vec<Val<'a, f32>>> {
        let Variant { tile, store, epilogue, .. } = self.variant;
        let is_early = store == Store::Tiles
            && epilogue.bias == BiasAxis::Columns
            && tile.columns <= MAX_EARLY_COLUMNS;
        let bias = self.bias.filter(|_| is_early)?;
        let first = item.column + (self.k.lane() & 3) * 2;
        let columns = (0..tile.columns / 8).flat_map(|octet| [8 * octet, 8 * octet + 1]);
        Some(columns.map(|nth| self.bias_at(bias, first + nth, self.n)).collect())
    }

    /// Stores the results of a work item; `column_bias` is what `load_column_bias` returned.
    pub(super) fn write(
        &self,
        accumulators: &Accumulators<'_>,
        item: &WorkItem<'_>,
        column_bias: Option<&[Val<'_, f32>]>,
    ) {
        let warp_index = self.k.warp();
        let warp = Warp {
            staging: self.staging.plus_bytes(warp_index * (STAGING_BYTES * STAGING_BUFFERS)),
            row: item.row + (warp_index / 4) * GROUP_ROWS + (warp_index & 3) * WARP_ROWS,
            column: item.column,
            result: item.result,
            column_bias,
        };
        match self.destination {
            Destination::Map(map) => self.write_tiles(map, accumulators, &warp),
            Destination::Memory(out_memory) => self.write_lanes(&out_memory, accumulators, &warp),
        }
    }

    /// Waits until TMA has read shared memory, so that the block can exit.
    pub(super) fn finish(&self) {
        if self.variant.store == Store::Tiles {
            self.k.if_then(self.k.lane().eq(0), || self.k.bulk_wait_group_read(0));
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
        let (leader, slab_count) = (k.lane().eq(0), accumulators.columns() / columns);
        // With an odd number of slabs, the last one used the buffer of the next tile's first slab.
        let first =
            if slab_count.is_multiple_of(STAGING_BUFFERS) { STAGING_BUFFERS - 1 } else { 0 };
        for slab in 0..slab_count {
            let staging = warp.staging.offset((slab % STAGING_BUFFERS * STAGING_BYTES).into());
            k.if_then(leader, || {
                k.bulk_wait_group_read(if slab == 0 { first } else { STAGING_BUFFERS - 1 })
            });
            k.sync_warp();
            for octet in slab * columns / 8..(slab + 1) * columns / 8 {
                self.stage_octet(staging, accumulators, warp, octet);
            }
            k.fence_proxy_async();
            k.sync_warp();
            k.if_then(leader, || {
                let at = [warp.column + slab * columns, warp.row, warp.result];
                k.tma_store(staging, map, at);
                k.bulk_commit_group();
            });
        }
    }

    /// Stages the results of an octet; of 16-bit floats, those of an even octet and the next one.
    pub(super) fn stage_octet<'a>(
        &'a self,
        staging: Ptr<'a, Shared, u8>,
        accumulators: &Accumulators<'a>,
        warp: &Warp<'a>,
        octet: u32,
    ) {
        let local = octet % (self.variant.staged_columns() / 8);
        if self.variant.output == PtxType::F32 {
            stage_f32(staging, local, self.compute_results(accumulators, warp, octet));
        } else if octet.is_multiple_of(2) {
            let [a, b] = self.pack_16bit(self.compute_results(accumulators, warp, octet));
            let [c, d] = self.pack_16bit(self.compute_results(accumulators, warp, octet + 1));
            self.k.stmatrix(stmatrix_address(staging, local), [a, b, c, d]);
        }
    }

    fn pack_16bit<'a>(&self, [a, b, c, d]: [Val<'a, f32>; 4]) -> [Val<'a, u32>; 2] {
        match self.variant.output {
            PtxType::F16 => [pack::<F16x2>(a, b).cast(), pack::<F16x2>(c, d).cast()],
            _ => [pack::<Bf16x2>(a, b).cast(), pack::<Bf16x2>(c, d).cast()],
        }
    }

    /// Applies the epilogue to the thread's accumulators of an octet: two of a row, two of the row
    /// 8 below.
    fn compute_results<'a>(
        &'a self,
        accumulators: &Accumulators<'a>,
        warp: &Warp<'a>,
        octet: u32,
    ) -> [Val<'a, f32>; 4] {
        let lane = self.k.lane();
        let (row, column) = (warp.row + (lane >> 2), warp.column + (lane & 3) * 2 + octet * 8);
        let bias = |nth: u32| {
            if let Some(loaded) = warp.column_bias {
                return Some(loaded[(2 * octet + nth % 2) as usize]);
            }
            match self.variant.epilogue.bias {
                BiasAxis::None => None,
                BiasAxis::Columns => self.bias.map(|it| self.bias_at(it, column + nth % 2, self.n)),
                BiasAxis::Rows => self.bias.map(|it| self.bias_at(it, row + nth / 2 * 8, self.m)),
            }
        };
        let activation = self.variant.epilogue.activation;
        std::array::from_fn(|nth| {
            let sum = accumulators.get(4 * octet as usize + nth);
            self.scalars.finish(activation, sum, None, bias(nth as u32))
        })
    }

    /// Returns the bias of a row or column, or of the last one: results beyond it are not stored.
    fn bias_at(
        &self,
        bias: Ptr<'k, Global, u8>,
        index: Val<'k, u32>,
        len: Val<'k, u32>,
    ) -> Val<'k, f32> {
        self.load_bias(bias, index.min(len - 1))
    }
}

/// Returns the address that a lane passes to `stmatrix`: that of a row of one of four 8 × 8
/// matrices of 16-bit elements. The first two are below each other, the others to the right of
/// them.
fn stmatrix_address<'k>(staging: Ptr<'k, Shared, u8>, octet: u32) -> Ptr<'k, Shared, u8> {
    let lane = staging.builder().lane();
    let chunk = ((lane >> 4) ^ (lane & 7)) ^ octet;
    staging.plus_bytes((lane & 15) * ROW_BYTES + (chunk << 4))
}

/// Stages the values of an octet from registers, in swizzled rows of 32 `f32`.
pub(super) fn stage_f32<'k>(staging: Ptr<'k, Shared, u8>, octet: u32, values: [Val<'k, f32>; 4]) {
    let lane = staging.builder().lane();
    let row = lane >> 2;
    let chunk = (((lane >> 1) & 1) ^ row) ^ (2 * octet);
    let to = staging.plus_bytes(row * ROW_BYTES + (chunk << 4) + ((lane & 1) << 3)).cast::<f32>();
    let [a, b, c, d] = values;
    to.store_vector([a, b]);
    to.offset((8 * ROW_BYTES).into()).store_vector([c, d]);
}
