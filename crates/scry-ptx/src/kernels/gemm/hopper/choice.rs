//! Which variant a product is computed with: the one that takes the fewest cycles by a model of
//! the multiprocessor.

use super::variant::{LINE, Tile};
use crate::kernels::Machine;
use crate::kernels::gemm::{Gemm, Layout};

/// How a product is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// What a block computes at a time.
    pub tile: Tile,
    /// Parts of the common dimension, each with results of its own in memory that are added up
    /// later. 1 for a team, which adds up what it has itself.
    pub splits: u32,
    /// Whether the transposed product is computed, so that what is long lies along the rows, of
    /// which instructions have at least 64.
    pub flipped: bool,
}

impl Choice {
    /// Whether a team writes the results: it can write them in any order, and has one tile only.
    #[must_use]
    pub const fn is_team(&self) -> bool {
        self.splits == 1 && (self.tile.team > 1 || self.flipped)
    }
}

/// What there is to choose from. The part of `b` that blocks of a cluster share is a multiple of
/// eight lines.
const COLUMNS: [u32; 6] = [16, 32, 64, 128, 192, 256];
const SPLITS: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

// What follows was measured on an H200; cycles are those of 1.755 GHz.

/// Bytes that a multiprocessor gets in a cycle from the cache that all share.
const CACHE_BYTES: u64 = 72;
/// Bytes that the device gets in a cycle from its memory.
const MEMORY_BYTES: u64 = 2400;
/// Cycles from the launch of a kernel to its first product, and from its last one to its end.
const LAUNCH: u64 = 4000;
/// The same for what a cluster takes longer.
const CLUSTER: u64 = 1500;
/// Cycles of a stage beside its products.
const STAGE: u64 = 60;
/// Cycles that the results of a tile take at least.
const RESULTS: u64 = 600;
/// Bytes of results that a block hands to the copy engine in a cycle.
const TILE_BYTES: u64 = 27;
/// Bytes of results that a block writes itself in a cycle.
const LANE_BYTES: u64 = 12;
/// Cycles in which the blocks of a team meet and read each other's memory for the first time.
const TEAM: u64 = 2500;

/// What of a product the choice depends on.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels::gemm) struct Task {
    /// The product, its results row by row.
    pub gemm: Gemm,
    /// Whether `a` lies along the rows, and `b` along the columns.
    pub outer: (bool, bool),
    /// Whether the copy engine can write the results.
    pub by_tiles: bool,
    /// Parts that numbers are taken apart into.
    pub parts: u32,
    /// The device.
    pub machine: Machine,
}

impl Task {
    /// The best way.
    pub(in crate::kernels::gemm) fn choose(&self) -> Choice {
        let all = [false, true].into_iter().flat_map(|flipped| {
            let choices = self
                .tiles(flipped)
                .flat_map(move |tile| SPLITS.map(|splits| Choice { tile, splits, flipped }));
            choices.filter(|choice| self.is_possible(choice))
        });
        let best = all.min_by_key(|choice| self.cycles(choice));
        best.unwrap_or(Choice { tile: Tile::new(2, 128, 1), splits: 1, flipped: false })
    }

    fn tiles(&self, flipped: bool) -> impl Iterator<Item = Tile> {
        let outer = if flipped { self.outer.0 } else { self.outer.1 };
        let widest = if self.parts == 2 { 128 } else { 256 };
        let columns = COLUMNS
            .into_iter()
            .filter(move |columns| *columns <= widest && (!outer || columns % 64 == 0));
        let shapes = columns.flat_map(|columns| [2, 1].map(|groups| (groups, columns)));
        shapes.flat_map(|(groups, columns)| {
            let clusters = [1, 2].map(|cluster| Tile::new(groups, columns, cluster));
            let teams = [2, 4, 8].map(|team| Tile::shared(groups, columns, team));
            clusters.into_iter().chain(teams)
        })
    }

    fn stages(&self) -> u64 {
        self.gemm.k.div_ceil((LINE / self.gemm.element.size()).into())
    }

    /// No part of the common dimension is empty, or so short that it is not worth its results;
    /// and there is one way only to add up.
    fn is_possible(&self, choice: &Choice) -> bool {
        let (stages, pieces) = (self.stages(), choice.splits * choice.tile.team);
        let each = stages.div_ceil(pieces.into()).max(1);
        let whole = stages.div_ceil(each) == u64::from(pieces) && (pieces == 1 || each >= 4);
        let one_way = choice.splits == 1 || (choice.tile.team == 1 && !choice.flipped);
        whole && one_way && (!choice.is_team() || choice.tile.cluster == 1)
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
        let depth = self.stages().div_ceil(u64::from(splits * tile.team));
        let waves = clusters.div_ceil(self.at_once(&tile));
        let part = depth * self.stage_cycles(choice) + self.results_cycles(choice);
        let (computing, reading) = (waves * part, self.memory_cycles());
        let launch = if tile.blocks() > 1 { LAUNCH + CLUSTER } else { LAUNCH };
        // What is not the bottleneck is not quite hidden either.
        let both = computing.max(reading) + computing.min(reading) / 4;
        launch + both + self.adding_cycles(choice)
    }

    /// Clusters that run at the same time. Larger ones do not use all multiprocessors.
    fn at_once(&self, tile: &Tile) -> u64 {
        let all = self.machine.multiprocessors;
        let used = if tile.team > 2 { all - all / 11 } else { all };
        u64::from(used / tile.blocks()).max(1)
    }

    /// Cycles of a stage: those of tensor cores, which have to read `b` from shared memory too, or
    /// those until it is there.
    fn stage_cycles(&self, choice: &Choice) -> u64 {
        let Choice { tile, flipped, .. } = choice;
        let product = (tile.columns / 2).max(16 + tile.columns / 4);
        // Of two parts each there are three products.
        let products = u64::from(4 * tile.groups * product * (2 * self.parts - 1)) * 11 / 10;
        let [a, b] = [self.gemm.a, self.gemm.b].map(|layout| self.lines_read(&layout));
        let (a, b) = if *flipped { (b, a) } else { (a, b) };
        let lines = tile.rows() * a + tile.columns * b / tile.cluster;
        let stage = STAGE + products.max(u64::from(lines * self.parts * LINE) / CACHE_BYTES);
        // Blocks that share what they read leave the cache to others.
        if tile.cluster == 1 { stage + stage / 100 } else { stage }
    }

    /// Lines of the cache that are read for a line of a tile: 2 where they are not aligned.
    fn lines_read(&self, layout: &Layout) -> u32 {
        let bytes = layout.leading * u64::from(self.gemm.element.size());
        if bytes % u64::from(LINE) == 0 { 1 } else { 2 }
    }

    /// Cycles for the results of a tile.
    fn results_cycles(&self, choice: &Choice) -> u64 {
        let Choice { tile, splits, .. } = *choice;
        let results = u64::from(tile.rows() * tile.columns);
        let size = if splits > 1 { 4 } else { self.gemm.output.size() };
        let bytes = results * u64::from(size);
        if choice.is_team() {
            TEAM + results * u64::from(tile.team) / 4
        } else if (splits > 1 || self.by_tiles) && tile.columns * size % LINE == 0 {
            RESULTS + bytes / TILE_BYTES
        } else {
            RESULTS + bytes / LANE_BYTES
        }
    }

    fn memory_cycles(&self) -> u64 {
        let Gemm { m, n, k, batch, element, output, .. } = self.gemm;
        let operands = (m * k + k * n) * u64::from(element.size() * self.parts);
        let bytes = operands + m * n * u64::from(output.size());
        batch.saturating_mul(bytes / MEMORY_BYTES)
    }

    /// Cycles for adding partial results up.
    fn adding_cycles(&self, choice: &Choice) -> u64 {
        if choice.splits == 1 {
            return 0;
        }
        let bytes = self.gemm.m * self.gemm.n * self.gemm.batch * 4;
        LAUNCH + bytes * u64::from(2 * choice.splits + 1) / MEMORY_BYTES
    }
}
