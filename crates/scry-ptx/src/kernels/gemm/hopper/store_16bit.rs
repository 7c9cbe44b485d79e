//! Stores 16-bit results in unaligned rows, which TMA does not support: aligned words of two
//! elements, and single ones at both ends of a row.

use super::store::{Lines, Results, Warp};
use super::variant::{ROW_BYTES, WARP_ROWS};
use crate::asm::Opcode;
use crate::kernels::gemm::memory::wide;
use crate::typed::hopper::Accumulators;
use crate::typed::{Global, Ptr, Shared, ToOperand, Val};

/// Columns of a row per store of a warp: two per lane.
const COLUMNS: u32 = 64;

impl<'k> Results<'k> {
    /// Stages finished results, and stores them from shared memory.
    pub(super) fn write_words<'a>(
        &'a self,
        lines: &Lines<'a>,
        accumulators: &Accumulators<'a>,
        warp: &Warp<'a>,
    ) {
        let k = self.k;
        let first = wide(warp.result) * lines.stride + wide(warp.row) * lines.ld;
        let start = lines.start.at_wide((first + wide(warp.column)) * 2);
        let between = lines.ld * 2;
        let rows = (self.m - warp.row.min(self.m)).min(WARP_ROWS);
        for slab in 0..accumulators.columns() / COLUMNS {
            k.sync_warp();
            for eight in slab * COLUMNS / 8..(slab + 1) * COLUMNS / 8 {
                self.arrange(warp.staging, accumulators, warp, eight);
            }
            k.sync_warp();
            let column = warp.column + slab * COLUMNS;
            let count = (self.n - column.min(self.n)).min(COLUMNS);
            let to = start.offset((slab * ROW_BYTES).into());
            self.write_slab(warp.staging, to, between, [rows, count]);
        }
    }

    /// Stores staged results: this many rows and columns.
    fn write_slab<'a>(
        &'a self,
        staging: Ptr<'a, Shared, u8>,
        to: Ptr<'a, Global, u8>,
        between: Val<'a, u64>,
        [rows, columns]: [Val<'a, u32>; 2],
    ) {
        let k = self.k;
        let next_lane = (k.lane() + 1) & 31;
        let words: Vec<_> = (0..WARP_ROWS)
            .map(|row| {
                let word = arranged(staging, row);
                (word, k.shuffle("idx", word, next_lane))
            })
            .collect();
        // Either no row, every row, or every other row starts in the middle of a word.
        let ends = [to, to.at_wide(between)].map(|row| Ends::new(row, columns));
        let [even, odd] = [0, 1].map(|row| to.at_wide(ends[row].skipped(between, row as u64)));
        let two = between * 2;
        let write = |all: bool| {
            let mut places = [even, odd];
            for (row, (own, next)) in words.iter().enumerate() {
                let ends = &ends[row % 2];
                let write = || ends.write(places[row % 2], *own, *next);
                if all {
                    write()
                } else {
                    k.when(rows.gt(row as u32), write)
                }
                places[row % 2] = places[row % 2].at_wide(two);
            }
        };
        k.either(rows.equals(WARP_ROWS), || write(true), || write(false));
    }
}

/// How a lane stores its part of a row. If the row starts in the middle of a word, a lane stores
/// its second column and the first column of the next lane as one word; the last lane then holds
/// the row's first column, and stores it on its own.
struct Ends<'k> {
    /// Shift in bits between the stored pair and the lane's own columns.
    shift: Val<'k, u32>,
    /// Byte offset of the lane's word in the row.
    offset: Val<'k, u64>,
    /// Whether the lane stores a whole word.
    whole: Val<'k, bool>,
    /// Whether it stores only the first half of a word, at the end of the row.
    half: Val<'k, bool>,
    /// Whether it stores the row's first column.
    first: Val<'k, bool>,
}

impl<'k> Ends<'k> {
    fn new(row: Ptr<'k, Global, u8>, count: Val<'k, u32>) -> Self {
        let lane = row.code().lane();
        let odd = (row.to_bits() >> 1).convert::<u32>("") & 1;
        let column = lane * 2 + odd;
        let whole = (column + 1).lt(count);
        Self {
            shift: odd << 4,
            offset: wide(column * 2),
            whole,
            half: column.lt(count) & !whole,
            first: odd.equals(1) & lane.equals(31) & count.gt(0),
        }
    }

    /// Byte offset of the lane's word in another row from the start of the first row.
    fn skipped(&self, between: Val<'k, u64>, row: u64) -> Val<'k, u64> {
        self.offset + between * row
    }

    /// Stores at the lane's word. Most lanes of most rows store a whole word.
    fn write<'a>(&'a self, at: Ptr<'a, Global, u8>, own: Val<'a, u32>, next: Val<'a, u32>) {
        let k = own.code();
        let opcode = Opcode::new("shf.r.wrap.b32");
        let pair: Val<'_, u32> =
            k.op(opcode, &[own.operand(), next.operand(), self.shift.operand()]);
        k.when(self.whole, || at.cast::<u32>().store(pair));
        k.when(self.half, || at.cast::<u16>().store(low_half(pair)));
        // The last lane's word starts 63 columns after the first column.
        k.when(self.first, || at.offset(-126).cast::<u16>().store(low_half(pair >> 16)));
    }
}

fn low_half(word: Val<'_, u32>) -> Val<'_, u16> {
    word.convert("")
}

/// Loads the lane's word of a staged row.
fn arranged<'k>(staging: Ptr<'k, Shared, u8>, row: u32) -> Val<'k, u32> {
    let lane = staging.code().lane();
    let chunk = (lane >> 2) ^ (row % 8);
    let at = staging.plus_bytes((chunk << 4) + ((lane & 3) << 2)).offset((row * ROW_BYTES).into());
    at.cast::<u32>().load()
}
