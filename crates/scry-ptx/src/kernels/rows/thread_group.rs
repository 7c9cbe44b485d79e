//! The threads that hold a row, and their number.

use super::format::Format;
use super::op::RowOp;
use super::shape::{Rows, argument_error};
use crate::kernels::{GpuSpec, PlanError};

/// The threads that hold a row together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadGroup {
    /// Threads per block: a power of two, 1 to 1024, or 1 to 512 with column operands (a weight or
    /// a bias). Thread groups of at most 32 threads share a block with others.
    pub threads: u32,
    /// Blocks per cluster: 1, 2, 4 or 8. More than 1 needs `sm_90` and at least 64 threads per
    /// block.
    pub blocks: u32,
    /// Vectors of 16 bytes per thread. Their elements are limited by registers, to
    /// - 64 for aligned rows of `F32` without column operands, in blocks of at most 256 threads; 60
    ///   for layer norm;
    /// - 16 for unaligned rows of 16-bit floats with column operands, with fewer than 8 blocks;
    /// - 24 for layer norm in clusters of more than 512 threads per block, except for aligned rows
    ///   of `F32` without column operands;
    /// - 32 otherwise.
    pub vectors: u32,
}

/// Maximum elements per thread.
const MAX_ELEMENTS: u32 = 32;
/// Maximum elements per thread of a small block whose threads need few other registers.
const DEEP_ELEMENTS: u32 = 64;
/// Maximum threads of a block whose threads hold [`DEEP_ELEMENTS`]. Three such blocks are resident
/// per multiprocessor.
const DEEP_MAX_THREADS: u32 = 256;
/// Maximum portable cluster size.
const MAX_BLOCKS: u32 = 8;
/// Threads of a block that several thread groups share.
const SMALL_BLOCK: u32 = 128;

impl ThreadGroup {
    /// Returns the thread group for a slice of a split row. Its threads hold less than the maximum,
    /// since the predicates of their elements need registers, too.
    pub(super) fn for_slices(format: Format, op: &dyn RowOp) -> Self {
        let vectors = Self::max_vectors(format) * 3 / 4;
        Self { threads: Self::max_threads(op), blocks: 1, vectors }
    }

    /// Returns the maximum vectors per thread in the general case.
    const fn max_vectors(format: Format) -> u32 {
        MAX_ELEMENTS / format.per_vector()
    }

    /// Returns the maximum vectors per thread of this group. With 16-bit floats and unaligned
    /// column operands registers are scarce: unless the cluster has the maximum size, threads hold
    /// fewer vectors.
    fn max_vectors_of(self, op: &dyn RowOp, rows: Rows, format: Format) -> u32 {
        let few_registers = Self::needs_few_registers(op, rows, format);
        if few_registers && self.threads <= DEEP_MAX_THREADS {
            return DEEP_ELEMENTS / format.per_vector() - u32::from(op.needs_first());
        }
        // Layer norm needs registers for the row's first element and the element count, too.
        let scarce_registers =
            op.needs_first() && !few_registers && self.threads > 512 && self.blocks > 1;
        match Self::has_unaligned_columns(op, rows, format) && self.blocks < MAX_BLOCKS {
            true => Self::occupancy_vectors(format),
            false if scarce_registers => Self::max_vectors(format) * 3 / 4,
            false => Self::max_vectors(format),
        }
    }

    /// Whether threads need few registers besides their elements.
    fn needs_few_registers(op: &dyn RowOp, rows: Rows, format: Format) -> bool {
        op.column_operands().is_empty() && rows.aligned(format) && format == Format::F32
    }

    /// Whether elements are 16-bit floats, and column operands are unaligned.
    fn has_unaligned_columns(op: &dyn RowOp, rows: Rows, format: Format) -> bool {
        !rows.aligned(format) && !op.column_operands().is_empty() && format.per_word() > 1
    }

    /// Returns the maximum vectors per thread at a higher occupancy.
    const fn occupancy_vectors(format: Format) -> u32 {
        Self::max_vectors(format) / 2
    }

    /// Returns the maximum threads per block: with column operands a thread needs more registers
    /// than it has in a block of 1024.
    fn max_threads(op: &dyn RowOp) -> u32 {
        if op.column_operands().is_empty() { 1024 } else { 512 }
    }

    /// Returns the minimum resident blocks per multiprocessor (`.minnctapersm`), which limits
    /// registers. It is not set for thread groups within a warp.
    pub(super) fn min_resident_blocks(
        self,
        op: &dyn RowOp,
        rows: Rows,
        format: Format,
    ) -> Option<u32> {
        let has_unaligned_columns = Self::has_unaligned_columns(op, rows, format);
        let exceeds_occupancy =
            has_unaligned_columns && self.vectors > Self::occupancy_vectors(format);
        match self.threads {
            ..=32 => None,
            _ if self.spills_with_bound(op, rows, format) => None,
            ..=512 if exceeds_occupancy => Some(3 * 256 / self.threads),
            _ if self.vectors > Self::max_vectors(format) => {
                Some(3 * DEEP_MAX_THREADS / self.threads)
            }
            _ => Some(1024 / self.threads),
        }
    }

    /// Whether ptxas needs few enough registers without `.minnctapersm`, but spills with it: layer
    /// norm with a weight only, where threads of large clusters hold the maximum.
    fn spills_with_bound(self, op: &dyn RowOp, rows: Rows, format: Format) -> bool {
        let holds_maximum = self.vectors == Self::max_vectors(format) && rows.aligned(format);
        let weighted = op.needs_first() && op.column_operands().len() == 1;
        holds_maximum && weighted && self.blocks == MAX_BLOCKS
    }

    /// Returns the prefetch distance in rows: about the number of rows that are computed at once.
    /// `None` for clusters, whose blocks start together, and for thread groups within a warp, of
    /// which enough are resident to keep memory busy.
    pub(super) fn prefetch_distance(self, format: Format, gpu: GpuSpec) -> Option<u32> {
        let threads = if self.vectors > Self::occupancy_vectors(format) { 1024 } else { 1280 };
        let needed = self.blocks == 1 && self.threads > 32;
        needed.then(|| gpu.multiprocessors * threads / self.threads)
    }

    /// Number of threads.
    pub(super) const fn size(self) -> u32 {
        self.threads * self.blocks
    }

    /// Threads per block.
    pub(super) const fn block(self) -> u32 {
        if self.threads <= 32 { SMALL_BLOCK } else { self.threads }
    }

    /// Rows per block.
    pub(super) const fn rows(self) -> u32 {
        self.block() / self.threads
    }

    /// Lanes of a warp that belong to the group.
    pub(super) const fn lanes(self) -> u32 {
        if self.threads < 32 { self.threads } else { 32 }
    }

    /// Warps per block; the group must consist of whole blocks.
    pub(super) const fn warps(self) -> u32 {
        self.threads / 32
    }

    /// Number of vectors that the group can hold.
    pub(super) const fn capacity(self) -> u32 {
        self.size() * self.vectors
    }

    /// Maximum edges per thread. A row has less than a vector of edges on each side.
    pub(super) const fn edges(self, format: Format) -> u32 {
        (2 * format.per_vector() - 2).div_ceil(self.size())
    }

    /// Returns the thread group of this many threads and blocks that holds `vectors` vectors with
    /// the fewest per thread.
    fn with_fewest_vectors(threads: u32, blocks: u32, vectors: u32) -> Self {
        Self { threads, blocks, vectors: vectors.div_ceil(threads * blocks).max(1) }
    }

    /// Returns the thread group for these rows; `None` if they are too long for any.
    pub(super) fn choose(op: &dyn RowOp, rows: Rows, gpu: GpuSpec) -> Option<Self> {
        let format = Format::from_type(rows.element)?;
        let vectors = u32::try_from(rows.length / u64::from(format.per_vector())).ok()?;
        if vectors <= 32 * Self::occupancy_vectors(format) {
            return Some(Self::with_fewest_vectors(
                vectors.next_power_of_two().clamp(4, 32),
                1,
                vectors,
            ));
        }
        let max = if gpu.target.has(90) { MAX_BLOCKS } else { 1 };
        let fits =
            |thread_group: &Self| thread_group.blocks <= max && thread_group.fits(op, rows, format);
        let blocks_per_row = Self::blocks_per_row(rows, vectors, gpu).min(max);
        let few_registers = Self::needs_few_registers(op, rows, format);
        let spread = (blocks_per_row > 1)
            .then(|| Self::with_fewest_threads(512, blocks_per_row, 2, vectors));
        spread.into_iter().chain(Self::by_size(few_registers, format, max, vectors)).find(fits)
    }

    /// Returns candidates for rows of this many vectors, the better ones first. Clusters of 8 large
    /// blocks leave some multiprocessors idle, since each must be within one GPC.
    fn by_size(few_registers: bool, format: Format, max: u32, vectors: u32) -> [Self; 5] {
        let large = |blocks| Self::with_fewest_vectors(512, blocks, vectors);
        let one = Self::with_fewest_threads(512, 1, Self::occupancy_vectors(format), vectors);
        let eight = if few_registers {
            Self::with_fewest_vectors(DEEP_MAX_THREADS, 8, vectors)
        } else {
            large(8)
        };
        [one, large(2), large(4), eight, Self::with_fewest_vectors(1024, max, vectors)]
    }

    /// Returns the thread group with the fewest threads per block, from 64 to `threads`, whose
    /// threads hold at most `vectors_per_thread`; with the maximum of threads they may hold more.
    fn with_fewest_threads(
        threads: u32,
        blocks: u32,
        vectors_per_thread: u32,
        vectors: u32,
    ) -> Self {
        let needed = vectors.div_ceil(blocks * vectors_per_thread).next_power_of_two();
        Self::with_fewest_vectors(needed.clamp(64, threads), blocks, vectors)
    }

    /// Whether the threads have enough registers.
    fn fits(self, op: &dyn RowOp, rows: Rows, format: Format) -> bool {
        let max = self.max_vectors_of(op, rows, format);
        self.vectors <= max && self.threads <= Self::max_threads(op)
    }

    /// Returns the blocks per row with which few rows keep the GPU busy; each has at least 4 KiB.
    fn blocks_per_row(rows: Rows, vectors: u32, gpu: GpuSpec) -> u32 {
        let blocks = u64::from(gpu.multiprocessors) / rows.count.max(1);
        let blocks = blocks.min((vectors / 256).into()).max(1);
        1 << blocks.ilog2().min(MAX_BLOCKS.ilog2())
    }

    /// Checks that the thread group is valid, can hold these rows, and has no superfluous round.
    pub(super) fn check(self, op: &dyn RowOp, rows: Rows, format: Format) -> Result<(), PlanError> {
        let Self { threads, blocks, vectors } = self;
        let is_valid = threads.is_power_of_two() && self.fits(op, rows, format) && vectors > 0;
        let is_cluster = [2, 4, MAX_BLOCKS].contains(&blocks) && threads >= 64;
        if !is_valid || !(blocks == 1 || is_cluster) {
            let help = "see the limits of `ThreadGroup`";
            return Err(argument_error(op, "thread_group", format!("{self:?}"), help));
        }
        let needed = rows.length / u64::from(format.per_vector());
        let unconditional = u64::from(self.size() * (vectors - 1));
        let fits = needed <= self.capacity().into() && (vectors == 1 || needed > unconditional);
        if !fits {
            let problem = format!("{self:?}, for rows of {needed} vectors");
            let help = "pass the vectors of a row divided by the threads, rounded up";
            return Err(argument_error(op, "thread_group", problem, help));
        }
        Ok(())
    }
}
