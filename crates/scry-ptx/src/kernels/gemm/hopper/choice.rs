//! Which variant a product is computed with: the one that takes the fewest cycles by a model of
//! the multiprocessor.

use super::variant::{LINE, Tile};
use crate::kernels::Machine;
use crate::kernels::gemm::Gemm;

/// How a product is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// What a block computes at a time.
    pub tile: Tile,
    /// Parts of the common dimension, each with results of its own that are added up later.
    pub splits: u32,
    /// Whether the transposed product is computed, so that what is long lies along the rows, of
    /// which instructions have at least 64. Its results are always turned back while adding up.
    pub flipped: bool,
}

impl Choice {
    /// Whether results are binary32 in memory of their own at first.
    #[must_use]
    pub const fn is_partial(&self) -> bool {
        self.splits > 1 || self.flipped
    }
}

/// What there is to choose from. The part of `b` that blocks of a cluster share is a multiple of
/// eight lines.
const COLUMNS: [u32; 6] = [16, 32, 64, 128, 192, 256];
const SPLITS: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// Bytes that a multiprocessor gets in a cycle from the cache that all share.
const CACHE_BYTES: u64 = 40;
/// Bytes that the device gets in a cycle from its memory.
const MEMORY_BYTES: u64 = 2400;
/// Cycles from the launch of a kernel to its first product, and from its last one to its end.
const LAUNCH: u64 = 4000;
/// Cycles that the results of a tile take at least.
const RESULTS: u64 = 600;

/// What of a product the choice depends on.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels::gemm) struct Task {
    /// The product, its results row by row.
    pub gemm: Gemm,
    /// Whether `a` can only lie along the rows, and `b` along the columns.
    pub outer: (bool, bool),
    /// Parts that numbers are taken apart into.
    pub parts: u32,
    /// The device.
    pub machine: Machine,
}

impl Task {
    /// The best way.
    pub(in crate::kernels::gemm) fn choose(&self) -> Choice {
        let mut best = (u64::MAX, Choice { tile: Tile::new(2, 128, 1), splits: 1, flipped: false });
        for flipped in [false, true] {
            for tile in self.tiles(flipped) {
                for splits in SPLITS.into_iter().filter(|splits| self.can_split(*splits)) {
                    let choice = Choice { tile, splits, flipped };
                    let cycles = self.cycles(&choice);
                    if cycles < best.0 {
                        best = (cycles, choice);
                    }
                }
            }
        }
        best.1
    }

    fn tiles(&self, flipped: bool) -> impl Iterator<Item = Tile> {
        let widest = if self.parts == 2 { 128 } else { 256 };
        let outer = if flipped { self.outer.0 } else { self.outer.1 };
        let columns = COLUMNS
            .into_iter()
            .filter(move |columns| *columns <= widest && (!outer || columns % 64 == 0));
        let shapes = columns.flat_map(|columns| [1, 2].map(|groups| (groups, columns)));
        shapes
            .flat_map(|(groups, columns)| [1, 2].map(|cluster| Tile::new(groups, columns, cluster)))
    }

    fn stages(&self) -> u64 {
        self.gemm.k.div_ceil((LINE / self.gemm.element.size()).into())
    }

    fn can_split(&self, splits: u32) -> bool {
        let stages = self.stages();
        let each = stages.div_ceil(splits.into()).max(1);
        // No part is empty, or so short that it is not worth its results.
        stages.div_ceil(each) == u64::from(splits) && (splits == 1 || each >= 4)
    }

    /// Cycles that a choice takes.
    fn cycles(&self, choice: &Choice) -> u64 {
        let Choice { tile, splits, flipped } = *choice;
        let Gemm { m, n, batch, .. } = self.gemm;
        let (rows, columns) = if flipped { (n, m) } else { (m, n) };
        let clusters = rows.div_ceil(u64::from(tile.rows() * tile.cluster))
            * columns.div_ceil(tile.columns.into())
            * u64::from(splits)
            * batch;
        let waves =
            clusters.div_ceil(u64::from(self.machine.multiprocessors / tile.cluster).max(1));
        let depth = self.stages().div_ceil(splits.into());
        let size = if choice.is_partial() { 4 } else { self.gemm.output.size() };
        let results = RESULTS + u64::from(tile.rows() * tile.columns * size) / CACHE_BYTES;
        let computing = waves * (depth * stage_cycles(&tile, self.parts) + results);
        LAUNCH + computing.max(self.memory_cycles()) + self.adding_cycles(choice)
    }

    fn memory_cycles(&self) -> u64 {
        let Gemm { m, n, k, batch, element, output, .. } = self.gemm;
        let operands = (m * k + k * n) * u64::from(element.size() * self.parts);
        let bytes = operands + m * n * u64::from(output.size());
        batch.saturating_mul(bytes / MEMORY_BYTES)
    }

    /// Cycles for adding partial results up.
    fn adding_cycles(&self, choice: &Choice) -> u64 {
        if !choice.is_partial() {
            return 0;
        }
        let bytes = self.gemm.m * self.gemm.n * self.gemm.batch * 4;
        LAUNCH + bytes * u64::from(2 * choice.splits + 1) / MEMORY_BYTES
    }
}

/// Cycles of a stage: those of tensor cores, which have to read `b` from shared memory too, or
/// those until it is there.
fn stage_cycles(tile: &Tile, parts: u32) -> u64 {
    let product = (tile.columns / 2).max(16 + tile.columns / 4);
    // Of two parts each there are three products.
    let products = 4 * tile.groups * product * (2 * parts - 1);
    let bytes = parts * (tile.rows() + tile.columns / tile.cluster) * LINE;
    u64::from(products + products / 16).max(u64::from(bytes) / CACHE_BYTES)
}
