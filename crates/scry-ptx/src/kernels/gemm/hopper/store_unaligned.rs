//! Stores results that TMA cannot store, because rows are unaligned or because `out` is read: a
//! warp stores neighbouring elements, row by row.

use super::store::{Lines, Results, Warp, put_floats};
use super::variant::{BiasAxis, ROW_BYTES, WARP_ROWS};
use crate::kernels::gemm::memory::{load_number, store_number};
use crate::typed::hopper::Accumulators;
use crate::typed::{Global, Ptr, Shared, Val};

impl<'k> Results<'k> {
    /// Stores words of two where 16-bit results are overwritten; otherwise single elements.
    pub(super) fn write_lanes<'a>(
        &'a self,
        lines: &Lines<'a>,
        accumulators: &Accumulators<'a>,
        warp: &Warp<'a>,
    ) {
        match self.variant.writes_words() {
            true => self.write_words(lines, accumulators, warp),
            false => self.write_columns(lines, accumulators, warp),
        }
    }

    /// Stages accumulators; the lane that stores a column applies the epilogue.
    fn write_columns<'a>(
        &'a self,
        lines: &Lines<'a>,
        accumulators: &Accumulators<'a>,
        warp: &Warp<'a>,
    ) {
        let (k, columns) = (self.k, self.variant.staged_columns());
        let wide = |value: Val<'a, u32>| value.convert::<u64>("");
        let size = u64::from(self.variant.output.size());
        let first = wide(warp.result) * lines.stride + wide(warp.row) * lines.ld;
        let rows = lines.start.at_wide(first * size);
        let between = lines.ld * size;
        for slab in 0..accumulators.columns().div_ceil(columns) {
            let eights = slab * columns / 8..accumulators.columns().min((slab + 1) * columns) / 8;
            let width = 8 * eights.len() as u32;
            k.sync_warp();
            for eight in eights {
                let values = std::array::from_fn(|nth| accumulators.get(4 * eight as usize + nth));
                put_floats(warp.staging, eight % (columns / 8), values);
            }
            k.sync_warp();
            let column = warp.column + k.lane() + slab * columns;
            let here = rows.at_wide(wide(column) * size);
            let within = column.lt(self.n) & k.lane().lt(width);
            k.when(within, || self.write_column(here, between, column, warp));
        }
    }

    /// Stores a staged column.
    fn write_column<'a>(
        &'a self,
        to: Ptr<'a, Global, u8>,
        between: Val<'a, u64>,
        column: Val<'a, u32>,
        warp: &Warp<'a>,
    ) {
        let bias = match self.variant.finish.bias {
            BiasAxis::Columns => self.bias.map(|bias| self.number(bias, column)),
            _ => None,
        };
        let mut to = to;
        for nth in 0..WARP_ROWS {
            let row = warp.row + nth;
            let sum = arranged(warp.staging, nth);
            self.k.when(row.lt(self.m), || {
                let bias = match self.variant.finish.bias {
                    BiasAxis::Rows => self.bias.map(|bias| self.number(bias, row)),
                    _ => bias,
                };
                self.write_one(to, sum, bias);
            });
            to = to.at_wide(between);
        }
    }

    fn write_one<'a>(
        &'a self,
        to: Ptr<'a, Global, u8>,
        sum: Val<'a, f32>,
        bias: Option<Val<'a, f32>>,
    ) {
        let (finish, element) = (self.variant.finish, self.variant.output);
        let was = finish.reads.then(|| load_number(to, element, false));
        store_number(to, element, self.scalars.finish(finish.activation, sum, was, bias));
    }

    /// Returns the bias of a result.
    pub(super) fn bias_of<'a>(
        &'a self,
        row: Val<'a, u32>,
        column: Val<'a, u32>,
    ) -> Option<Val<'a, f32>> {
        let index = match self.variant.finish.bias {
            BiasAxis::None => return None,
            BiasAxis::Columns => column,
            BiasAxis::Rows => row,
        };
        self.bias.map(|bias| self.number(bias, index))
    }

    fn number<'a>(&'a self, from: Ptr<'a, Global, u8>, index: Val<'a, u32>) -> Val<'a, f32> {
        let element = self.variant.output;
        let at = from.at_wide(index.convert::<u64>("") * u64::from(element.size()));
        load_number(at, element, false)
    }
}

/// Loads the lane's column of a staged row.
fn arranged<'k>(staging: Ptr<'k, Shared, u8>, row: u32) -> Val<'k, f32> {
    let lane = staging.code().lane();
    let chunk = (lane >> 2) ^ (row % 8);
    let at = staging.plus_bytes((chunk << 4) + ((lane & 3) << 2)).offset((row * ROW_BYTES).into());
    at.cast::<f32>().load()
}
