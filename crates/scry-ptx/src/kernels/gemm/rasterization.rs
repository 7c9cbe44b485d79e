//! Rasterization: which block computes which tile.

use super::Gemm;
use crate::kernels::Parameter;
use crate::typed::{KernelBuilder, Val};

/// Rows of tiles per panel. Blocks compute a panel column by column, so that concurrent blocks
/// share operands in L2.
const PANEL_ROWS: u32 = 8;
/// Maximum grid size along y.
const MAX_GRID_Y: u32 = 65535;

/// A GEMM divided into tiles, and its K into slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kernels) struct Division {
    /// Rows and columns of tiles.
    pub tiles: [u32; 2],
    /// Slices of K (split-K).
    pub splits: u32,
    /// Elements along K per slice; the last one may have fewer.
    pub split_k_dim: u32,
    pub batch: u32,
}

impl Division {
    /// Divides a GEMM into tiles of this size, with at most this many slices of K, each a multiple
    /// of `k_dim`.
    pub(super) fn new(gemm: &Gemm, tile: [u32; 2], k_dim: u32, splits: u32) -> Self {
        let steps = gemm.k.div_ceil(k_dim.into()).max(1);
        let split_steps = steps.div_ceil(splits.into());
        Self {
            tiles: [gemm.m.div_ceil(tile[0].into()) as u32, gemm.n.div_ceil(tile[1].into()) as u32],
            splits: steps.div_ceil(split_steps) as u32,
            split_k_dim: (split_steps * u64::from(k_dim)) as u32,
            batch: gemm.batch as u32,
        }
    }

    /// Returns the grid size of a launch; `None` if it is too large.
    pub(super) fn grid(&self) -> Option<[u32; 3]> {
        let tiles = u64::from(self.tiles[0]) * u64::from(self.tiles[1]);
        let x = tiles.checked_mul(self.splits.into()).filter(|x| *x < 1 << 31)?;
        let y = self.batch.min(MAX_GRID_Y);
        Some([x as u32, y, self.batch.div_ceil(y.max(1))])
    }

    /// Returns the stride between partial results, in elements: the partial results for one matrix
    /// of the batch are contiguous.
    pub(super) const fn split_stride(&self, gemm: &Gemm) -> u64 {
        gemm.out.stride / self.splits as u64
    }

    /// Returns what [`TileOrder::declare`] declares.
    pub(super) fn parameters(&self) -> [Parameter; 4] {
        [self.tiles[0], self.tiles[1], self.split_k_dim, self.batch].map(Parameter::U32)
    }
}

/// The division as values of a kernel.
pub(super) struct TileOrder<'k> {
    tiles: [Val<'k, u32>; 2],
    /// Elements along K per slice.
    pub split_k_dim: Val<'k, u32>,
    batch: Val<'k, u32>,
}

impl<'k> TileOrder<'k> {
    pub(super) fn declare(k: &'k KernelBuilder) -> Self {
        let tiles = ["tile_rows", "tile_columns"].map(|name| k.scalar_param(name));
        Self { tiles, split_k_dim: k.scalar_param("split_k_dim"), batch: k.scalar_param("batch") }
    }
}

/// The tile of a block.
pub(super) struct BlockTile<'k> {
    /// First row and column of the tile.
    pub row: Val<'k, u32>,
    pub column: Val<'k, u32>,
    /// Index of the slice of K.
    pub split: Val<'k, u32>,
    /// Index in the batch.
    pub batch: Val<'k, u32>,
}

/// Returns this block's tile; the block exits if it has none.
pub(super) fn block_tile<'k>(
    k: &'k KernelBuilder,
    order: &TileOrder<'k>,
    size: [u32; 2],
) -> BlockTile<'k> {
    cluster_tile(k, order, size, 1)
}

/// As [`block_tile`], if `split_k` consecutive blocks, a cluster, share a tile. The slice of K is
/// that of the block's rank in the cluster, not [`BlockTile::split`].
pub(super) fn cluster_tile<'k>(
    k: &'k KernelBuilder,
    order: &TileOrder<'k>,
    size: [u32; 2],
    split_k: u32,
) -> BlockTile<'k> {
    let [tile_rows, tile_columns] = order.tiles;
    let block = if split_k > 1 { k.block_id(0) / split_k } else { k.block_id(0) };
    let batch = k.block_id(2).mul_add(k.block_count(1), k.block_id(1));
    k.if_then(batch.ge(order.batch), || k.ret());
    let tiles = tile_rows * tile_columns;
    let (tile, split) = (block % tiles, block / tiles);
    let panel = tile_columns * PANEL_ROWS;
    let first_row = tile / panel * PANEL_ROWS;
    let (index_in_panel, height) = (tile % panel, (tile_rows - first_row).min(PANEL_ROWS));
    let row = (first_row + index_in_panel % height) * size[0];
    BlockTile { row, column: index_in_panel / height * size[1], split, batch }
}
