//! The tiles that there are.

use super::{Copying, Division, Ffma, Sink, Tile};
use crate::kernels::Buffer;
use crate::kernels::gemm::{Gemm, Order};

/// Large tiles need fewer loads for each multiply-add; small ones divide small products among all
/// multiprocessors. Long ones are for products that are narrow.
pub(in crate::kernels::gemm) const TILES: [Tile; 8] = [
    tile([128, 256], 8, [2, 4], [4, 8], 1, 100),
    tile([128, 128], 8, [2, 2], [4, 8], 2, 97),
    tile([64, 64], 16, [2, 2], [8, 4], 4, 88),
    tile([32, 128], 8, [1, 2], [4, 8], 4, 80),
    tile([16, 256], 8, [1, 2], [2, 16], 4, 70),
    tile([8, 256], 8, [1, 2], [2, 16], 6, 40),
    tile([256, 16], 8, [2, 1], [16, 2], 4, 70),
    tile([256, 8], 8, [2, 1], [16, 2], 6, 40),
];

const fn tile(
    [rows, columns]: [u32; 2],
    depth: u32,
    warps: [u32; 2],
    lanes: [u32; 2],
    blocks: u32,
    rate: u32,
) -> Tile {
    Tile { rows, columns, depth, stages: 4, warps, lanes, blocks, rate }
}

impl Ffma {
    /// A product whose result lies row by row.
    pub(in crate::kernels::gemm) fn new(
        gemm: &Gemm,
        buffers: Vec<Buffer>,
        tile: Tile,
        sink: Sink,
        division: Division,
    ) -> Self {
        let a = Copying::new(&gemm.a, Order::Columns, gemm.m, tile.rows, &tile);
        let b = Copying::new(&gemm.b, Order::Rows, gemm.n, tile.columns, &tile);
        Self { gemm: *gemm, buffers, tile, a, b, sink, division }
    }
}
