//! The tile shapes of the FFMA kernel.

use super::{CopyKind, Ffma, FfmaTile, GemmLaunch};
use crate::kernels::gemm::{Gemm, Layout};

/// Large tiles need fewer loads per multiply-add; small ones distribute small GEMMs over all
/// multiprocessors. Elongated ones are for narrow matrices.
pub(in crate::kernels::gemm) const TILES: [FfmaTile; 8] = [
    tile([128, 256], 8, [2, 4], [4, 8], 1, 100),
    tile([128, 128], 8, [2, 2], [4, 8], 2, 97),
    tile([64, 64], 16, [2, 2], [8, 4], 4, 88),
    tile([32, 128], 8, [1, 2], [4, 8], 4, 80),
    tile([16, 256], 8, [1, 2], [2, 16], 4, 70),
    tile([8, 256], 8, [1, 2], [2, 16], 6, 60),
    tile([256, 16], 8, [2, 1], [16, 2], 4, 70),
    tile([256, 8], 8, [2, 1], [16, 2], 6, 60),
];

const fn tile(
    [rows, columns]: [u32; 2],
    k_dim: u32,
    warps: [u32; 2],
    lanes: [u32; 2],
    resident_blocks: u32,
    mul_adds_per_cycle: u32,
) -> FfmaTile {
    FfmaTile { rows, columns, k_dim, stages: 4, warps, lanes, resident_blocks, mul_adds_per_cycle }
}

/// Returns how each operand is copied into a tile's pipeline stages.
fn copy_kinds(gemm: &Gemm, tile: &FfmaTile) -> [CopyKind; 2] {
    let Gemm { m, n, a, b, .. } = *gemm;
    [
        CopyKind::new(&a, Layout::ColMajor, m, tile.rows, tile),
        CopyKind::new(&b, Layout::RowMajor, n, tile.columns, tile),
    ]
}

/// Returns the bytes of shared memory that a block needs.
pub(in crate::kernels::gemm) fn shared_bytes(gemm: &Gemm, tile: &FfmaTile) -> u32 {
    let [a, b] = copy_kinds(gemm, tile);
    tile.stages * 4 * tile.k_dim * (a.pitch(tile.rows) + b.pitch(tile.columns))
}

impl Ffma {
    /// Creates a GEMM with a tile shape.
    pub(in crate::kernels::gemm) fn new(product: GemmLaunch, tile: FfmaTile) -> Self {
        let [a, b] = copy_kinds(&product.gemm, &tile);
        Self { product, tile, a, b }
    }
}
