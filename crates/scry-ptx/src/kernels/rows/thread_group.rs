//! The threads that hold a row, and their number.

use super::format::Format;
use super::op::RowOp;
use super::shape::{Rows, argument};
use crate::kernels::{GpuSpec, PlanError};

/// The threads that hold a row together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadGroup {
    /// Threads per block: a power of two, 1 to 1024, or to 512 with operands for columns. Several
    /// thread groups share a block if they have at most 32.
    pub threads: u32,
    /// Blocks per cluster: 1, 2, 4 or 8; more than one only of 64 threads or more (`sm_90`).
    pub blocks: u32,
    /// Vectors of 16 bytes per thread, of at most 32 elements; or of 64 if there are at most 256
    /// threads, the elements are `F32`, rows are aligned, and columns have no operands; or of 16 if
    /// they are 16-bit floats, rows are not aligned, columns have operands, and there are fewer
    /// than 8 blocks. Layer norm has a quarter less in clusters of more than 512 threads per block,
    /// except for aligned rows of `F32`, and 60 elements instead of 64.
    pub vectors: u32,
}

/// Maximum elements per thread.
const MAX_ELEMENTS: u32 = 32;
/// Maximum elements per thread of a small block that needs few other registers.
const DEEP_ELEMENTS: u32 = 64;
/// Threads per block whose threads hold that many: three blocks are resident per multiprocessor.
const DEEP_BLOCK: u32 = 256;
/// Maximum portable cluster size.
const MAX_BLOCKS: u32 = 8;
/// Threads per block, if thread groups are smaller.
const SMALL_BLOCK: u32 = 128;

impl ThreadGroup {
    /// Returns the thread group for a slice of a split row. Its threads hold less than they could:
    /// the predicates of their elements need registers, too.
    pub(super) fn part(format: Format, op: &dyn RowOp) -> Self {
        let vectors = Self::most_vectors(format) * 3 / 4;
        Self { threads: Self::most_threads(op), blocks: 1, vectors }
    }

    /// Maximum vectors per thread.
    const fn most_vectors(format: Format) -> u32 {
        MAX_ELEMENTS / format.per_vector()
    }

    /// Returns the maximum vectors of its threads. With 16-bit floats and unaligned column operands
    /// registers are scarce: where larger clusters are possible, threads hold few vectors.
    fn limit(self, op: &dyn RowOp, rows: Rows, format: Format) -> u32 {
        let alone = Self::needs_few_registers(op, rows, format);
        if alone && self.threads <= DEEP_BLOCK {
            return DEEP_ELEMENTS / format.per_vector() - u32::from(op.wants_first());
        }
        // The first element of the row and the element count need registers, too.
        let crowded = op.wants_first() && !alone && self.threads > 512 && self.blocks > 1;
        match Self::has_unaligned_columns(op, rows, format) && self.blocks < MAX_BLOCKS {
            true => Self::occupancy_vectors(format),
            false if crowded => Self::most_vectors(format) * 3 / 4,
            false => Self::most_vectors(format),
        }
    }

    /// Whether threads need few registers besides their elements.
    fn needs_few_registers(op: &dyn RowOp, rows: Rows, format: Format) -> bool {
        op.columns().is_empty() && rows.aligned(format) && format == Format::F32
    }

    /// Whether elements are 16-bit floats, and column operands are unaligned.
    fn has_unaligned_columns(op: &dyn RowOp, rows: Rows, format: Format) -> bool {
        !rows.aligned(format) && !op.columns().is_empty() && format.per_word() > 1
    }

    /// Vectors per thread at a higher occupancy.
    const fn occupancy_vectors(format: Format) -> u32 {
        Self::most_vectors(format) / 2
    }

    /// Returns the maximum threads per block: with column operands a thread needs more registers
    /// than it has in a block of 1024.
    fn most_threads(op: &dyn RowOp) -> u32 {
        if op.columns().is_empty() { 1024 } else { 512 }
    }

    /// Returns the minimum resident blocks per multiprocessor (`.minnctapersm`), which limits
    /// registers. It is not set for thread groups within a warp.
    pub(super) fn residents(self, op: &dyn RowOp, rows: Rows, format: Format) -> Option<u32> {
        let pieces = Self::has_unaligned_columns(op, rows, format);
        let many = pieces && self.vectors > Self::occupancy_vectors(format);
        match self.threads {
            ..=32 => None,
            _ if self.spills_if_bounded(op, rows, format) => None,
            ..=512 if many => Some(3 * 256 / self.threads),
            _ if self.vectors > Self::most_vectors(format) => Some(3 * DEEP_BLOCK / self.threads),
            _ => Some(1024 / self.threads),
        }
    }

    /// Whether ptxas meets the bound without `.minnctapersm` but spills with it: with a weight
    /// only, where threads of large clusters hold the maximum.
    fn spills_if_bounded(self, op: &dyn RowOp, rows: Rows, format: Format) -> bool {
        let full = self.vectors == Self::most_vectors(format) && rows.aligned(format);
        let weighted = op.wants_first() && op.columns().len() == 1;
        full && weighted && self.blocks == MAX_BLOCKS
    }

    /// Returns the prefetch distance in rows: about as many as are computed at once. `None` for
    /// clusters, whose blocks start together, and for small thread groups, of which enough are
    /// resident to keep memory busy.
    pub(super) fn ahead(self, format: Format, gpu: GpuSpec) -> Option<u32> {
        let threads = if self.vectors > Self::occupancy_vectors(format) { 1024 } else { 1280 };
        let wanted = self.blocks == 1 && self.threads > 32;
        wanted.then(|| gpu.multiprocessors * threads / self.threads)
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

    /// Lanes of a warp that belong to it.
    pub(super) const fn lanes(self) -> u32 {
        if self.threads < 32 { self.threads } else { 32 }
    }

    /// Warps per block, if it has whole blocks.
    pub(super) const fn warps(self) -> u32 {
        self.threads / 32
    }

    /// Maximum number of vectors.
    pub(super) const fn capacity(self) -> u32 {
        self.size() * self.vectors
    }

    /// Edges per thread where rows are not aligned: less than a vector on each side.
    pub(super) const fn edges(self, format: Format) -> u32 {
        (2 * format.per_vector() - 2).div_ceil(self.size())
    }

    /// Returns the thread group with this many vectors per thread at most, and no more threads than
    /// necessary.
    fn tight(threads: u32, blocks: u32, vectors: u32) -> Self {
        Self { threads, blocks, vectors: vectors.div_ceil(threads * blocks).max(1) }
    }

    /// Returns the thread group for these rows; `None` if they are too long for any.
    pub(super) fn choose(op: &dyn RowOp, rows: Rows, gpu: GpuSpec) -> Option<Self> {
        let format = Format::of(rows.element)?;
        let vectors = u32::try_from(rows.length / u64::from(format.per_vector())).ok()?;
        if vectors <= 32 * Self::occupancy_vectors(format) {
            return Some(Self::tight(vectors.next_power_of_two().clamp(4, 32), 1, vectors));
        }
        let most = if gpu.target.has(90) { MAX_BLOCKS } else { 1 };
        let fits = |thread_group: &Self| {
            thread_group.blocks <= most && thread_group.fits(op, rows, format)
        };
        let spread = Self::spread(rows, vectors, gpu).min(most);
        let deep = Self::needs_few_registers(op, rows, format);
        let spread = (spread > 1).then(|| Self::within(512, spread, 2, vectors));
        spread.into_iter().chain(Self::by_size(deep, format, most, vectors)).find(fits)
    }

    /// Returns candidates for rows of this many vectors, the better ones first. Clusters of 8 large
    /// blocks leave some multiprocessors idle, since each must be within one GPC.
    fn by_size(deep: bool, format: Format, most: u32, vectors: u32) -> [Self; 5] {
        let large = |blocks| Self::tight(512, blocks, vectors);
        let one = Self::within(512, 1, Self::occupancy_vectors(format), vectors);
        let eight = if deep { Self::tight(DEEP_BLOCK, 8, vectors) } else { large(8) };
        [one, large(2), large(4), eight, Self::tight(1024, most, vectors)]
    }

    /// Returns the thread group with at most this many threads per block, if that is enough.
    fn within(threads: u32, blocks: u32, each: u32, vectors: u32) -> Self {
        let wanted = vectors.div_ceil(blocks * each).next_power_of_two();
        Self::tight(wanted.clamp(64, threads), blocks, vectors)
    }

    /// Whether threads have enough registers.
    fn fits(self, op: &dyn RowOp, rows: Rows, format: Format) -> bool {
        let most = self.limit(op, rows, format);
        self.vectors <= most && self.threads <= Self::most_threads(op)
    }

    /// Returns the blocks per row, so that few rows keep the GPU busy: as long as each has 4 KiB.
    fn spread(rows: Rows, vectors: u32, gpu: GpuSpec) -> u32 {
        let blocks = u64::from(gpu.multiprocessors) / rows.count.max(1);
        let blocks = blocks.min((vectors / 256).into()).max(1);
        1 << blocks.ilog2().min(MAX_BLOCKS.ilog2())
    }

    /// Checks that it is valid, and can hold these rows.
    pub(super) fn check(self, op: &dyn RowOp, rows: Rows, format: Format) -> Result<(), PlanError> {
        let Self { threads, blocks, vectors } = self;
        let known = threads.is_power_of_two() && self.fits(op, rows, format) && vectors > 0;
        let cluster = [2, 4, MAX_BLOCKS].contains(&blocks) && threads >= 64;
        if !known || !(blocks == 1 || cluster) {
            let help = "see the limits of `ThreadGroup`";
            return Err(argument(op, "thread_group", format!("{self:?}"), help));
        }
        let wanted = rows.length / u64::from(format.per_vector());
        let certain = u64::from(self.size() * (vectors - 1));
        let fits = wanted <= self.capacity().into() && (vectors == 1 || wanted > certain);
        if !fits {
            let problem = format!("{self:?}, for rows of {wanted} vectors");
            let help = "pass the vectors of a row divided by the threads, rounded up";
            return Err(argument(op, "thread_group", problem, help));
        }
        Ok(())
    }
}
