//! The ring of stages in shared memory, which one warp fills with weights and others empty.

use super::super::format::BlockFormat;
use super::super::wide;
use crate::typed::hopper::Barrier;
use crate::typed::{Code, Global, Ptr, Shared, Val, Var};

/// Rows of a tile: one tile of tensor cores.
pub(super) const ROWS: u32 = 16;
/// Times 256 weights of each row that a stage has.
pub(super) const SPANS: u32 = 8;
/// Warps that empty a stage, each of them 256 weights of all rows.
pub(super) const GROUP: u32 = 8;
/// Warps that fill stages.
pub(super) const FETCHERS: u32 = 2;
/// Most stages.
pub(super) const STAGES: u32 = 16;

/// Bytes from one row of a stage to the next one: so that lanes of several rows read from
/// different banks, and with room for what lies before the row's first byte at a multiple of 16.
pub(super) const fn row_bytes(format: BlockFormat) -> u32 {
    let bytes = SPANS * format.span_bytes();
    if format.is_aligned() {
        // Lanes read 8 bytes: 32 bytes in each of 4 rows at once.
        bytes.next_multiple_of(128) + 32
    } else {
        // Lanes read at most 4 bytes: 16 bytes in each of 8 rows at once.
        let room = (bytes + 16).next_multiple_of(16);
        if room.is_multiple_of(32) { room + 16 } else { room }
    }
}

/// Bytes of a stage.
pub(super) const fn stage_bytes(format: BlockFormat) -> u32 {
    (ROWS * row_bytes(format)).next_multiple_of(128)
}

/// A ring of stages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring<'k> {
    pub(super) k: &'k Code,
    pub(super) format: BlockFormat,
    pub(super) stages: Val<'k, u32>,
    pub(super) memory: Ptr<'k, Shared, u8>,
    pub(super) full: Ptr<'k, Shared, u64>,
    pub(super) empty: Ptr<'k, Shared, u64>,
}

/// A place in the ring, going round.
///
/// A stage has a barrier for each of the two groups that it may be filled for, since who waits for
/// a phase of a barrier has to have seen the one before. So a place is one of twice as many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn<'k> {
    ring: Ring<'k>,
    place: Var<'k, u32>,
    parity: Var<'k, u32>,
}

impl<'k> Ring<'k> {
    /// Prepares the barriers. One thread does this.
    pub(super) fn init(&self) {
        self.k.for_range(0, self.stages, 1, |stage| {
            Barrier::at(self.full.at(stage)).init(ROWS);
            Barrier::at(self.full.at(stage + self.stages)).init(ROWS);
            Barrier::at(self.empty.at(stage)).init(GROUP);
        });
    }

    /// Begins at a stage.
    pub(super) fn turn(self, first: Val<'k, u32>) -> Turn<'k> {
        Turn { ring: self, place: self.k.var(first), parity: self.k.var(0u32) }
    }
}

impl<'k> Turn<'k> {
    /// Whether this is the second way round of two.
    fn is_second(&self) -> Val<'k, bool> {
        self.place.get().ge(self.ring.stages)
    }

    fn stage(&self) -> Val<'k, u32> {
        let place = self.place.get();
        self.is_second().select(place - self.ring.stages, place)
    }

    /// The stage's memory.
    pub(super) fn memory(&self) -> Ptr<'k, Shared, u8> {
        self.ring.memory.plus_bytes(self.stage() * stage_bytes(self.ring.format))
    }

    /// Told of bytes that arrive.
    pub(super) fn full(&self) -> Barrier<'k> {
        Barrier::at(self.ring.full.at(self.place.get()))
    }

    /// Told of warps that need the stage no longer.
    pub(super) fn empty(&self) -> Barrier<'k> {
        Barrier::at(self.ring.empty.at(self.stage()))
    }

    /// Waits until the stage is full.
    pub(super) fn wait(&self) {
        self.full().wait(self.parity.get());
    }

    /// Goes on by this many stages, at most as many as there are.
    pub(super) fn advance(&self, by: u32) {
        let next = self.place.get() + by;
        let all = self.ring.stages * 2;
        let wraps = next.ge(all);
        self.place.set(wraps.select(next - all, next));
        self.parity.set(self.parity.get() ^ wraps.select(1, 0));
    }
}

/// The matrix in memory of the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix<'k> {
    pub(super) at: Ptr<'k, Global, u8>,
    pub(super) rows: Val<'k, u32>,
    /// Bytes of a row.
    pub(super) row: Val<'k, u32>,
    /// Bytes of all, cut to a multiple of 16.
    pub(super) copied: Val<'k, u64>,
}

impl<'k> Turn<'k> {
    /// Has TMA bring a chunk of the rows of a tile, one lane of some warp for each row.
    pub(super) fn fetch(
        &self,
        matrix: &Matrix<'k>,
        [tile, chunk]: [Val<'k, u32>; 2],
        [number, lane]: [Val<'k, u32>; 2],
    ) {
        let k = self.ring.k;
        self.empty().wait(self.is_second().select(0, 1));
        k.when(lane.lt(ROWS / FETCHERS), || {
            let line = number * (ROWS / FETCHERS) + lane;
            let row = tile * ROWS + line;
            k.either(
                row.lt(matrix.rows),
                || self.fetch_row(matrix, row, chunk, line),
                || self.full().arrive(),
            );
        });
        k.sync_warp();
    }

    fn fetch_row(
        &self,
        matrix: &Matrix<'k>,
        row: Val<'k, u32>,
        chunk: Val<'k, u32>,
        lane: Val<'k, u32>,
    ) {
        let format = self.ring.format;
        let whole = SPANS * format.span_bytes();
        let first = chunk * whole;
        let bytes = (matrix.row - first).min(whole);
        let begin = wide(row).mul_add(wide(matrix.row), wide(first));
        let to = self.memory().plus_bytes(lane * row_bytes(format));
        if format.is_aligned() {
            self.full().arrive_expecting(bytes);
            self.ring.k.fetch_bytes(to, matrix.at.at_wide(begin), bytes, self.full());
        } else {
            self.fetch_unaligned(matrix, to, begin, begin + wide(bytes));
        }
    }

    /// Copies from a multiple of 16 bytes to another one, around what is wanted; what lies behind
    /// the last one in the buffer, two bytes at a time.
    fn fetch_unaligned(
        &self,
        matrix: &Matrix<'k>,
        to: Ptr<'k, Shared, u8>,
        begin: Val<'k, u64>,
        end: Val<'k, u64>,
    ) {
        let k = self.ring.k;
        let from = begin & !15u64;
        let until = ((end + 15) & !15u64).min(matrix.copied);
        let bytes = (until - from).convert::<u32>("");
        k.when(until.lt(end), || {
            let rest = (end - until).convert::<u32>("");
            k.for_range(0, rest, 2, |at| {
                let value = matrix.at.at_wide(until).plus_bytes(at).cast::<u16>().load_early();
                to.plus_bytes(bytes + at).cast::<u16>().store(value);
            });
        });
        self.full().arrive_expecting(bytes);
        k.fetch_bytes(to, matrix.at.at_wide(from), bytes, self.full());
    }
}

/// Whether 8 times 256 weights are a multiple of 16 bytes, so that all chunks of a row are off by
/// the same number of bytes.
const _: () = {
    let mut nth = 0;
    while nth < BlockFormat::ALL.len() {
        assert!((SPANS * BlockFormat::ALL[nth].span_bytes()).is_multiple_of(16));
        nth += 1;
    }
};
