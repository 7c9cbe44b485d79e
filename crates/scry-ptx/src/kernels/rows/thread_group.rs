//! How many threads hold a row.

use super::format::Format;
use super::op::RowOp;
use super::shape::{Rows, argument};
use crate::kernels::{GpuSpec, PlanError};

/// The threads that hold a row together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Team {
    /// Threads in each block: a power of two, 1 to 1024, or to 512 with operands for columns.
    /// Several thread groups share a block if there are at most 32.
    pub threads: u32,
    /// Blocks of a cluster: 1, 2, 4 or 8; more than one only of 64 threads or more (`sm_90`).
    pub blocks: u32,
    /// Vectors of 16 bytes that each thread holds, of at most 32 elements; or of 64 if there are at
    /// most 256 threads, the elements are `F32`, rows are aligned, and columns have no operands;
    /// or of 16 if they are halves, rows are not aligned, columns have operands, and there are
    /// fewer than 8 blocks. Of layer norm it is a quarter less in clusters of more than 512 threads
    /// a block, but for aligned rows of `F32`, and 60 where others hold 64.
    pub vectors: u32,
}

/// Elements that a thread can hold.
const MOST_ELEMENTS: u32 = 32;
/// Elements that a thread of a small block can hold beside nothing else.
const DEEP_ELEMENTS: u32 = 64;
/// Threads of a block whose threads hold that many: three blocks share a multiprocessor.
const DEEP_BLOCK: u32 = 256;
/// Blocks that a cluster can have on every device.
const MOST_BLOCKS: u32 = 8;
/// Threads of a block, if thread groups are smaller.
const SMALL_BLOCK: u32 = 128;

impl Team {
    /// The threads for a part of a row that is split. They hold less than they could: which of
    /// their elements are there takes registers, too.
    pub(super) fn part(format: Format, op: &dyn RowOp) -> Self {
        let vectors = Self::most_vectors(format) * 3 / 4;
        Self { threads: Self::most_threads(op), blocks: 1, vectors }
    }

    /// Vectors that a thread can hold.
    const fn most_vectors(format: Format) -> u32 {
        MOST_ELEMENTS / format.per_vector()
    }

    /// Vectors that its threads can hold. Those that hold halves and read operands in small pieces
    /// lack registers: where clusters of more blocks will do, they hold few.
    fn limit(self, op: &dyn RowOp, rows: Rows, format: Format) -> u32 {
        let alone = Self::alone(op, rows, format);
        if alone && self.threads <= DEEP_BLOCK {
            return DEEP_ELEMENTS / format.per_vector() - u32::from(op.wants_first());
        }
        // The first element of the row, and how many there are, take registers, too.
        let crowded = op.wants_first() && !alone && self.threads > 512 && self.blocks > 1;
        match Self::pieces(op, rows, format) && self.blocks < MOST_BLOCKS {
            true => Self::few_vectors(format),
            false if crowded => Self::most_vectors(format) * 3 / 4,
            false => Self::most_vectors(format),
        }
    }

    /// Whether threads hold nothing beside their elements.
    fn alone(op: &dyn RowOp, rows: Rows, format: Format) -> bool {
        op.columns().is_empty() && rows.aligned(format) && format == Format::F32
    }

    /// Whether elements are halves, and operands for their columns are read in small pieces.
    fn pieces(op: &dyn RowOp, rows: Rows, format: Format) -> bool {
        !rows.aligned(format) && !op.columns().is_empty() && format.per_word() > 1
    }

    /// Vectors of a thread that leave room for more threads.
    const fn few_vectors(format: Format) -> u32 {
        Self::most_vectors(format) / 2
    }

    /// Threads that a block can have: with operands for columns beside its elements, a thread takes
    /// more registers than it has in a block of 1024.
    fn most_threads(op: &dyn RowOp) -> u32 {
        if op.columns().is_empty() { 1024 } else { 512 }
    }

    /// Blocks that share a multiprocessor at least: a bound on registers. a thread group within a
    /// warp gets as many of them as it likes.
    pub(super) fn residents(self, op: &dyn RowOp, rows: Rows, format: Format) -> Option<u32> {
        let pieces = Self::pieces(op, rows, format);
        let many = pieces && self.vectors > Self::few_vectors(format);
        match self.threads {
            ..=32 => None,
            _ if self.is_better_unbound(op, rows, format) => None,
            ..=512 if many => Some(3 * 256 / self.threads),
            _ if self.vectors > Self::most_vectors(format) => Some(3 * DEEP_BLOCK / self.threads),
            _ => Some(1024 / self.threads),
        }
    }

    /// Whether the assembler keeps to the bound by itself, and spills if it is told to: so with a
    /// weight alone, where threads of large clusters hold as much as they can.
    fn is_better_unbound(self, op: &dyn RowOp, rows: Rows, format: Format) -> bool {
        let full = self.vectors == Self::most_vectors(format) && rows.aligned(format);
        let weighted = op.wants_first() && op.columns().len() == 1;
        full && weighted && self.blocks == MOST_BLOCKS
    }

    /// How many rows further on a block begins when one of these ends: about as many as are
    /// computed at once. None for blocks of a cluster, which begin together, and for small thread
    /// groups, of which this many are at work that memory is never idle.
    pub(super) fn ahead(self, format: Format, machine: GpuSpec) -> Option<u32> {
        let threads = if self.vectors > Self::few_vectors(format) { 1024 } else { 1280 };
        let wanted = self.blocks == 1 && self.threads > 32;
        wanted.then(|| machine.multiprocessors * threads / self.threads)
    }

    /// All threads.
    pub(super) const fn size(self) -> u32 {
        self.threads * self.blocks
    }

    /// Threads of a block.
    pub(super) const fn block(self) -> u32 {
        if self.threads <= 32 { SMALL_BLOCK } else { self.threads }
    }

    /// Rows of a block.
    pub(super) const fn rows(self) -> u32 {
        self.block() / self.threads
    }

    /// Lanes of a warp that belong to it.
    pub(super) const fn lanes(self) -> u32 {
        if self.threads < 32 { self.threads } else { 32 }
    }

    /// Warps in each block, if they are its own.
    pub(super) const fn warps(self) -> u32 {
        self.threads / 32
    }

    /// Vectors that it can hold.
    pub(super) const fn capacity(self) -> u32 {
        self.size() * self.vectors
    }

    /// Edges that each thread holds where rows are not aligned: all before the first vector and
    /// behind the last one, less than a vector each.
    pub(super) const fn edges(self, format: Format) -> u32 {
        (2 * format.per_vector() - 2).div_ceil(self.size())
    }

    /// The thread group of this many threads that holds this many vectors, and no thread more than
    /// it must.
    fn tight(threads: u32, blocks: u32, vectors: u32) -> Self {
        Self { threads, blocks, vectors: vectors.div_ceil(threads * blocks).max(1) }
    }

    /// The thread group for these rows; none if they are too long for any.
    pub(super) fn choose(op: &dyn RowOp, rows: Rows, machine: GpuSpec) -> Option<Self> {
        let format = Format::of(rows.element)?;
        let vectors = u32::try_from(rows.length / u64::from(format.per_vector())).ok()?;
        if vectors <= 32 * Self::few_vectors(format) {
            return Some(Self::tight(vectors.next_power_of_two().clamp(4, 32), 1, vectors));
        }
        let most = if machine.target.has(90) { MOST_BLOCKS } else { 1 };
        let fits = |team: &Self| team.blocks <= most && team.fits(op, rows, format);
        let spread = Self::spread(rows, vectors, machine).min(most);
        let deep = Self::alone(op, rows, format);
        let spread = (spread > 1).then(|| Self::within(512, spread, 2, vectors));
        spread.into_iter().chain(Self::by_size(deep, format, most, vectors)).find(fits)
    }

    /// Thread groups for rows of this many vectors, the better ones first. Clusters of 8 large
    /// blocks leave some multiprocessors without work, since each is within one group of them.
    fn by_size(deep: bool, format: Format, most: u32, vectors: u32) -> [Self; 5] {
        let large = |blocks| Self::tight(512, blocks, vectors);
        let one = Self::within(512, 1, Self::few_vectors(format), vectors);
        let eight = if deep { Self::tight(DEEP_BLOCK, 8, vectors) } else { large(8) };
        [one, large(2), large(4), eight, Self::tight(1024, most, vectors)]
    }

    /// The thread group of at most this many threads in a block that hold this many vectors, if
    /// that will do.
    fn within(threads: u32, blocks: u32, each: u32, vectors: u32) -> Self {
        let wanted = vectors.div_ceil(blocks * each).next_power_of_two();
        Self::tight(wanted.clamp(64, threads), blocks, vectors)
    }

    /// Whether threads can hold as much as they would have to.
    fn fits(self, op: &dyn RowOp, rows: Rows, format: Format) -> bool {
        let most = self.limit(op, rows, format);
        self.vectors <= most && self.threads <= Self::most_threads(op)
    }

    /// Blocks for each row, so that few rows keep the device busy: as long as each has 4 KiB.
    fn spread(rows: Rows, vectors: u32, machine: GpuSpec) -> u32 {
        let blocks = u64::from(machine.multiprocessors) / rows.count.max(1);
        let blocks = blocks.min((vectors / 256).into()).max(1);
        1 << blocks.ilog2().min(MOST_BLOCKS.ilog2())
    }

    /// Whether it is one, and holds these rows.
    pub(super) fn check(self, op: &dyn RowOp, rows: Rows, format: Format) -> Result<(), PlanError> {
        let Self { threads, blocks, vectors } = self;
        let known = threads.is_power_of_two() && self.fits(op, rows, format) && vectors > 0;
        let cluster = [2, 4, MOST_BLOCKS].contains(&blocks) && threads >= 64;
        if !known || !(blocks == 1 || cluster) {
            let help = "see the limits of a team";
            return Err(argument(op, "team", format!("{self:?}"), help));
        }
        let wanted = rows.length / u64::from(format.per_vector());
        let certain = u64::from(self.size() * (vectors - 1));
        let fits = wanted <= self.capacity().into() && (vectors == 1 || wanted > certain);
        if !fits {
            let problem = format!("{self:?}, for rows of {wanted} vectors");
            let help = "as many vectors for each thread as a row takes, rounded up";
            return Err(argument(op, "team", problem, help));
        }
        Ok(())
    }
}
