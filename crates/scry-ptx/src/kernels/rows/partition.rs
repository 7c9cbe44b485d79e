//! Partition of a row over threads.

use super::format::{Elements, Format};
use super::thread_group::ThreadGroup;
use crate::typed::{Code, Val};

/// The elements of a row that a thread holds. The row's vectors are distributed round-robin to the
/// threads of the group.
pub(super) struct RowPartition<'k> {
    pub k: &'k Code,
    pub format: Format,
    pub thread_group: ThreadGroup,
    /// Alignment of rows in elements: a vector, or less.
    pub unit: u32,
    /// Whether a row is more than the thread group holds.
    pub split: bool,
    /// Whether the row is in bounds, unless that is certain; if not it is clamped to the last one,
    /// and nothing is stored.
    pub alive: Option<Val<'k, bool>>,
    pub row: Val<'k, u32>,
    /// Index of the slice of the row.
    pub nth: Val<'k, u32>,
    pub length: Val<'k, u32>,
}

/// The aligned part of a row.
#[derive(Clone, Copy)]
pub(super) struct Middle<'k> {
    /// Elements before the first vector, if there may be any.
    pub head: Option<Val<'k, u32>>,
    pub vectors: Val<'k, u32>,
}

impl<'k> RowPartition<'k> {
    /// Whether rows may be unaligned.
    pub fn ragged(&self) -> bool {
        self.unit < self.format.per_vector()
    }

    /// Returns the address of the row in a matrix.
    pub fn row_of(&self, matrix: Elements<'k>) -> Elements<'k> {
        self.format.at_wide(matrix, self.before())
    }

    /// Returns the element offset of the row.
    fn before(&self) -> Val<'k, u64> {
        self.row.convert::<u64>("") * self.length.convert::<u64>("")
    }

    /// Loads the first element of the row.
    pub fn first(&self, matrix: Elements<'k>) -> Val<'k, f32> {
        let word = self.format.load_one(self.row_of(matrix), None, 0);
        self.format.unpack(word)[0]
    }

    /// Returns the aligned part of the row.
    pub fn middle(&self) -> Middle<'k> {
        let size = self.format.per_vector();
        if !self.ragged() {
            return Middle { head: None, vectors: self.length >> size.ilog2() };
        }
        let over = self.before().convert::<u32>("");
        let head = ((self.k.constant(0u32).copied() - over) & (size - 1)).min(self.length);
        Middle { head: Some(head), vectors: (self.length - head) >> size.ilog2() }
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
        if self.split { self.nth.mul_add(thread_group.capacity(), start) } else { start }
    }

    /// Returns whether the thread has a vector in a round: certain in all but the last one, if a
    /// thread group has as many rounds as a row needs.
    pub fn present(
        &self,
        middle: Middle<'k>,
        start: Val<'k, u32>,
        round: u32,
    ) -> Option<Val<'k, bool>> {
        let uncertain = self.split || round + 1 == self.thread_group.vectors;
        uncertain.then(|| (start + round * self.thread_group.size()).lt(middle.vectors))
    }

    /// Returns the elements from a thread's vector to the one in a later round.
    pub fn distance(&self, rounds: u32) -> u32 {
        rounds * self.thread_group.size() * self.format.per_vector()
    }

    /// Returns the thread's edge in a round: its column, and whether it is in bounds. Those before
    /// the vectors come first, then those after.
    pub fn edge(
        &self,
        middle: Middle<'k>,
        start: Val<'k, u32>,
        round: u32,
    ) -> (Val<'k, u32>, Val<'k, bool>) {
        let nth = start + round * self.thread_group.size();
        let inside = middle.vectors * self.format.per_vector();
        let head = middle.head.expect("only ragged rows have edges");
        let column = nth.lt(head).select(nth, nth + inside);
        (column, nth.lt(self.length - inside))
    }

    /// Prefetches the row into L2, all but its edges.
    pub fn prefetch(&self, x: Elements<'k>) {
        let (middle, row) = (self.middle(), self.row_of(x));
        let vectors = middle.head.map_or(row, |head| self.format.at(row, head));
        self.k.prefetch(vectors, middle.vectors << 4);
    }
}
