//! Online softmax, tile by tile: running maxima and totals.

use crate::typed::hopper::Accumulators;
use crate::typed::{Code, ToOperand, Val, Var};

/// A row of scores is held by four neighbouring lanes.
const LANES: u32 = 4;

/// The two rows of a thread.
#[derive(Debug)]
pub(super) struct Softmax<'k> {
    k: &'k Code,
    pub rows: [Row<'k>; 2],
    /// Scale of the scores before powers of 2 are computed.
    scale: Val<'k, f32>,
}

/// The running state of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'k> {
    /// The running maximum.
    pub most: Var<'k, f32>,
    /// The running sum of weights, of this lane's columns.
    pub total: Var<'k, f32>,
    /// Correction of earlier results, since the maximum grew.
    pub shrink: Var<'k, f32>,
}

/// Returns the score registers of one of a thread's two rows.
pub(super) fn of_row(scores: &Accumulators<'_>, row: usize) -> impl Iterator<Item = usize> + use<> {
    (0..scores.columns() as usize / 2).filter(move |nth| nth / 2 % 2 == row)
}

impl<'k> Softmax<'k> {
    pub fn new(k: &'k Code, scale: Val<'k, f32>) -> Self {
        let row =
            |_| Row { most: k.var(f32::NEG_INFINITY), total: k.var(0.0f32), shrink: k.var(0.0f32) };
        Self { k, rows: [0, 1].map(row), scale }
    }

    /// Replaces scores by their weights. `hidden` says that a whole row may be minus infinity.
    pub fn weigh(&self, scores: &Accumulators<'k>, hidden: bool) {
        for (nth, row) in self.rows.iter().enumerate() {
            let shift = self.raise(row, row_max(scores, nth), hidden);
            let less = -shift;
            let weight = |nth| scores.get(nth).mul_add(self.scale, less).exp2();
            of_row(scores, nth).for_each(|nth| scores.set(nth, weight(nth)));
            let added = reduce_pairwise(scores, nth, |a, b| a + b);
            row.total.set(row.total.get().mul_add(row.shrink.get(), added));
        }
    }

    /// Updates the running maximum, and returns it scaled.
    fn raise(&self, row: &Row<'k>, mine: Val<'k, f32>, hidden: bool) -> Val<'k, f32> {
        let tile = self.k.reduce_warp(mine, LANES, |a, b| a.max(b));
        let most = row.most.get().max(tile);
        let shift = most * self.scale;
        let shift =
            if hidden { most.equals(f32::NEG_INFINITY).select::<f32>(0.0, shift) } else { shift };
        row.shrink.set(row.most.get().mul_add(self.scale, -shift).exp2());
        row.most.set(most);
        shift
    }

    /// Returns the total of a row over all lanes.
    pub fn total(&self, row: usize) -> Val<'k, f32> {
        self.k.reduce_warp(self.rows[row].total.get(), LANES, |a, b| a + b)
    }

    /// Returns the maximum of a row, scaled.
    pub fn extent(&self, row: usize) -> Val<'k, f32> {
        self.rows[row].most.get() * self.scale
    }
}

fn row_max<'k>(scores: &Accumulators<'k>, row: usize) -> Val<'k, f32> {
    reduce_pairwise(scores, row, |a, b| a.max(b))
}

/// Reduces the values of a row in two independent chains.
fn reduce_pairwise<'k>(
    scores: &Accumulators<'k>,
    row: usize,
    combine: impl Fn(Val<'k, f32>, Val<'k, f32>) -> Val<'k, f32>,
) -> Val<'k, f32> {
    let chain = |odd: usize| {
        let numbers = of_row(scores, row).filter(|nth| nth % 2 == odd).map(|nth| scores.get(nth));
        numbers.reduce(&combine).expect("a tile has at least 16 columns")
    };
    combine(chain(0), chain(1))
}

/// Scales accumulators, with one factor per row.
pub(super) fn scaled<'k>(accumulators: &Accumulators<'k>, by: [impl ToOperand<f32>; 2]) {
    for (row, by) in by.into_iter().enumerate() {
        of_row(accumulators, row).for_each(|nth| accumulators.set(nth, accumulators.get(nth) * by));
    }
}
