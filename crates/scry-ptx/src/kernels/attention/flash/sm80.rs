//! FlashAttention with `mma.sync` (`sm_80`): four warps of 16 rows each share tiles of keys and
//! values, double-buffered with `cp.async`.
//!
//! A tile is row-major in shared memory, its 16-byte chunks swizzled (XOR with the row) within each
//! 128 bytes, so that `ldmatrix` has no bank conflicts.

use super::params::{Params, Rows};
use super::strip::Strip;
use super::{Variant, epilogue};
use crate::typed::hopper::MmaType;
use crate::typed::{KernelBuilder, Ptr, Shared, Val, Var};
use crate::types::PtxType;

/// Rows of queries per block.
const ROWS: u32 = 64;
const THREADS: u32 = 128;

/// Bytes of queries, and of two tiles of keys and of values.
pub(super) fn shared_bytes(variant: &Variant) -> u32 {
    2 * variant.width * (ROWS + 4 * variant.tile.keys)
}

/// Writes the kernel's body.
pub(super) fn write<'k>(
    k: &'k KernelBuilder,
    variant: &Variant,
    params: &Params<'k>,
    operands: &[Rows<'k>; 3],
) {
    let shared = k.dynamic_shared::<u8>(128);
    params.for_each_task(k, variant, |task, _| {
        let strip = Strip::new(k, variant, params, task, k.constant(0u32));
        let warps = Warps { strip, operands, shared, stage: k.var(0u32) };
        warps.run();
        let super::params::Out::Rows(rows) = &params.out else {
            unreachable!("results of this form are written as rows")
        };
        epilogue::store_rows(&warps.strip, rows);
    });
}

/// A block and its task.
struct Warps<'k, 'a> {
    strip: Strip<'k, 'a>,
    operands: &'a [Rows<'k>; 3],
    shared: Ptr<'k, Shared, u8>,
    /// Index of the buffer (0 or 1) whose tile is multiplied.
    stage: Var<'k, u32>,
}

/// An operand.
#[derive(Clone, Copy)]
enum Operand {
    Queries,
    Keys,
    Values,
}

impl<'k> Warps<'k, '_> {
    fn k(&self) -> &'k KernelBuilder {
        self.strip.k
    }

    /// Row pitch of a tile in bytes.
    fn pitch(&self) -> u32 {
        2 * self.strip.variant.width
    }

    /// Computes a task.
    fn run(&self) {
        let (k, task) = (self.k(), self.strip.task);
        // All warps are done with the previous task.
        k.sync();
        let last = task.end - 1;
        self.copy(Operand::Queries, k.constant(0u32), task.first_row);
        self.copy_tile(Operand::Keys, last);
        self.copy_tile(Operand::Values, last);
        self.strip.for_each_tile(k.var(task.end), |tile, may_be_masked| {
            self.wait_for_copies();
            self.copy_before(Operand::Keys, tile);
            let bias = self.strip.fetch_bias(tile, may_be_masked);
            self.scores();
            self.strip.compute_weights(tile, may_be_masked, bias);
            self.strip.pack_weights();
            self.strip.rescale();
            self.wait_for_copies();
            self.copy_before(Operand::Values, tile);
            self.values();
            self.stage.set(self.stage.get() ^ 1);
        });
        k.cp_async_wait_group(0);
    }

    /// Waits for all but the newest group of copies, and for the other warps.
    fn wait_for_copies(&self) {
        self.k().cp_async_wait_group(1);
        self.k().sync();
    }

    /// Issues the copy of tile `tile - 1`, if there is one, into the other buffer.
    fn copy_before(&self, kind: Operand, tile: Val<'k, u32>) {
        let next = self.stage.get() ^ 1;
        let keys = self.strip.variant.tile.keys;
        self.k().if_then(tile.gt(self.strip.task.begin), || {
            self.copy(kind, next, (tile - 1) * keys);
        });
        self.k().cp_async_commit_group();
    }

    /// Issues the copy of a tile into the current buffer.
    fn copy_tile(&self, kind: Operand, tile: Val<'k, u32>) {
        self.copy(kind, self.stage.get(), tile * self.strip.variant.tile.keys);
        self.k().cp_async_commit_group();
    }

    /// Returns the address of a tile.
    fn tile(&self, kind: Operand, stage: Val<'k, u32>) -> Ptr<'k, Shared, u8> {
        let bytes = self.pitch() * self.strip.variant.tile.keys;
        let queries_end = i64::from(self.pitch() * ROWS);
        match kind {
            Operand::Queries => self.shared,
            Operand::Keys => self.shared.offset(queries_end).plus_bytes(stage * bytes),
            Operand::Values => {
                self.shared.offset(queries_end + i64::from(2 * bytes)).plus_bytes(stage * bytes)
            }
        }
    }

    /// Issues the copy of a tile, whose first row is `first`, in 16-byte chunks. Out-of-bounds rows
    /// and columns are zero.
    fn copy(&self, kind: Operand, stage: Val<'k, u32>, first: Val<'k, u32>) {
        let (k, Strip { params, task, variant, .. }) = (self.k(), &self.strip);
        let (nth, head, row_count, rows) = match kind {
            Operand::Queries => (0, task.head, params.queries, ROWS),
            Operand::Keys => (1, task.kv_head, params.keys, variant.tile.keys),
            Operand::Values => (2, task.kv_head, params.keys, variant.tile.keys),
        };
        let chunks = variant.width / 8;
        let (row, chunk) = (k.thread_id() / chunks, k.thread_id() % chunks);
        let operand = &self.operands[nth];
        let mut at = operand.row_address(2, [task.batch, head, first + row]).plus_bytes(chunk * 16);
        let step = operand.strides[2] * u64::from(2 * THREADS / chunks);
        let tile = self.tile(kind, stage);
        let column_in_bounds = (chunk * 8).lt(params.head_dim);
        for offset in (0..rows).step_by((THREADS / chunks) as usize) {
            let row = row + offset;
            let to = tile.plus_bytes(row * self.pitch() + ((chunk ^ (row & 7)) << 4));
            let in_bounds = (first + row).lt(row_count) & column_in_bounds;
            k.cp_async_zero_fill(to, at, 16, in_bounds.select::<u32>(16, 0));
            at = at.at_wide(step);
        }
    }

    /// Returns the addresses that this lane passes to `ldmatrix` for `row` of a tile, for four
    /// consecutive steps of 16 columns. `second` is 0 for the first 8 of the 16 columns, 1 for the
    /// others.
    fn rows(
        &self,
        tile: Ptr<'k, Shared, u8>,
        row: Val<'k, u32>,
        second: Val<'k, u32>,
    ) -> [Ptr<'k, Shared, u8>; 4] {
        let row = tile.plus_bytes(row * self.pitch());
        let swap = self.k().lane() & 7;
        [0, 1, 2, 3].map(|step: u32| row.plus_bytes(((second + 2 * step) ^ swap) << 4))
    }

    fn mma_type(&self) -> MmaType {
        match self.strip.variant.element {
            PtxType::F16 => MmaType::F16,
            _ => MmaType::Bf16,
        }
    }

    /// Multiplies queries and the keys of a tile.
    fn scores(&self) {
        let (k, lane) = (self.k(), self.k().lane());
        let Strip { scores, variant, .. } = &self.strip;
        (0..scores.columns() as usize / 2).for_each(|nth| scores.set(nth, 0.0));
        let query = (k.warp() & 3) * 16 + (lane & 15);
        let queries = self.rows(self.tile(Operand::Queries, k.constant(0)), query, lane >> 4);
        let key = (lane & 7) + ((lane >> 4) << 3);
        let keys = self.rows(self.tile(Operand::Keys, self.stage.get()), key, (lane >> 3) & 1);
        for step in 0..variant.width / 16 {
            let (nth, chunk) = ((step % 4) as usize, i64::from(step / 4 * 128));
            let left = k.ldmatrix(queries[nth].offset(chunk));
            for rows in 0..variant.tile.keys / 16 {
                let at = keys[nth].offset(chunk + i64::from(rows * 16 * self.pitch()));
                let [a, b, c, d] = k.ldmatrix(at);
                let columns = 2 * rows as usize;
                k.mma(self.mma_type(), &scores.tile(columns), left, [a, b]);
                k.mma(self.mma_type(), &scores.tile(columns + 1), left, [c, d]);
            }
        }
    }

    /// Accumulates weights times the values of a tile.
    fn values(&self) {
        let (k, lane) = (self.k(), self.k().lane());
        let Strip { accumulators, variant, weights, .. } = &self.strip;
        let tile = self.tile(Operand::Values, self.stage.get());
        let values = self.rows(tile, lane & 15, lane >> 4);
        for rows in 0..variant.tile.keys / 16 {
            let words = &weights[0][4 * rows as usize..];
            let left = [0, 1, 2, 3].map(|word: usize| words[word].get());
            for step in 0..variant.width / 16 {
                let (nth, chunk) = ((step % 4) as usize, i64::from(step / 4 * 128));
                let at = values[nth].offset(chunk + i64::from(rows * 16 * self.pitch()));
                let [a, b, c, d] = k.ldmatrix_trans(at);
                let columns = 2 * step as usize;
                k.mma(self.mma_type(), &accumulators.tile(columns), left, [a, b]);
                k.mma(self.mma_type(), &accumulators.tile(columns + 1), left, [c, d]);
            }
        }
    }
}
