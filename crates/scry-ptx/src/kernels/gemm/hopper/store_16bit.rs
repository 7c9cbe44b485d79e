//! Stores 16-bit results in unaligned rows, which TMA does not support: as aligned words of two
//! elements, with single elements at both ends of a row.

use super::store::{OutMemory, Results, Warp};
use super::variant::{ROW_BYTES, WARP_ROWS};
use crate::asm::Opcode;
use crate::kernels::gemm::memory::to_u64;
use crate::typed::hopper::Accumulators;
use crate::typed::{Global, Ptr, Shared, ToOperand, Val};

/// Columns of a row per store of a warp: two per lane.
const COLUMNS: u32 = 64;

impl<'k> Results<'k> {
    /// Stages the results, and stores them from shared memory.
    pub(super) fn write_words<'a>(
        &'a self,
        out_memory: &OutMemory<'a>,
        accumulators: &Accumulators<'a>,
        warp: &Warp<'a>,
    ) {
        let k = self.k;
        let first = to_u64(warp.result) * out_memory.stride + to_u64(warp.row) * out_memory.ld;
        let start = out_memory.base.at_wide((first + to_u64(warp.column)) * 2);
        let row_bytes = out_memory.ld * 2;
        let rows = (self.m - warp.row.min(self.m)).min(WARP_ROWS);
        for slab in 0..accumulators.columns() / COLUMNS {
            k.sync_warp();
            for octet in slab * COLUMNS / 8..(slab + 1) * COLUMNS / 8 {
                self.stage_octet(warp.staging, accumulators, warp, octet);
            }
            k.sync_warp();
            let column = warp.column + slab * COLUMNS;
            let count = (self.n - column.min(self.n)).min(COLUMNS);
            let to = start.offset((slab * ROW_BYTES).into());
            self.write_slab(warp.staging, to, row_bytes, [rows, count]);
        }
    }

    /// Stores this many rows and columns of the staged results.
    fn write_slab<'a>(
        &'a self,
        staging: Ptr<'a, Shared, u8>,
        to: Ptr<'a, Global, u8>,
        row_bytes: Val<'a, u64>,
        [rows, columns]: [Val<'a, u32>; 2],
    ) {
        let k = self.k;
        let next_lane = (k.lane() + 1) & 31;
        let words: Vec<_> = (0..WARP_ROWS)
            .map(|row| {
                let word = load_staged(staging, row);
                (word, k.shuffle("idx", word, next_lane))
            })
            .collect();
        // All even rows start alike, at a word or in the middle of one, and so do all odd rows.
        let word_stores = [to, to.at_wide(row_bytes)].map(|row| WordStore::new(row, columns));
        let [even, odd] =
            [0, 1].map(|row| to.at_wide(word_stores[row].lane_offset(row_bytes, row as u64)));
        let two_rows = row_bytes * 2;
        let write = |is_full: bool| {
            let mut addresses = [even, odd];
            for (row, (own_word, next_word)) in words.iter().enumerate() {
                let store = &word_stores[row % 2];
                let write = || store.write(addresses[row % 2], *own_word, *next_word);
                if is_full {
                    write()
                } else {
                    k.if_then(rows.gt(row as u32), write)
                }
                addresses[row % 2] = addresses[row % 2].at_wide(two_rows);
            }
        };
        k.if_else(rows.eq(WARP_ROWS), || write(true), || write(false));
    }
}

/// How a lane stores its part of a row. If the row starts in the middle of a word, a lane stores
/// its second column and the first column of the next lane as one word; the last lane then holds
/// the row's first column, and stores it on its own.
struct WordStore<'k> {
    /// Shift in bits between the stored pair and the lane's own columns.
    shift: Val<'k, u32>,
    /// Byte offset of the lane's word in the row.
    offset: Val<'k, u64>,
    /// Whether the lane stores a whole word.
    is_word: Val<'k, bool>,
    /// Whether it stores only the first half of a word, at the end of the row.
    is_tail: Val<'k, bool>,
    /// Whether it stores the row's first column.
    is_head: Val<'k, bool>,
}

impl<'k> WordStore<'k> {
    fn new(row: Ptr<'k, Global, u8>, count: Val<'k, u32>) -> Self {
        let lane = row.builder().lane();
        let odd = (row.to_bits() >> 1).convert::<u32>("") & 1;
        let column = lane * 2 + odd;
        let is_word = (column + 1).lt(count);
        Self {
            shift: odd << 4,
            offset: to_u64(column * 2),
            is_word,
            is_tail: column.lt(count) & !is_word,
            is_head: odd.eq(1) & lane.eq(31) & count.gt(0),
        }
    }

    /// Returns the byte offset of the lane's word in row `row`, from the start of the first row.
    fn lane_offset(&self, row_bytes: Val<'k, u64>, row: u64) -> Val<'k, u64> {
        self.offset + row_bytes * row
    }

    /// Stores the lane's part of a row, whose word is at `at`: mostly the whole word.
    fn write<'a>(
        &'a self,
        at: Ptr<'a, Global, u8>,
        own_word: Val<'a, u32>,
        next_word: Val<'a, u32>,
    ) {
        let k = own_word.builder();
        let opcode = Opcode::new("shf.r.wrap.b32");
        let pair: Val<'_, u32> =
            k.op(opcode, &[own_word.operand(), next_word.operand(), self.shift.operand()]);
        k.if_then(self.is_word, || at.cast::<u32>().store(pair));
        k.if_then(self.is_tail, || at.cast::<u16>().store(low_16_bits(pair)));
        // The last lane's word starts 63 columns after the first column.
        k.if_then(self.is_head, || at.offset(-126).cast::<u16>().store(low_16_bits(pair >> 16)));
    }
}

fn low_16_bits(word: Val<'_, u32>) -> Val<'_, u16> {
    word.convert("")
}

/// Loads the lane's word of a staged row.
fn load_staged<'k>(staging: Ptr<'k, Shared, u8>, row: u32) -> Val<'k, u32> {
    let lane = staging.builder().lane();
    let chunk = (lane >> 2) ^ (row % 8);
    let at = staging.plus_bytes((chunk << 4) + ((lane & 3) << 2)).offset((row * ROW_BYTES).into());
    at.cast::<u32>().load()
}
