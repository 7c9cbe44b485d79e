//! The tile of a block, and how its warps divide it.

use crate::kernels::name::Name;

/// The tile shape of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MmaTile {
    /// Rows and columns of the result that a block computes.
    pub rows: u32,
    pub columns: u32,
    /// Pipeline stages.
    pub stages: u32,
    /// Warps of a block along the rows (M) and the columns (N) of its tile.
    pub warps: [u32; 2],
    /// Resident blocks per multiprocessor (occupancy): registers are limited so that as many fit.
    pub resident_blocks: u32,
    /// 16-bit multiply-adds per cycle and multiprocessor, measured on an H200.
    pub mul_adds_per_cycle: u32,
}

impl MmaTile {
    /// Returns the threads of a block.
    pub(crate) const fn threads(&self) -> u32 {
        self.warps[0] * self.warps[1] * 32
    }

    /// Appends the tile shape to a kernel's name.
    pub(super) fn append_to(&self, name: Name) -> Name {
        let Self { rows, columns, stages, warps, .. } = self;
        let name = name.with(format_args!("{rows}x{columns}")).with(format_args!("s{stages}"));
        name.with(format_args!("w{}x{}", warps[0], warps[1]))
    }
}
