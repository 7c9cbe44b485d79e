//! Stores results that TMA cannot store, because rows are unaligned or because `out` is read: a
//! warp stores neighbouring elements, row by row.

use super::store::{OutMemory, Results, Warp, stage_f32};
use super::variant::{BiasAxis, ROW_BYTES, WARP_ROWS};
use crate::kernels::gemm::memory::{load_element, store_element};
use crate::typed::hopper::Accumulators;
use crate::typed::{Global, Ptr, Shared, Val};

impl<'k> Results<'k> {
    /// Stores words of two 16-bit results where [`Variant::writes_words`] is true; otherwise single
    /// elements.
    ///
    /// [`Variant::writes_words`]: super::variant::Variant::writes_words
    pub(super) fn write_lanes<'a>(
        &'a self,
        out_memory: &OutMemory<'a>,
        accumulators: &Accumulators<'a>,
        warp: &Warp<'a>,
    ) {
        match self.variant.writes_words() {
            true => self.write_words(out_memory, accumulators, warp),
            false => self.write_columns(out_memory, accumulators, warp),
        }
    }

    /// Stages accumulators; the lane that stores a column applies the epilogue.
    fn write_columns<'a>(
        &'a self,
        out_memory: &OutMemory<'a>,
        accumulators: &Accumulators<'a>,
        warp: &Warp<'a>,
    ) {
        let (k, columns) = (self.k, self.variant.staged_columns());
        let to_u64 = |value: Val<'a, u32>| value.convert::<u64>("");
        let size = u64::from(self.variant.output.size());
        let first = to_u64(warp.result) * out_memory.stride + to_u64(warp.row) * out_memory.ld;
        let rows = out_memory.base.at_wide(first * size);
        let row_bytes = out_memory.ld * size;
        for slab in 0..accumulators.columns().div_ceil(columns) {
            let octets = slab * columns / 8..accumulators.columns().min((slab + 1) * columns) / 8;
            let width = 8 * octets.len() as u32;
            k.sync_warp();
            for octet in octets {
                let values = std::array::from_fn(|nth| accumulators.get(4 * octet as usize + nth));
                stage_f32(warp.staging, octet % (columns / 8), values);
            }
            k.sync_warp();
            let column = warp.column + k.lane() + slab * columns;
            let to = rows.at_wide(to_u64(column) * size);
            let in_bounds = column.lt(self.n) & k.lane().lt(width) & warp.row.lt(self.m);
            k.if_then(in_bounds, || self.write_column(to, row_bytes, column, warp));
        }
    }

    /// Stores a staged column.
    fn write_column<'a>(
        &'a self,
        to: Ptr<'a, Global, u8>,
        row_bytes: Val<'a, u64>,
        column: Val<'a, u32>,
        warp: &Warp<'a>,
    ) {
        // All loads are before the first store: one that follows a store waits for it. Rows beyond
        // the last one are that one.
        let rows = || (0..WARP_ROWS).map(|nth| (warp.row + nth).min(self.m - 1));
        let biases: Vec<_> = match self.variant.epilogue.bias {
            BiasAxis::Rows => rows().map(|row| self.bias_of(row, column)).collect(),
            _ => vec![self.bias_of(warp.row, column); WARP_ROWS as usize],
        };
        let reads_out = self.variant.epilogue.reads_out;
        let previous = reads_out.then(|| self.load_column(to, row_bytes, warp));
        let mut to = to;
        for (nth, bias) in (0..WARP_ROWS).zip(biases) {
            let sum = load_staged(warp.staging, nth);
            let previous = previous.as_ref().map(|previous| previous[nth as usize]);
            self.k.if_then((warp.row + nth).lt(self.m), || {
                let activation = self.variant.epilogue.activation;
                let result = self.scalars.finish(activation, sum, previous, bias);
                store_element(to, self.variant.output, result);
            });
            to = to.at_wide(row_bytes);
        }
    }

    /// Loads the previous elements of a column.
    fn load_column<'a>(
        &'a self,
        from: Ptr<'a, Global, u8>,
        row_bytes: Val<'a, u64>,
        warp: &Warp<'a>,
    ) -> Vec<Val<'a, f32>> {
        let last = self.m - 1 - warp.row;
        let row = |nth: u32| last.min(nth).convert::<u64>("");
        let load = |at| load_element(at, self.variant.output, false);
        (0..WARP_ROWS).map(|nth| load(from.at_wide(row(nth) * row_bytes))).collect()
    }

    /// Returns the bias of a result; `None` without a bias.
    pub(super) fn bias_of(&self, row: Val<'k, u32>, column: Val<'k, u32>) -> Option<Val<'k, f32>> {
        let index = match self.variant.epilogue.bias {
            BiasAxis::None => return None,
            BiasAxis::Columns => column,
            BiasAxis::Rows => row,
        };
        self.bias.map(|bias| self.load_bias(bias, index))
    }

    /// Loads an element of the bias.
    pub(super) fn load_bias(&self, from: Ptr<'k, Global, u8>, index: Val<'k, u32>) -> Val<'k, f32> {
        let element = self.variant.output;
        let at = from.at_wide(index.convert::<u64>("") * u64::from(element.size()));
        load_element(at, element, false)
    }
}

/// Loads the lane's column of a staged row.
fn load_staged<'k>(staging: Ptr<'k, Shared, u8>, row: u32) -> Val<'k, f32> {
    let lane = staging.builder().lane();
    let chunk = (lane >> 2) ^ (row % 8);
    let at = staging.plus_bytes((chunk << 4) + ((lane & 3) << 2)).offset((row * ROW_BYTES).into());
    at.cast::<f32>().load()
}
