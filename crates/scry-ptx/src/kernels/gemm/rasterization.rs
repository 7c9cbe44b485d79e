//! Rasterization: which block computes which tile.

use super::Gemm;
use crate::kernels::Parameter;
use crate::typed::{Code, Val};

/// Rows of tiles per panel: concurrent blocks share operands in L2.
const PANEL: u32 = 8;
/// Maximum grid size along y.
const GRID_Y: u32 = 65535;

/// A GEMM divided into tiles, and its K into slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kernels) struct Division {
    /// Rows and columns of tiles.
    pub tiles: [u32; 2],
    /// Slices of K, and the length of each but the last.
    pub parts: u32,
    pub part_k_dim: u32,
    pub batch: u32,
}

impl Division {
    /// Divides a GEMM into tiles of this size, with about this many slices of K, each a multiple of
    /// `k_dim`.
    pub(super) fn new(gemm: &Gemm, tile: [u32; 2], k_dim: u32, parts: u32) -> Self {
        let steps = gemm.k.div_ceil(k_dim.into()).max(1);
        let part_steps = steps.div_ceil(parts.into());
        Self {
            tiles: [gemm.m.div_ceil(tile[0].into()) as u32, gemm.n.div_ceil(tile[1].into()) as u32],
            parts: steps.div_ceil(part_steps) as u32,
            part_k_dim: (part_steps * u64::from(k_dim)) as u32,
            batch: gemm.batch as u32,
        }
    }

    /// Returns the grid size of a launch; `None` if it is too large.
    pub(super) fn grid(&self) -> Option<[u32; 3]> {
        let tiles = u64::from(self.tiles[0]) * u64::from(self.tiles[1]);
        let x = tiles.checked_mul(self.parts.into()).filter(|x| *x < 1 << 31)?;
        let y = self.batch.min(GRID_Y);
        Some([x as u32, y, self.batch.div_ceil(y.max(1))])
    }

    /// Returns the stride between partial results, in elements; those of a GEMM are contiguous.
    pub(super) const fn part_stride(&self, gemm: &Gemm) -> u64 {
        gemm.out.stride / self.parts as u64
    }

    /// Returns what [`TileOrder::declare`] declares.
    pub(super) fn parameters(&self) -> [Parameter; 4] {
        [self.tiles[0], self.tiles[1], self.part_k_dim, self.batch].map(Parameter::U32)
    }
}

/// The division as values of a kernel.
pub(super) struct TileOrder<'k> {
    tiles: [Val<'k, u32>; 2],
    /// Elements along K per slice.
    pub part_k_dim: Val<'k, u32>,
    batch: Val<'k, u32>,
}

impl<'k> TileOrder<'k> {
    pub(super) fn declare(k: &'k Code) -> Self {
        let tiles = ["tile_rows", "tile_columns"].map(|name| k.number(name));
        Self { tiles, part_k_dim: k.number("part_depth"), batch: k.number("batch") }
    }
}

/// A block's work item.
pub(super) struct Place<'k> {
    /// First row and column of the tile.
    pub row: Val<'k, u32>,
    pub column: Val<'k, u32>,
    /// Index of the slice of K.
    pub part: Val<'k, u32>,
    /// Index in the batch.
    pub batch: Val<'k, u32>,
}

/// Returns this block's tile; the block exits if it has none.
pub(super) fn tile_of<'k>(k: &'k Code, order: &TileOrder<'k>, size: [u32; 2]) -> Place<'k> {
    tile_of_cluster(k, order, size, 1)
}

/// The same for a power of two of blocks that share a tile.
pub(super) fn tile_of_cluster<'k>(
    k: &'k Code,
    order: &TileOrder<'k>,
    size: [u32; 2],
    split_k: u32,
) -> Place<'k> {
    let [down, across] = order.tiles;
    let block = if split_k > 1 { k.block_id(0) / split_k } else { k.block_id(0) };
    let batch = k.block_id(2).mul_add(k.block_count(1), k.block_id(1));
    k.when(batch.ge(order.batch), || k.ret());
    let tiles = down * across;
    let (tile, part) = (block % tiles, block / tiles);
    let panel = across * PANEL;
    let first = tile / panel * PANEL;
    let (within, height) = (tile % panel, (down - first).min(PANEL));
    let row = (first + within % height) * size[0];
    Place { row, column: within / height * size[1], part, batch }
}
