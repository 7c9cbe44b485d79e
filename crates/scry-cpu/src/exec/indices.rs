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

/// The indices of all lanes, as far as they are known for all blocks together.
#[derive(Clone, Copy)]
pub(super) enum Pattern {
    /// Each lane is `step` above the one before; none wraps.
    Flat { first: u32, step: u32 },
    /// Blocks lie in rows along x.
    Rows(Rows),
    /// Anything affine.
    Affine(Coefficients),
    /// Arbitrary indices, in this register.
    Lanes(u32),
}

/// log2 of a number of blocks that exceeds any extent: all blocks belong to one row, or workgroup.
pub(super) const ALL: u32 = u32::BITS - 1;

/// That number of blocks.
const ALL_BLOCKS: u32 = 1 << ALL;

/// The first index of each block, and the step from lane to lane.
#[derive(Clone, Copy, Default)]
pub(super) struct Rows {
    pub(super) first: u32,
    pub(super) step: u32,
    /// Step from one block to the next in a row.
    along: u32,
    /// Step from one row to the next.
    across: u32,
    /// log2 of the blocks of a row.
    power: u32,
    /// From the first row of a group of rows to that of the next: those of a workgroup, or where
    /// lanes are interleaved, those that have the same number in each workgroup.
    beyond: u32,
    /// log2 of the blocks of a group of rows.
    group: u32,
}

impl Rows {
    /// The same with these numbers of blocks in rows and groups, and the steps from one to the
    /// next.
    fn by(self, row: u32, across: u32, group: u32, beyond: u32) -> Self {
        let (power, group) = (row.trailing_zeros(), group.trailing_zeros());
        Self { across, power, beyond, group, ..self }
    }

    #[inline(always)]
    pub(super) fn origin(&self, block: usize) -> u32 {
        let block = block as u32;
        let (group, block) = (block >> self.group, block & ((1 << self.group) - 1));
        let (row, nth) = (block >> self.power, block & ((1 << self.power) - 1));
        self.first
            .wrapping_add(group.wrapping_mul(self.beyond))
            .wrapping_add(row.wrapping_mul(self.across))
            .wrapping_add(nth.wrapping_mul(self.along))
    }

    /// The first index of a block, if none of the block wraps.
    #[inline(always)]
    pub(super) fn run(&self, block: usize) -> Option<u32> {
        let first = self.origin(block);
        let last = i64::from(first) + i64::from(self.step as i32) * (BLOCK as i64 - 1);
        (0..=i64::from(u32::MAX)).contains(&last).then_some(first)
    }

    /// Returns log2 of the blocks of a row.
    #[inline(always)]
    pub(super) fn power(&self) -> u32 {
        self.power
    }

    /// Blocks that follow each other evenly, two to this power, and how far the first index of one
    /// is from that of the next; and the same of larger parts that are made of these.
    #[inline(always)]
    pub(super) fn levels(&self) -> [(u32, u32); 2] {
        if self.power == 0 {
            [(self.group, self.across), (ALL, self.beyond)]
        } else {
            [(self.power, self.along), (self.group, self.across)]
        }
    }

    /// The first index of the first of the blocks of a grid, if none of all wraps. Blocks and rows
    /// are that far apart.
    #[inline(always)]
    pub(super) fn evenly(&self, block: usize, apart: [u32; 2], grid: Grid) -> Option<u32> {
        let first = self.origin(block);
        let steps = [(self.step, BLOCK), (apart[0], grid.blocks), (apart[1], grid.rows)];
        let (mut low, mut high) = (i64::from(first), i64::from(first));
        for (step, count) in steps {
            let reach = i64::from(step as i32) * (count as i64 - 1);
            low += reach.min(0);
            high += reach.max(0);
        }
        (low >= 0 && high <= i64::from(u32::MAX)).then_some(first)
    }

    /// The first index of some blocks of one row, if none of all wraps.
    #[inline(always)]
    pub(super) fn in_row(&self, blocks: &Range<usize>) -> Option<u32> {
        self.evenly(blocks.start, [self.along, 0], Grid { rows: 1, blocks: blocks.len() })
    }

    /// How far each lane's index is from that of the first lane of its block.
    pub(super) fn within(&self) -> [u32; BLOCK] {
        std::array::from_fn(|lane| self.step.wrapping_mul(lane as u32))
    }

    /// The indices of a block, whether they wrap or not.
    pub(super) fn indices(&self, block: usize) -> Indices {
        let (first, step) = (self.origin(block), self.step);
        match self.run(block) {
            Some(first) => Indices::Run { first, step },
            None => Indices::Each(each(Indices::Run { first, step })),
        }
    }
}

/// Indices as those of rows; none if they are on no line.
pub(super) fn line(pattern: &Pattern) -> Option<Rows> {
    match *pattern {
        Pattern::Flat { first, step } => {
            let along = step.wrapping_mul(BLOCK as u32);
            Some(Rows { first, step, along, across: 0, power: ALL, beyond: 0, group: ALL })
        }
        Pattern::Rows(rows) => Some(rows),
        Pattern::Affine(_) | Pattern::Lanes(_) => None,
    }
}

impl Frame<'_> {
    /// Returns log2 of the blocks of a workgroup.
    pub(super) fn group_power(&self) -> u32 {
        (self.code.lane_layout.invocations() / BLOCK).trailing_zeros()
    }

    /// What is known of an index.
    pub(super) fn pattern(&self, index: &Index) -> Pattern {
        match *index {
            Index::None => Pattern::Flat { first: 0, step: 0 },
            Index::Scalar(scalar) => Pattern::Flat { first: self.scalar(scalar) as u32, step: 0 },
            Index::Lanes(start) => Pattern::Lanes(start),
            Index::Affine(affine) => {
                let coefficients = self.coefficients(affine);
                if coefficients.linear {
                    self.affine_pattern(coefficients)
                } else {
                    Pattern::Lanes(affine.lanes)
                }
            }
        }
    }

    pub(super) fn affine_pattern(&self, coefficients: Coefficients) -> Pattern {
        let group = self.code.lane_layout;
        let [width, height, depth] = group.size;
        let Coefficients { base: first, step: [x, y, z, beyond], .. } = coefficients;
        // Lanes of a row, and of what leads from one workgroup to the next.
        let (row, whole) = if group.interleaved {
            (width * self.count, width)
        } else {
            (width, group.invocations() as u32)
        };
        // Whether slices follow each other as rows do, and workgroups as lanes do.
        let even = depth == 1 || z == y.wrapping_mul(height);
        let joined = self.count == 1 || beyond == x.wrapping_mul(whole);
        let flat = even && (height == 1 && depth == 1 || y == x.wrapping_mul(row));
        let reach = u64::from(x) * (self.lanes.end * BLOCK) as u64;
        if flat && joined && u64::from(first) + reach <= u64::from(u32::MAX) {
            return Pattern::Flat { first, step: x };
        }
        let rows = Rows { first, step: x, along: x.wrapping_mul(BLOCK as u32), ..Rows::default() };
        // Blocks of a row of a workgroup, and of all of them.
        let (part, row) = (width / BLOCK as u32, row / BLOCK as u32);
        let rows = if !even {
            None
        } else if group.interleaved && joined {
            row.is_power_of_two().then(|| rows.by(row, y, ALL_BLOCKS, 0))
        } else if !self.rows || !part.is_power_of_two() {
            None
        } else if group.interleaved {
            Some(rows.by(part, beyond, row, y))
        } else if group.batch == 1 {
            Some(rows.by(part, y, ALL_BLOCKS, 0))
        } else {
            // Each workgroup has a power of two of blocks.
            Some(rows.by(part, y, 1 << self.group_power(), beyond))
        };
        rows.map_or(Pattern::Affine(coefficients), Pattern::Rows)
    }

    /// The indices of a block of lanes.
    #[inline(always)]
    pub(super) fn indices(&self, pattern: &Pattern, block: usize) -> Indices {
        match pattern {
            Pattern::Flat { first, step } => {
                Indices::Run { first: first + step * (block * BLOCK) as u32, step: *step }
            }
            Pattern::Rows(rows) => rows.indices(block),
            Pattern::Affine(coefficients) => run_of(self.block_of(coefficients, block)),
            Pattern::Lanes(start) => run_of(u32::file(self.files())[*start as usize + block].get()),
        }
    }
}

/// The indices of each lane.
#[inline(always)]
pub(super) fn each(indices: Indices) -> [u32; BLOCK] {
    match indices {
        Indices::Each(indices) => indices,
        Indices::Run { first, step } => {
            std::array::from_fn(|lane| first.wrapping_add(step.wrapping_mul(lane as u32)))
        }
    }
}

/// Whether indices are all the same, or each one above the one before, as those of neighbours
/// often are.
#[inline(always)]
fn run_of(lanes: [u32; BLOCK]) -> Indices {
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
