//! The ring of pipeline stages in shared memory.

use super::super::format::BlockFormat;
use super::super::to_u64;
use crate::typed::hopper::MBarrier;
use crate::typed::{Global, KernelBuilder, Ptr, Shared, Val, Var};

/// Rows per tile: one MMA tile.
pub(super) const ROWS: u32 = 16;
/// Spans of 256 weights per row of a stage.
pub(super) const SPANS: u32 = 8;
/// Consumer warps that process a stage, each of them one span of all rows.
pub(super) const GROUP_WARPS: u32 = 8;
/// Producer warps.
pub(super) const PRODUCERS: u32 = 2;
/// Maximum number of stages.
pub(super) const STAGES: u32 = 16;

/// Row pitch of a stage in bytes, padded against bank conflicts, and with room for the bytes
/// between a 16-byte boundary and the row's first byte.
pub(super) const fn row_bytes(format: BlockFormat) -> u32 {
    let bytes = SPANS * format.span_bytes();
    if format.is_aligned() {
        // Lanes load 8 bytes: 32 bytes in each of 4 rows at once.
        bytes.next_multiple_of(128) + 32
    } else {
        // Lanes load at most 4 bytes: 16 bytes in each of 8 rows at once.
        let padded = (bytes + 16).next_multiple_of(16);
        if padded.is_multiple_of(32) { padded + 16 } else { padded }
    }
}

/// Bytes per stage.
pub(super) const fn stage_bytes(format: BlockFormat) -> u32 {
    (ROWS * row_bytes(format)).next_multiple_of(128)
}

/// A ring of stages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring<'k> {
    pub(super) k: &'k KernelBuilder,
    pub(super) format: BlockFormat,
    pub(super) stages: Val<'k, u32>,
    pub(super) memory: Ptr<'k, Shared, u8>,
    pub(super) full: Ptr<'k, Shared, u64>,
    pub(super) empty: Ptr<'k, Shared, u64>,
}

/// A cursor in the ring.
///
/// A stage has two full mbarriers, used in alternate rounds: the two groups of consumers may
/// process a stage in alternate rounds, and a thread that waits for a phase of an mbarrier must
/// have observed the phase before. The cursor therefore counts over twice the number of stages.
#[derive(Debug, Clone, Copy)]
pub(super) struct StageCursor<'k> {
    ring: Ring<'k>,
    position: Var<'k, u32>,
    parity: Var<'k, u32>,
}

impl<'k> Ring<'k> {
    /// Initialises the mbarriers; executed by one thread.
    pub(super) fn init(&self) {
        self.k.for_range(0, self.stages, 1, |stage| {
            MBarrier::at(self.full.at(stage)).init(ROWS);
            MBarrier::at(self.full.at(stage + self.stages)).init(ROWS);
            MBarrier::at(self.empty.at(stage)).init(GROUP_WARPS);
        });
    }

    /// Returns a cursor at a stage.
    pub(super) fn cursor(self, first: Val<'k, u32>) -> StageCursor<'k> {
        StageCursor { ring: self, position: self.k.var(first), parity: self.k.var(0u32) }
    }
}

impl<'k> StageCursor<'k> {
    /// Whether the cursor is in the second of two rounds.
    fn is_second(&self) -> Val<'k, bool> {
        self.position.get().ge(self.ring.stages)
    }

    fn stage(&self) -> Val<'k, u32> {
        let position = self.position.get();
        self.is_second().select(position - self.ring.stages, position)
    }

    /// Returns the stage's memory.
    pub(super) fn memory(&self) -> Ptr<'k, Shared, u8> {
        self.ring.memory.plus_bytes(self.stage() * stage_bytes(self.ring.format))
    }

    /// Returns the full barrier.
    pub(super) fn full(&self) -> MBarrier<'k> {
        MBarrier::at(self.ring.full.at(self.position.get()))
    }

    /// Returns the empty barrier.
    pub(super) fn empty(&self) -> MBarrier<'k> {
        MBarrier::at(self.ring.empty.at(self.stage()))
    }

    /// Waits until the stage is full.
    pub(super) fn wait_full(&self) {
        self.full().wait(self.parity.get());
    }

    /// Advances by this many stages, at most two rounds.
    pub(super) fn advance(&self, stages: u32) {
        let next = self.position.get() + stages;
        let positions = self.ring.stages * 2;
        let wraps = next.ge(positions);
        self.position.set(wraps.select(next - positions, next));
        self.parity.set(self.parity.get() ^ wraps.select(1, 0));
    }
}

/// The matrix in global memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix<'k> {
    pub(super) at: Ptr<'k, Global, u8>,
    pub(super) rows: Val<'k, u32>,
    /// Bytes per row.
    pub(super) row: Val<'k, u32>,
    /// Bytes in total, rounded down to a multiple of 16.
    pub(super) copied: Val<'k, u64>,
}

impl<'k> StageCursor<'k> {
    /// Issues the bulk copies of a stage: chunk number `chunk` of the rows of a tile, one lane per
    /// row.
    pub(super) fn load_rows(
        &self,
        matrix: &Matrix<'k>,
        [tile, chunk]: [Val<'k, u32>; 2],
        [producer, lane]: [Val<'k, u32>; 2],
    ) {
        let k = self.ring.k;
        self.empty().wait(self.is_second().select(0, 1));
        k.if_then(lane.lt(ROWS / PRODUCERS), || {
            let tile_row = producer * (ROWS / PRODUCERS) + lane;
            let row = tile * ROWS + tile_row;
            k.if_else(
                row.lt(matrix.rows),
                || self.load_row(matrix, row, chunk, tile_row),
                || self.full().arrive(),
            );
        });
        k.sync_warp();
    }

    fn load_row(
        &self,
        matrix: &Matrix<'k>,
        row: Val<'k, u32>,
        chunk: Val<'k, u32>,
        lane: Val<'k, u32>,
    ) {
        let format = self.ring.format;
        let chunk_bytes = SPANS * format.span_bytes();
        let first = chunk * chunk_bytes;
        let bytes = (matrix.row - first).min(chunk_bytes);
        let start = to_u64(row).mul_add(to_u64(matrix.row), to_u64(first));
        let to = self.memory().plus_bytes(lane * row_bytes(format));
        if format.is_aligned() {
            self.full().arrive_expect_tx(bytes);
            self.ring.k.bulk_load(to, matrix.at.at_wide(start), bytes, self.full());
        } else {
            self.load_unaligned_row(matrix, to, start, start + to_u64(bytes));
        }
    }

    /// Copies an unaligned part of a row, from the 16-byte boundary before it to the one after it.
    /// Bytes after the last boundary in the buffer are copied two at a time.
    fn load_unaligned_row(
        &self,
        matrix: &Matrix<'k>,
        to: Ptr<'k, Shared, u8>,
        start: Val<'k, u64>,
        end: Val<'k, u64>,
    ) {
        let k = self.ring.k;
        let from = start & !15u64;
        let aligned_end = ((end + 15) & !15u64).min(matrix.copied);
        let bytes = (aligned_end - from).convert::<u32>("");
        k.if_then(aligned_end.lt(end), || {
            let remaining = (end - aligned_end).convert::<u32>("");
            k.for_range(0, remaining, 2, |at| {
                let value =
                    matrix.at.at_wide(aligned_end).plus_bytes(at).cast::<u16>().load_before_wait();
                to.plus_bytes(bytes + at).cast::<u16>().store(value);
            });
        });
        self.full().arrive_expect_tx(bytes);
        k.bulk_load(to, matrix.at.at_wide(from), bytes, self.full());
    }
}

// A chunk of 8 spans must be a multiple of 16 bytes, so that all chunks of a row have the same
// misalignment.
const _: () = {
    let mut nth = 0;
    while nth < BlockFormat::ALL.len() {
        assert!((SPANS * BlockFormat::ALL[nth].span_bytes()).is_multiple_of(16));
        nth += 1;
    }
};
