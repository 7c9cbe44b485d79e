//! The tile shapes of the MMA kernel.

use super::{GemmLaunch, Mma, MmaTile, OperandLayout};
use crate::kernels::gemm::{Gemm, Layout};
use crate::typed::hopper::MmaType;
use crate::types::PtxType;

/// Large tiles need fewer reads of shared memory, which is the bottleneck, per MMA; small ones
/// distribute small GEMMs over all multiprocessors.
pub(in crate::kernels::gemm) const TILES: [MmaTile; 3] = [
    tile([128, 256], 3, [2, 4], 1, 950),
    tile([128, 128], 3, [2, 2], 2, 940),
    tile([64, 64], 4, [2, 2], 3, 600),
];

const fn tile(
    [rows, columns]: [u32; 2],
    stages: u32,
    warps: [u32; 2],
    blocks: u32,
    rate: u32,
) -> MmaTile {
    MmaTile { rows, columns, stages, warps, blocks, rate }
}

/// Returns the elements along K per stage, for elements of `size` bytes.
pub(in crate::kernels::gemm) const fn k_dim(size: u32) -> u32 {
    OperandLayout { k_major: true, size }.k_dim()
}

/// Returns the operands' layouts.
fn layouts(gemm: &Gemm) -> [OperandLayout; 2] {
    let size = gemm.element.size();
    [
        OperandLayout::new(&gemm.a, Layout::ColMajor, size),
        OperandLayout::new(&gemm.b, Layout::RowMajor, size),
    ]
}

/// Returns the bytes of shared memory that a block needs.
pub(in crate::kernels::gemm) fn shared_bytes(gemm: &Gemm, tile: &MmaTile) -> u32 {
    let [a, b] = layouts(gemm);
    tile.stages * (a.stage_bytes(tile.rows) + b.stage_bytes(tile.columns))
}

impl Mma {
    /// Creates a GEMM with a tile shape. Rows of its operands must be 16-byte aligned.
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
