//! How a block divides its tile.

use crate::kernels::name::Name;

/// How a block divides its tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tile {
    /// Rows and columns of the result.
    pub rows: u32,
    pub columns: u32,
    /// Stages.
    pub stages: u32,
    /// Warps from top to bottom, and from left to right.
    pub warps: [u32; 2],
    /// Blocks that share a multiprocessor.
    pub blocks: u32,
    /// Multiply-adds of halves of a multiprocessor in a cycle, as measured on one H200.
    pub rate: u32,
}

impl Tile {
    pub(crate) const fn threads(&self) -> u32 {
        self.warps[0] * self.warps[1] * 32
    }

    /// Appends the tile to the name of a kernel.
    pub(super) fn named(&self, name: Name) -> Name {
        let Self { rows, columns, stages, warps, .. } = self;
        let name = name.with(format_args!("{rows}x{columns}")).with(format_args!("s{stages}"));
        name.with(format_args!("w{}x{}", warps[0], warps[1]))
    }
}
