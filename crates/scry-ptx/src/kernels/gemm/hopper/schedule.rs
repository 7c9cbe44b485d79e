//! Which parts of a product a block computes, in which order.

use super::variant::{Store, Tile, Variant};
use crate::typed::{Code, Val};

/// How a product is cut into parts: parameters of the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule<'k> {
    k: &'k Code,
    variant: Variant,
    /// Clusters of tiles down the rows.
    rows: Val<'k, u32>,
    /// Tiles along the columns.
    columns: Val<'k, u32>,
    /// Parts of the common dimension.
    splits: Val<'k, u32>,
    /// Parts in all.
    parts: Val<'k, u32>,
    /// Clusters of tiles down the rows that are computed near each other in time.
    band: Val<'k, u32>,
    /// Stages of the common dimension.
    depth: Val<'k, u32>,
    /// Stages of each part of it.
    split_depth: Val<'k, u32>,
}

/// What a block computes at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'k> {
    /// First row.
    pub row: Val<'k, u32>,
    /// First column.
    pub column: Val<'k, u32>,
    /// Which product of the batch.
    pub batch: Val<'k, u32>,
    /// Which result: that of the batch, or of a part of the common dimension.
    pub result: Val<'k, u32>,
    /// First stage of the common dimension.
    pub begin: Val<'k, u32>,
    /// Behind the last stage.
    pub end: Val<'k, u32>,
}

impl<'k> Schedule<'k> {
    /// Declares the parameters.
    pub(super) fn new(k: &'k Code, variant: Variant) -> Self {
        Self {
            k,
            variant,
            rows: k.number("row_tiles"),
            columns: k.number("column_tiles"),
            splits: k.number("splits"),
            parts: k.number("parts"),
            band: k.number("band"),
            depth: k.number("depth"),
            split_depth: k.number("split_depth"),
        }
    }

    /// The block's number in its cluster.
    pub(super) fn rank(&self) -> Val<'k, u32> {
        match self.variant.tile.blocks() {
            1 => self.k.constant(0),
            _ => self.k.cluster_rank(),
        }
    }

    /// Writes what is done for each part of the block. A team has one only.
    pub(super) fn each(&self, write: impl FnOnce(Part<'_>)) {
        if let Store::Team(_) = self.variant.store {
            return write(self.of_team());
        }
        let cluster = self.variant.tile.cluster;
        let (first, step) = (self.k.block_id(0) / cluster, self.k.block_count(0) / cluster);
        self.k.for_range(first, self.parts, step, |nth| write(self.part(nth)));
    }

    /// What a block of a team computes.
    pub(super) fn of_team(&self) -> Part<'_> {
        let Tile { team, .. } = self.variant.tile;
        let part = self.part(self.k.block_id(0) / team);
        let begin = self.rank() * self.split_depth;
        Part { begin, end: (begin + self.split_depth).min(self.depth), ..part }
    }

    /// The `nth` part. Parts go down the rows of a band, then along the columns: what blocks read
    /// at the same time is shared in the cache.
    fn part<'a>(&'a self, nth: Val<'a, u32>) -> Part<'a> {
        let tiles: Val<'a, u32> = self.rows * self.columns;
        let result = nth / tiles;
        let within: Val<'a, u32> = nth - result * tiles;
        let full: Val<'a, u32> = self.band * self.columns;
        let band = within / full;
        let first = band * self.band;
        let height = (self.rows - first).min(self.band);
        let within = within - band * full;
        let column = within / height;
        let row = first + within - column * height;
        let Variant { tile, .. } = self.variant;
        let batch = result / self.splits;
        let begin = (result - batch * self.splits) * self.split_depth;
        Part {
            row: self.tile_row(row) * tile.rows(),
            column: column * tile.columns,
            batch,
            result,
            begin,
            end: (begin + self.split_depth).min(self.depth),
        }
    }

    /// The block's tile of a cluster of tiles down the rows.
    fn tile_row<'a>(&'a self, cluster: Val<'a, u32>) -> Val<'a, u32> {
        match self.variant.tile.cluster {
            1 => cluster,
            blocks => cluster * blocks + self.rank(),
        }
    }
}
