//! Which tile for which product.

use super::{Division, Lines, Mma, Sink, Tile};
use crate::kernels::gemm::{Gemm, Order};
use crate::kernels::{KernelError, Plan};
use crate::typed::hopper::Factors;
use crate::types::PtxType;

impl Mma {
    /// A product whose result lies row by row, with a tile.
    pub(crate) fn with(gemm: &Gemm, tile: Tile, flipped: bool) -> Result<Self, KernelError> {
        let factors = match gemm.element {
            PtxType::F16 => Factors::F16,
            PtxType::Bf16 => Factors::Bf16,
            _ => Factors::Tf32,
        };
        let size = gemm.element.size();
        let lines =
            [Lines::new(&gemm.a, Order::Columns, size), Lines::new(&gemm.b, Order::Rows, size)];
        let division = Division::new(gemm, [tile.rows, tile.columns], lines[0].depth(), 1);
        let sink = Sink::new(gemm, flipped);
        Ok(Self { gemm: *gemm, buffers: gemm.buffers()?, tile, factors, lines, sink, division })
    }
}

/// x
pub fn plan(gemm: &Gemm, tile: [u32; 6]) -> Result<Plan, KernelError> {
    let [rows, columns, stages, w0, w1, blocks] = tile;
    let tile = Tile { rows, columns, stages, warps: [w0, w1], blocks };
    Ok(Plan::single(Box::new(Mma::with(gemm, tile, false)?)))
}
