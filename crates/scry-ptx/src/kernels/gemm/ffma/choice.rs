//! Which tile for which product.

use super::{Copying, Division, Ffma, Sink, Tile};
use crate::kernels::gemm::{Gemm, Order};
use crate::kernels::{KernelError, Plan};

impl Ffma {
    /// A product whose result lies row by row, with a tile.
    pub(crate) fn with(gemm: &Gemm, tile: Tile, flipped: bool) -> Result<Self, KernelError> {
        let division = Division::new(gemm, [tile.rows, tile.columns], tile.depth, 1);
        Ok(Self {
            gemm: *gemm,
            buffers: gemm.buffers()?,
            tile,
            a: Copying::new(&gemm.a, Order::Columns, gemm.m),
            b: Copying::new(&gemm.b, Order::Rows, gemm.n),
            sink: Sink::new(gemm, flipped),
            division,
        })
    }
}

/// x
pub fn plan(gemm: &Gemm, tile: [u32; 9]) -> Result<Plan, KernelError> {
    let [rows, columns, depth, stages, w0, w1, l0, l1, blocks] = tile;
    let tile = Tile { rows, columns, depth, stages, warps: [w0, w1], lanes: [l0, l1], blocks };
    Ok(Plan::single(Box::new(Ffma::with(gemm, tile, false)?)))
}
