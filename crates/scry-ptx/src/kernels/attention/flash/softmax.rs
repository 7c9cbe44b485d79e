//! Online softmax, tile by tile: running maxima and totals.

use crate::typed::hopper::Accumulators;
use crate::typed::{KernelBuilder, ToOperand, Val, Var};

/// Neighbouring lanes that hold the same row of scores.
const LANES: u32 = 4;

/// The two rows of a thread.
#[derive(Debug)]
pub(super) struct Softmax<'k> {
    k: &'k KernelBuilder,
    pub rows: [Row<'k>; 2],
    /// Scale of the scores before powers of 2 are computed.
    scale: Val<'k, f32>,
}

/// The running state of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'k> {
    /// The running maximum.
    pub max: Var<'k, f32>,
    /// The running sum of weights, of this lane's columns.
    pub total: Var<'k, f32>,
    /// Factor that corrects earlier results for the growth of the maximum.
    pub rescale: Var<'k, f32>,
}

/// Returns the indices of the registers that belong to the first or the second of a thread's two
/// rows: pairs of registers belong to the rows alternately.
pub(super) fn row_registers(
    scores: &Accumulators<'_>,
    row: usize,
) -> impl Iterator<Item = usize> + use<> {
    (0..scores.columns() as usize / 2).filter(move |nth| nth / 2 % 2 == row)
}

impl<'k> Softmax<'k> {
    pub fn new(k: &'k KernelBuilder, scale: Val<'k, f32>) -> Self {
        let row =
            |_| Row { max: k.var(f32::NEG_INFINITY), total: k.var(0.0f32), rescale: k.var(0.0f32) };
        Self { k, rows: [0, 1].map(row), scale }
    }

    /// Replaces scores by their weights. `may_be_masked` says that a whole row may be minus
    /// infinity.
    pub fn compute_weights(&self, scores: &Accumulators<'k>, may_be_masked: bool) {
        for (nth, row) in self.rows.iter().enumerate() {
            let shift = self.update_max(row, row_max(scores, nth), may_be_masked);
            let negated_shift = -shift;
            let weight = |nth| scores.get(nth).mul_add(self.scale, negated_shift).exp2();
            row_registers(scores, nth).for_each(|nth| scores.set(nth, weight(nth)));
            let total = reduce_row(scores, nth, |a, b| a + b);
            row.total.set(row.total.get().mul_add(row.rescale.get(), total));
        }
    }

    /// Updates the running maximum, and returns it scaled; 0 while all scores are masked.
    fn update_max(
        &self,
        row: &Row<'k>,
        thread_max: Val<'k, f32>,
        may_be_masked: bool,
    ) -> Val<'k, f32> {
        let tile_max = self.k.reduce_warp(thread_max, LANES, |a, b| a.max(b));
        let max = row.max.get().max(tile_max);
        let shift = max * self.scale;
        let shift =
            if may_be_masked { max.eq(f32::NEG_INFINITY).select::<f32>(0.0, shift) } else { shift };
        row.rescale.set(row.max.get().mul_add(self.scale, -shift).exp2());
        row.max.set(max);
        shift
    }

    /// Returns the total of a row over all lanes.
    pub fn total(&self, row: usize) -> Val<'k, f32> {
        self.k.reduce_warp(self.rows[row].total.get(), LANES, |a, b| a + b)
    }

    /// Returns the maximum of a row, scaled.
    pub fn scaled_max(&self, row: usize) -> Val<'k, f32> {
        self.rows[row].max.get() * self.scale
    }
}

fn row_max<'k>(scores: &Accumulators<'k>, row: usize) -> Val<'k, f32> {
    reduce_row(scores, row, |a, b| a.max(b))
}

/// Reduces the values of a row in two independent chains.
fn reduce_row<'k>(
    scores: &Accumulators<'k>,
    row: usize,
    combine: impl Fn(Val<'k, f32>, Val<'k, f32>) -> Val<'k, f32>,
) -> Val<'k, f32> {
    let chain = |odd: usize| {
        let values =
            row_registers(scores, row).filter(|nth| nth % 2 == odd).map(|nth| scores.get(nth));
        values.reduce(&combine).expect("a tile has at least 16 columns")
    };
    combine(chain(0), chain(1))
}

/// Scales accumulators, with one factor per row.
pub(super) fn scale_rows<'k>(accumulators: &Accumulators<'k>, factors: [impl ToOperand<f32>; 2]) {
    for (row, factor) in factors.into_iter().enumerate() {
        row_registers(accumulators, row)
            .for_each(|nth| accumulators.set(nth, accumulators.get(nth) * factor));
    }
}
