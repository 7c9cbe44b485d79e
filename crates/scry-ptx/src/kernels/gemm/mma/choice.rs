//! The tiles that there are.

use super::{Launched, Lines, Mma, Tile};
use crate::kernels::gemm::{Gemm, Order};
use crate::typed::hopper::Factors;
use crate::types::PtxType;

/// Large tiles need fewer reads of shared memory for each product, which limit all of them; small
/// ones divide small products among all multiprocessors.
pub(in crate::kernels::gemm) const TILES: [Tile; 3] = [
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
) -> Tile {
    Tile { rows, columns, stages, warps, blocks, rate }
}

/// Depth of a stage of elements of this many bytes.
pub(in crate::kernels::gemm) const fn depth(size: u32) -> u32 {
    Lines { along: true, size }.depth()
}

/// How the operands of a product lie.
fn lines(gemm: &Gemm) -> [Lines; 2] {
    let size = gemm.element.size();
    [Lines::new(&gemm.a, Order::Columns, size), Lines::new(&gemm.b, Order::Rows, size)]
}

/// Bytes of shared memory that a block takes for a product.
pub(in crate::kernels::gemm) fn shared_bytes(gemm: &Gemm, tile: &Tile) -> u32 {
    let [a, b] = lines(gemm);
    tile.stages * (a.bytes_of(tile.rows) + b.bytes_of(tile.columns))
}

impl Mma {
    /// A product with a tile. The lines of its operands begin at multiples of 16 bytes.
    pub(in crate::kernels::gemm) fn new(product: Launched, tile: Tile) -> Self {
        let factors = match product.gemm.element {
            PtxType::F16 => Factors::F16,
            PtxType::Bf16 => Factors::Bf16,
            _ => Factors::Tf32,
        };
        let lines = lines(&product.gemm);
        Self { product, tile, factors, lines }
    }
}
