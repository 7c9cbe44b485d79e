//! The tile shapes of the MMA kernel.

use super::{GemmLaunch, Mma, MmaTile, OperandLayout};
use crate::kernels::gemm::{Gemm, Layout};
use crate::typed::hopper::MmaType;
use crate::types::PtxType;

/// Large tiles need fewer reads of shared memory, which is the bottleneck, per MMA; small ones
/// distribute small GEMMs over all multiprocessors.
pub(in crate::kernels::gemm) const TILES: [MmaTile; 3] = [
    MmaTile {
        rows: 128,
        columns: 256,
        stages: 3,
        warps: [2, 4],
        resident_blocks: 1,
        mul_adds_per_cycle: 950,
    },
    MmaTile {
        rows: 128,
        columns: 128,
        stages: 3,
        warps: [2, 2],
        resident_blocks: 2,
        mul_adds_per_cycle: 940,
    },
    MmaTile {
        rows: 64,
        columns: 64,
        stages: 4,
        warps: [2, 2],
        resident_blocks: 3,
        mul_adds_per_cycle: 600,
    },
];

/// Tiles for operands that are copied in parts of 4 or 2 bytes. Copies take most of the time; more
/// stages hide a part of it.
pub(in crate::kernels::gemm) const UNALIGNED_TILES: [MmaTile; 2] = [
    MmaTile { mul_adds_per_cycle: 190, ..TILES[2] },
    MmaTile {
        rows: 32,
        columns: 64,
        stages: 8,
        warps: [2, 4],
        resident_blocks: 2,
        mul_adds_per_cycle: 125,
    },
];

/// Returns the elements along K per stage, for elements of `size` bytes.
pub(in crate::kernels::gemm) const fn k_dim(size: u32) -> u32 {
    // The same for both layouts.
    OperandLayout { k_major: true, size, copy_bytes: 16 }.k_dim()
}

/// Returns the operands' layouts: `a` is M × K, so contiguous along M if column-major; `b` is
/// K × N, so contiguous along N if row-major.
fn layouts(gemm: &Gemm) -> [OperandLayout; 2] {
    [
        OperandLayout::new(gemm, &gemm.a, Layout::ColMajor, gemm.m),
        OperandLayout::new(gemm, &gemm.b, Layout::RowMajor, gemm.n),
    ]
}

/// Returns the bytes of shared memory that a block needs for its pipeline stages.
pub(in crate::kernels::gemm) fn shared_bytes(gemm: &Gemm, tile: &MmaTile) -> u32 {
    let [a, b] = layouts(gemm);
    tile.stages * (a.stage_bytes(tile.rows) + b.stage_bytes(tile.columns))
}

impl Mma {
    /// Creates a GEMM with a tile shape.
    pub(in crate::kernels::gemm) fn new(product: GemmLaunch, tile: MmaTile) -> Self {
        let mma_type = match product.gemm.element {
            PtxType::F16 => MmaType::F16,
            PtxType::Bf16 => MmaType::Bf16,
            _ => MmaType::Tf32,
        };
        let layouts = layouts(&product.gemm);
        Self { product, tile, mma_type, layouts }
    }
}
