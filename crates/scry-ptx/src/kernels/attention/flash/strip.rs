//! 64 rows of scores, weights and results in the register layout of a warpgroup, for both kinds of
//! MMA.

use super::Variant;
use super::bias::LoadedBias;
use super::params::Params;
use super::schedule::Task;
use super::softmax::{Softmax, of_row, scaled};
use crate::kernels::attention::scalar::Rounding;
use crate::typed::hopper::Accumulators;
use crate::typed::{Code, Val, Var};

/// A thread's part of 64 rows: of every 8 columns two neighbours in two rows.
pub(super) struct Strip<'k, 'a> {
    pub k: &'k Code,
    pub variant: &'a Variant,
    pub params: &'a Params<'k>,
    pub task: Task<'k>,
    /// The first of the 64 rows, in its head.
    pub first_row: Val<'k, u32>,
    /// The first of the two rows of this thread; the second one is 8 below.
    pub row: Val<'k, u32>,
    /// Its first column of every 8.
    pub column: Val<'k, u32>,
    pub scores: Accumulators<'k>,
    /// The weights of a tile, for each of their terms.
    pub weights: Vec<Vec<Var<'k, u32>>>,
    softmax: Softmax<'k>,
    /// Accumulators of the result.
    pub accumulators: Accumulators<'k>,
}

impl<'k, 'a> Strip<'k, 'a> {
    /// Returns the `nth` 64 rows of a task, before the first tile.
    pub fn new(
        k: &'k Code,
        variant: &'a Variant,
        params: &'a Params<'k>,
        task: Task<'k>,
        number: Val<'k, u32>,
    ) -> Self {
        let thread = k.thread_id() & 127;
        let first_row = task.first_row + number * 64;
        let row = first_row + (thread >> 5) * 16 + ((thread & 31) >> 2);
        let words = variant.tile.keys / 4;
        let weights = (0..variant.parts).map(|_| (0..words).map(|_| k.var(0u32)).collect());
        let scale = if variant.bias.is_some() { k.constant(1.0f32) } else { params.scale };
        let accumulators = Accumulators::new(k, variant.width);
        (0..variant.width as usize / 2).for_each(|nth| accumulators.set(nth, 0.0));
        Self {
            k,
            variant,
            params,
            task,
            first_row,
            row,
            column: (thread & 3) * 2,
            scores: Accumulators::new(k, variant.tile.keys),
            weights: weights.collect(),
            softmax: Softmax::new(k, scale),
            accumulators,
        }
    }

    /// Writes the loops over the tiles, from the last one to the first: those with masked keys,
    /// then the others.
    pub fn tiles(&self, left: Var<'k, u32>, each: impl Fn(Val<'k, u32>, bool)) {
        let (k, begin) = (self.k, self.task.begin);
        let down = |hidden: bool, to: Val<'k, u32>| {
            k.repeat(|exit| {
                exit.when(left.get().le(to));
                left.set(left.get() - 1);
                each(left.get(), hidden);
            });
        };
        down(true, self.unmasked_tiles().max(begin));
        down(false, begin);
    }

    /// Returns the number of tiles without masked keys.
    fn unmasked_tiles(&self) -> Val<'k, u32> {
        let keys = self.params.keys;
        let first = self.first_row + 1;
        let seen = if self.variant.causal { keys.min(first) } else { keys };
        seen / self.variant.tile.keys
    }
}

/// Scores and weights.
impl<'k> Strip<'k, '_> {
    /// Turns the scores of a tile into weights; `hidden` says that some of its keys may be masked.
    pub fn weigh(&self, tile: Val<'k, u32>, hidden: bool, bias: LoadedBias<'k>) {
        self.add_bias(tile, hidden, bias);
        if hidden {
            self.hide(tile);
        }
        self.softmax.weigh(&self.scores, hidden || self.variant.bias.is_some());
    }

    /// Sets the scores of masked keys to minus infinity.
    fn hide(&self, tile: Val<'k, u32>) {
        let before = tile * self.variant.tile.keys + self.column;
        for half in 0..2 {
            let row = self.row + 8 * half as u32 + 1;
            let keys = self.params.keys;
            let seen = if self.variant.causal { keys.min(row) } else { keys };
            let left: Val<'k, i32> = (seen - before).cast();
            for nth in of_row(&self.scores, half) {
                let column = 8 * (nth / 4) + nth % 2;
                let shown = left.gt(column as i32);
                self.scores.set(nth, shown.select(self.scores.get(nth), f32::NEG_INFINITY));
            }
        }
    }

    /// Returns batch, head and row of a query, clamped to existing ones, for one of the thread's
    /// rows.
    pub fn query(&self, half: usize) -> [Val<'k, u32>; 3] {
        let (row, group, task) = (self.row + 8 * half as u32, self.params.group, self.task);
        let (head, query) = if self.variant.packed() {
            (task.head + row % group, row / group)
        } else {
            (task.head, row)
        };
        [task.batch, head, query.min(self.params.queries - 1)]
    }

    /// Packs the weights as `a` operands.
    pub fn pack(&self) {
        for word in 0..self.variant.tile.keys as usize / 4 {
            let pair = [self.scores.get(2 * word), self.scores.get(2 * word + 1)];
            let words = Rounding::to(self.variant.element).words(pair, self.variant.parts);
            self.weights.iter().zip(words).for_each(|(part, rounded)| part[word].set(rounded));
        }
    }
}

/// Results.
impl<'k> Strip<'k, '_> {
    /// Applies the correction of the online softmax to the accumulators.
    pub fn shrink(&self) {
        let rows = &self.softmax.rows;
        scaled(&self.accumulators, [rows[0].shrink.get(), rows[1].shrink.get()]);
    }

    /// Applies it to some columns, from the first one on, and adds new accumulators.
    pub fn add_accumulators(&self, fresh: &Accumulators<'k>, first: u32) {
        for (row, state) in self.softmax.rows.iter().enumerate() {
            for nth in of_row(fresh, row) {
                let at = nth + first as usize / 2;
                let sum = self.accumulators.get(at).mul_add(state.shrink.get(), fresh.get(nth));
                self.accumulators.set(at, sum);
            }
        }
    }

    /// Divides accumulators by the totals of weights; a row without weights is 0.
    pub fn normalise(&self) {
        let factor = |row| {
            let total = self.softmax.total(row);
            total.equals(0.0).select::<f32>(0.0, total.recip())
        };
        scaled(&self.accumulators, [factor(0), factor(1)]);
    }

    /// Returns the scaled maximum and the total of a row.
    pub fn extent(&self, row: usize) -> [Val<'k, f32>; 2] {
        [self.softmax.extent(row), self.softmax.total(row)]
    }
}
