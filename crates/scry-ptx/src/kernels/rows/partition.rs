//! The partition of a row over threads.

use super::format::{Elements, Format};
use super::thread_group::ThreadGroup;
use crate::typed::{KernelBuilder, Val};

/// The elements of a row that a thread holds. The row's vectors are distributed round-robin to the
/// threads of the group.
pub(super) struct RowPartition<'k> {
    pub k: &'k KernelBuilder,
    pub format: Format,
    pub thread_group: ThreadGroup,
    /// Alignment of rows in elements: a vector, or less.
    pub unit: u32,
    /// Whether a row is longer than what the thread group holds, and so is split into slices.
    pub split: bool,
    /// Whether the row is in bounds; `None` if it always is. A row out of bounds is clamped to the
    /// last one, and nothing is stored.
    pub in_bounds: Option<Val<'k, bool>>,
    pub row: Val<'k, u32>,
    /// Index of the slice of the row.
    pub slice: Val<'k, u32>,
    pub length: Val<'k, u32>,
}

/// The aligned part of a row.
#[derive(Clone, Copy)]
pub(super) struct AlignedPart<'k> {
    /// Elements before the first vector, if there may be any.
    pub head: Option<Val<'k, u32>>,
    pub vectors: Val<'k, u32>,
}

impl<'k> RowPartition<'k> {
    /// Whether rows may be unaligned.
    pub fn is_unaligned(&self) -> bool {
        self.unit < self.format.per_vector()
    }

    /// Returns the address of the row in a matrix.
    pub fn row_of(&self, matrix: Elements<'k>) -> Elements<'k> {
        self.format.at_wide(matrix, self.row_offset())
    }

    /// Returns the element offset of the row.
    fn row_offset(&self) -> Val<'k, u64> {
        self.row.convert::<u64>("") * self.length.convert::<u64>("")
    }

    /// Loads the first element of the row.
    pub fn first(&self, matrix: Elements<'k>) -> Val<'k, f32> {
        let word = self.format.load_one(self.row_of(matrix), None, 0);
        self.format.unpack(word)[0]
    }

    /// Returns the aligned part of the row.
    pub fn aligned_part(&self) -> AlignedPart<'k> {
        let size = self.format.per_vector();
        if !self.is_unaligned() {
            return AlignedPart { head: None, vectors: self.length >> size.ilog2() };
        }
        let misalignment = self.row_offset().convert::<u32>("");
        let head = ((self.k.constant(0u32).copied() - misalignment) & (size - 1)).min(self.length);
        AlignedPart { head: Some(head), vectors: (self.length - head) >> size.ilog2() }
    }

    /// Returns the index of the thread's first vector, or edge.
    pub fn start(&self) -> Val<'k, u32> {
        let (k, thread_group) = (self.k, self.thread_group);
        let mut start = k.thread_id();
        if thread_group.rows() > 1 {
            start = start & (thread_group.threads - 1);
        }
        if thread_group.blocks > 1 {
            start = k.cluster_rank().mul_add(thread_group.threads, start);
        }
        if self.split { self.slice.mul_add(thread_group.capacity(), start) } else { start }
    }

    /// Returns whether the thread has a vector in a round; `None` if it always has one: in all
    /// rounds but the last one, unless rows are split.
    pub fn present(
        &self,
        aligned: AlignedPart<'k>,
        start: Val<'k, u32>,
        round: u32,
    ) -> Option<Val<'k, bool>> {
        let is_conditional = self.split || round + 1 == self.thread_group.vectors;
        is_conditional.then(|| (start + round * self.thread_group.size()).lt(aligned.vectors))
    }

    /// Returns the number of elements from a thread's vector to the one this many rounds later.
    pub fn round_offset(&self, rounds: u32) -> u32 {
        rounds * self.thread_group.size() * self.format.per_vector()
    }

    /// Returns the thread's edge in a round: its column, and whether it is in bounds. Edges before
    /// the vectors are numbered first, then those after them.
    pub fn edge(
        &self,
        aligned: AlignedPart<'k>,
        start: Val<'k, u32>,
        round: u32,
    ) -> (Val<'k, u32>, Val<'k, bool>) {
        let edge = start + round * self.thread_group.size();
        let aligned_len = aligned.vectors * self.format.per_vector();
        let head = aligned.head.expect("only unaligned rows have edges");
        let column = edge.lt(head).select(edge, edge + aligned_len);
        (column, edge.lt(self.length - aligned_len))
    }

    /// Prefetches the row into L2, except for its edges.
    pub fn prefetch(&self, x: Elements<'k>) {
        let (aligned, row) = (self.aligned_part(), self.row_of(x));
        let vectors = aligned.head.map_or(row, |head| self.format.at(row, head));
        self.k.prefetch(vectors, aligned.vectors << 4);
    }
}
