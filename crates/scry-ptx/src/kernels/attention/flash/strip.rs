//! 64 rows of scores, weights and results in the register layout of a warpgroup, for both kinds of
//! MMA.

use super::Variant;
use super::bias::PrefetchedBias;
use super::params::Params;
use super::schedule::Task;
use super::softmax::{Softmax, row_registers, scale_rows};
use crate::kernels::attention::scalar::Rounding;
use crate::typed::hopper::Accumulators;
use crate::typed::{KernelBuilder, Val, Var};

/// A thread's part of 64 rows: two neighbouring columns of each group of 8, in two rows.
pub(super) struct Strip<'k, 'a> {
    pub k: &'k KernelBuilder,
    pub variant: &'a Variant,
    pub params: &'a Params<'k>,
    pub task: Task<'k>,
    /// The first of the 64 rows, in its head.
    pub first_row: Val<'k, u32>,
    /// The first of the two rows of this thread; the second one is 8 below.
    pub row: Val<'k, u32>,
    /// The thread's first column in each group of 8.
    pub column: Val<'k, u32>,
    pub scores: Accumulators<'k>,
    /// The weights of a tile, for each of their terms.
    pub weights: Vec<Vec<Var<'k, u32>>>,
    softmax: Softmax<'k>,
    /// Accumulators of the result.
    pub accumulators: Accumulators<'k>,
}

impl<'k, 'a> Strip<'k, 'a> {
    /// Returns the strip of a consumer, given by index, before the first tile of a task.
    pub fn new(
        k: &'k KernelBuilder,
        variant: &'a Variant,
        params: &'a Params<'k>,
        task: Task<'k>,
        index: Val<'k, u32>,
    ) -> Self {
        let thread = k.thread_id() & 127;
        let first_row = task.first_row + index * 64;
        let row = first_row + (thread >> 5) * 16 + ((thread & 31) >> 2);
        let words = variant.tile.keys / 4;
        let weights = (0..variant.terms).map(|_| (0..words).map(|_| k.var(0u32)).collect());
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

    /// Writes the loops over the tiles of keys from number `tiles_left - 1` down to the first one:
    /// one loop for tiles with masked keys, then one for the others. `write` receives the tile and
    /// whether some of its keys may be masked.
    pub fn for_each_tile(&self, tiles_left: Var<'k, u32>, write: impl Fn(Val<'k, u32>, bool)) {
        let (k, begin) = (self.k, self.task.begin);
        let write_loop = |may_be_masked: bool, to: Val<'k, u32>| {
            k.loop_(|exit| {
                exit.break_if(tiles_left.get().le(to));
                tiles_left.set(tiles_left.get() - 1);
                write(tiles_left.get(), may_be_masked);
            });
        };
        write_loop(true, self.unmasked_tiles().max(begin));
        write_loop(false, begin);
    }

    /// Returns the number of tiles without masked keys.
    fn unmasked_tiles(&self) -> Val<'k, u32> {
        let keys = self.params.keys;
        let first = self.first_row + 1;
        let visible_keys = if self.variant.causal { keys.min(first) } else { keys };
        visible_keys / self.variant.tile.keys
    }
}

/// Scores and weights.
impl<'k> Strip<'k, '_> {
    /// Replaces the scores of a tile by weights; `may_be_masked` says that some of its keys may be
    /// masked.
    pub fn compute_weights(
        &self,
        tile: Val<'k, u32>,
        may_be_masked: bool,
        bias: PrefetchedBias<'k>,
    ) {
        self.add_bias(tile, may_be_masked, bias);
        if may_be_masked {
            self.mask(tile);
        }
        self.softmax.compute_weights(&self.scores, may_be_masked || self.variant.bias.is_some());
    }

    /// Sets the scores of masked keys to minus infinity.
    fn mask(&self, tile: Val<'k, u32>) {
        let first_column = tile * self.variant.tile.keys + self.column;
        for thread_row in 0..2 {
            let row = self.row + 8 * thread_row as u32 + 1;
            let keys = self.params.keys;
            let visible_keys = if self.variant.causal { keys.min(row) } else { keys };
            let visible_columns: Val<'k, i32> = (visible_keys - first_column).cast();
            for nth in row_registers(&self.scores, thread_row) {
                let column = 8 * (nth / 4) + nth % 2;
                let is_visible = visible_columns.gt(column as i32);
                self.scores.set(nth, is_visible.select(self.scores.get(nth), f32::NEG_INFINITY));
            }
        }
    }

    /// Returns batch entry, head and row of the query of the thread's first or second row. Rows out
    /// of bounds are clamped to the last one.
    pub fn query(&self, thread_row: usize) -> [Val<'k, u32>; 3] {
        let (row, group, task) =
            (self.row + 8 * thread_row as u32, self.params.group_size, self.task);
        let (head, query) = if self.variant.packs_heads() {
            (task.head + row % group, row / group)
        } else {
            (task.head, row)
        };
        [task.batch, head, query.min(self.params.queries - 1)]
    }

    /// Rounds the weights, and packs them as `a` operands of the value MMAs.
    pub fn pack_weights(&self) {
        for word in 0..self.variant.tile.keys as usize / 4 {
            let pair = [self.scores.get(2 * word), self.scores.get(2 * word + 1)];
            let words = Rounding::new(self.variant.element).pack_terms(pair, self.variant.terms);
            self.weights.iter().zip(words).for_each(|(part, rounded)| part[word].set(rounded));
        }
    }
}

/// Results.
impl<'k> Strip<'k, '_> {
    /// Applies the correction of the online softmax to the accumulators.
    pub fn rescale(&self) {
        let rows = &self.softmax.rows;
        scale_rows(&self.accumulators, [rows[0].rescale.get(), rows[1].rescale.get()]);
    }

    /// Applies the correction to the columns from `first` on, and adds a tile's accumulators.
    pub fn add_accumulators(&self, tile_accumulators: &Accumulators<'k>, first: u32) {
        for (row, state) in self.softmax.rows.iter().enumerate() {
            for nth in row_registers(tile_accumulators, row) {
                let at = nth + first as usize / 2;
                let sum = self
                    .accumulators
                    .get(at)
                    .mul_add(state.rescale.get(), tile_accumulators.get(nth));
                self.accumulators.set(at, sum);
            }
        }
    }

    /// Divides the accumulators by the totals of weights; a row without weights is 0.
    pub fn normalise(&self) {
        let factor = |row| {
            let total = self.softmax.total(row);
            total.eq(0.0).select::<f32>(0.0, total.recip())
        };
        scale_rows(&self.accumulators, [factor(0), factor(1)]);
    }

    /// Returns the scaled maximum and the total of a row.
    pub fn max_and_total(&self, row: usize) -> [Val<'k, f32>; 2] {
        [self.softmax.scaled_max(row), self.softmax.total(row)]
    }
}
