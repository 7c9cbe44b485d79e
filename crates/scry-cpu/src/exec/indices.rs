//! The element indices that a block of lanes accesses.

use std::ops::Range;

use super::frame::Frame;
use super::scratch::Coefficients;
use crate::code::Index;
use crate::lanes::{BLOCK, Bits};
use crate::strided::Grid;

/// The indices of a block of lanes.
#[derive(Clone, Copy)]
pub(super) enum Indices {
    /// The first index, and the step from lane to lane; none wraps.
    Run { first: u32, step: u32 },
    /// An index for each lane.
    Each([u32; BLOCK]),
}

/// The pattern of the indices of all lanes.
#[derive(Clone, Copy)]
pub(super) enum Pattern {
    /// A constant stride over all lanes; no index wraps.
    Flat { first: u32, step: u32 },
    /// A constant stride within each block, and constant strides between blocks.
    Rows(Rows),
    /// Affine indices of another kind.
    Affine(Coefficients),
    /// Arbitrary indices, in this register.
    Lanes(u32),
}

/// log2 of a number of blocks that no batch reaches: with it, all blocks belong to one row, or to
/// one workgroup.
pub(super) const ALL_BLOCKS_LOG2: u32 = u32::BITS - 1;

/// The number of blocks itself.
const ALL_BLOCKS: u32 = 1 << ALL_BLOCKS_LOG2;

/// Blocks in rows, and rows in groups, each at a constant stride.
#[derive(Clone, Copy, Default)]
pub(super) struct Rows {
    /// The index of the first lane.
    pub(super) first: u32,
    /// Step from one lane to the next in a block.
    pub(super) step: u32,
    /// Step from one block to the next in a row.
    along: u32,
    /// Step from one row to the next.
    across: u32,
    /// log2 of the number of blocks of a row.
    row_log2: u32,
    /// Step from one group of rows to the next. A group has the rows of a workgroup, or if lanes
    /// are interleaved, the rows of the same number in each workgroup.
    beyond: u32,
    /// log2 of the number of blocks of a group of rows.
    group_log2: u32,
}

impl Rows {
    /// Sets the numbers of blocks of a row and of a group, and the steps between rows and between
    /// groups.
    fn with_strides(self, row: u32, across: u32, group: u32, beyond: u32) -> Self {
        let (row_log2, group_log2) = (row.trailing_zeros(), group.trailing_zeros());
        Self { across, row_log2, beyond, group_log2, ..self }
    }

    /// Returns the index of the first lane of a block, modulo 2^32.
    #[inline(always)]
    pub(super) fn origin(&self, block: usize) -> u32 {
        let block = block as u32;
        let (group, block) = (block >> self.group_log2, block & ((1 << self.group_log2) - 1));
        let (row, nth) = (block >> self.row_log2, block & ((1 << self.row_log2) - 1));
        self.first
            .wrapping_add(group.wrapping_mul(self.beyond))
            .wrapping_add(row.wrapping_mul(self.across))
            .wrapping_add(nth.wrapping_mul(self.along))
    }

    /// Returns the first index of a block, if no index of the block wraps.
    #[inline(always)]
    pub(super) fn checked_origin(&self, block: usize) -> Option<u32> {
        let first = self.origin(block);
        let last = i64::from(first) + i64::from(self.step as i32) * (BLOCK as i64 - 1);
        (0..=i64::from(u32::MAX)).contains(&last).then_some(first)
    }

    /// Returns log2 of the number of blocks of a row.
    #[inline(always)]
    pub(super) fn row_log2(&self) -> u32 {
        self.row_log2
    }

    /// Returns the two innermost levels: for each, log2 of the number of blocks at a constant
    /// stride, and the stride.
    #[inline(always)]
    pub(super) fn levels(&self) -> [(u32, u32); 2] {
        if self.row_log2 == 0 {
            [(self.group_log2, self.across), (ALL_BLOCKS_LOG2, self.beyond)]
        } else {
            [(self.row_log2, self.along), (self.group_log2, self.across)]
        }
    }

    /// Returns the first index of a grid of blocks, if no index wraps. `strides` are the strides of
    /// blocks and rows.
    #[inline(always)]
    pub(super) fn checked_grid_origin(
        &self,
        block: usize,
        strides: [u32; 2],
        grid: Grid,
    ) -> Option<u32> {
        let first = self.origin(block);
        let steps = [(self.step, BLOCK), (strides[0], grid.blocks), (strides[1], grid.rows)];
        let (mut low, mut high) = (i64::from(first), i64::from(first));
        for (step, count) in steps {
            let reach = i64::from(step as i32) * (count as i64 - 1);
            low += reach.min(0);
            high += reach.max(0);
        }
        (low >= 0 && high <= i64::from(u32::MAX)).then_some(first)
    }

    /// Returns the first index of blocks of one row, if no index wraps.
    #[inline(always)]
    pub(super) fn checked_row_origin(&self, blocks: &Range<usize>) -> Option<u32> {
        self.checked_grid_origin(
            blocks.start,
            [self.along, 0],
            Grid { rows: 1, blocks: blocks.len() },
        )
    }

    /// Returns the offset of each lane's index from that of the first lane of its block.
    pub(super) fn lane_offsets(&self) -> [u32; BLOCK] {
        std::array::from_fn(|lane| self.step.wrapping_mul(lane as u32))
    }

    /// Returns the indices of a block, which may wrap.
    pub(super) fn indices(&self, block: usize) -> Indices {
        let (first, step) = (self.origin(block), self.step);
        match self.checked_origin(block) {
            Some(first) => Indices::Run { first, step },
            None => Indices::Each(lane_indices(Indices::Run { first, step })),
        }
    }
}

/// Returns the pattern as rows, if the stride within blocks is constant.
pub(super) fn strided_rows(pattern: &Pattern) -> Option<Rows> {
    match *pattern {
        Pattern::Flat { first, step } => {
            let along = step.wrapping_mul(BLOCK as u32);
            Some(Rows {
                first,
                step,
                along,
                across: 0,
                row_log2: ALL_BLOCKS_LOG2,
                beyond: 0,
                group_log2: ALL_BLOCKS_LOG2,
            })
        }
        Pattern::Rows(rows) => Some(rows),
        Pattern::Affine(_) | Pattern::Lanes(_) => None,
    }
}

impl Frame<'_> {
    /// Returns log2 of the number of blocks of a workgroup, which is a power of two in batches.
    pub(super) fn group_log2(&self) -> u32 {
        (self.code.lane_layout.invocations() / BLOCK).trailing_zeros()
    }

    /// Returns the pattern of an index.
    pub(super) fn pattern(&self, index: &Index) -> Pattern {
        match *index {
            Index::None => Pattern::Flat { first: 0, step: 0 },
            Index::Scalar(scalar) => Pattern::Flat { first: self.scalar(scalar) as u32, step: 0 },
            Index::Lanes(start) => Pattern::Lanes(start),
            Index::Affine(affine) => {
                let coefficients = self.coefficients(affine);
                if coefficients.is_affine {
                    self.affine_pattern(coefficients)
                } else {
                    Pattern::Lanes(affine.lanes)
                }
            }
        }
    }

    /// Returns the pattern of an affine index.
    pub(super) fn affine_pattern(&self, coefficients: Coefficients) -> Pattern {
        let layout = self.code.lane_layout;
        let [width, height, depth] = layout.size;
        let Coefficients { base: first, step: [x, y, z, beyond], .. } = coefficients;
        // Number of lanes of a row of the batch, and from one workgroup to the next.
        let (row, workgroup) = if layout.interleaved {
            (width * self.count, width)
        } else {
            (width, layout.invocations() as u32)
        };
        // Whether slices along z continue the stride of rows, and workgroups that of lanes.
        let slices_continue = depth == 1 || z == y.wrapping_mul(height);
        let workgroups_continue = self.count == 1 || beyond == x.wrapping_mul(workgroup);
        let flat = slices_continue && (height == 1 && depth == 1 || y == x.wrapping_mul(row));
        let reach = u64::from(x) * (self.lanes.end * BLOCK) as u64;
        if flat && workgroups_continue && u64::from(first) + reach <= u64::from(u32::MAX) {
            return Pattern::Flat { first, step: x };
        }
        let rows = Rows { first, step: x, along: x.wrapping_mul(BLOCK as u32), ..Rows::default() };
        // Number of blocks of a row of one workgroup, and of the batch.
        let (part, row) = (width / BLOCK as u32, row / BLOCK as u32);
        let rows = if !slices_continue {
            None
        } else if layout.interleaved && workgroups_continue {
            row.is_power_of_two().then(|| rows.with_strides(row, y, ALL_BLOCKS, 0))
        } else if !self.blocks_within_rows || !part.is_power_of_two() {
            None
        } else if layout.interleaved {
            Some(rows.with_strides(part, beyond, row, y))
        } else if layout.batch == 1 {
            Some(rows.with_strides(part, y, ALL_BLOCKS, 0))
        } else {
            // The number of blocks of a workgroup is a power of two.
            Some(rows.with_strides(part, y, 1 << self.group_log2(), beyond))
        };
        rows.map_or(Pattern::Affine(coefficients), Pattern::Rows)
    }

    /// Returns the indices of a block of lanes.
    #[inline(always)]
    pub(super) fn indices(&self, pattern: &Pattern, block: usize) -> Indices {
        match pattern {
            Pattern::Flat { first, step } => {
                Indices::Run { first: first + step * (block * BLOCK) as u32, step: *step }
            }
            Pattern::Rows(rows) => rows.indices(block),
            Pattern::Affine(coefficients) => detect_run(self.affine_block(coefficients, block)),
            Pattern::Lanes(start) => {
                detect_run(u32::file(self.files())[*start as usize + block].get())
            }
        }
    }
}

/// Returns the index of each lane.
#[inline(always)]
pub(super) fn lane_indices(indices: Indices) -> [u32; BLOCK] {
    match indices {
        Indices::Each(indices) => indices,
        Indices::Run { first, step } => {
            std::array::from_fn(|lane| first.wrapping_add(step.wrapping_mul(lane as u32)))
        }
    }
}

/// Detects indices that are all equal or consecutive.
#[inline(always)]
fn detect_run(lanes: [u32; BLOCK]) -> Indices {
    let first = lanes[0];
    let (mut same, mut next) = (true, true);
    for (lane, index) in lanes.into_iter().enumerate() {
        same &= index == first;
        next &= index == first.wrapping_add(lane as u32);
    }
    if same {
        Indices::Run { first, step: 0 }
    } else if next && first <= u32::MAX - BLOCK as u32 {
        Indices::Run { first, step: 1 }
    } else {
        Indices::Each(lanes)
    }
}
