//! A consumer: 64 rows of queries against all tiles.

use super::layout::{Places, Walk};
use super::params::{Params, Task};
use super::softmax::{Softmax, of_row, scaled};
use super::{Form, Variant, epilogue};
use crate::kernels::attention::scalar::{Rounding, read};
use crate::typed::hopper::{Factors, Left, Matrix, Sums, Swizzle, Transposed};
use crate::typed::{Code, Global, Ptr, Val, Var};
use crate::types::PtxType;

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// The first of the barriers that consumers take turns with.
const TURN: u32 = 1;
/// Columns of sums, old ones and new ones, that registers hold.
const SUMS: u32 = 256;

pub(super) fn compute<'k>(
    k: &'k Code,
    variant: &Variant,
    params: &Params<'k>,
    shared: &Places<'k>,
    task: &Task<'k>,
    number: Val<'k, u32>,
) {
    if let Some((_, many)) = variant.registers() {
        k.claim_registers(many);
    }
    let consumer = Consumer::new(k, variant, params, shared, task, number);
    consumer.run();
    epilogue::write(&consumer);
}

/// A consumer and what it holds in registers.
pub(super) struct Consumer<'k, 'a> {
    pub k: &'k Code,
    pub variant: &'a Variant,
    pub params: &'a Params<'k>,
    pub shared: &'a Places<'k>,
    pub task: &'a Task<'k>,
    /// Which consumer this is.
    pub number: Val<'k, u32>,
    /// The first of the two rows that this thread has a part of, among those of the head; the
    /// second one is 8 further down.
    pub row: Val<'k, u32>,
    /// The first of each 8 columns that it has.
    pub column: Val<'k, u32>,
    keys: Walk<'k>,
    values: Walk<'k>,
    scores: Sums<'k>,
    /// The weights of a tile, for each part of them.
    weights: Vec<Vec<Var<'k, u32>>>,
    pub softmax: Softmax<'k>,
    /// Weighted sums of values.
    pub sums: Sums<'k>,
}

impl<'k, 'a> Consumer<'k, 'a> {
    fn new(
        k: &'k Code,
        variant: &'a Variant,
        params: &'a Params<'k>,
        shared: &'a Places<'k>,
        task: &'a Task<'k>,
        number: Val<'k, u32>,
    ) -> Self {
        let thread = k.thread_id() & 127;
        let row = task.first_row + number * 64 + (thread >> 5) * 16 + ((thread & 31) >> 2);
        let words = variant.tile.keys / 4;
        let weights = (0..variant.parts).map(|_| (0..words).map(|_| k.var(0u32)).collect());
        let scale = if variant.bias.is_some() { k.constant(1.0f32) } else { params.scale };
        let sums = Sums::new(k, variant.width);
        (0..variant.width as usize / 2).for_each(|nth| sums.set(nth, 0.0));
        Self {
            k,
            variant,
            params,
            shared,
            task,
            number,
            row,
            column: (thread & 3) * 2,
            keys: shared.keys().walk(k),
            values: shared.values().walk(k),
            scores: Sums::new(k, variant.tile.keys),
            weights: weights.collect(),
            softmax: Softmax::new(k, scale),
            sums,
        }
    }

    fn run(&self) {
        self.first_turn();
        self.shared.queries_full().wait(0u32);
        match self.variant.form {
            Form::Overlapped => self.overlapped(),
            Form::Plain => self.plain(),
        }
    }

    /// Each tile after the other.
    fn plain(&self) {
        self.tiles(self.k.var(self.task.end), |tile, hidden| {
            self.start_scores();
            self.k.wait_products(0);
            self.release(&self.keys);
            self.weigh(tile, hidden);
            self.pack();
            self.add_values();
        });
    }

    /// The scores of the next tile are started before the values of the last one, and weighed
    /// while these are multiplied.
    fn overlapped(&self) {
        let k = self.k;
        let left = k.var(self.task.end - 1);
        self.start_scores();
        k.wait_products(0);
        self.release(&self.keys);
        self.weigh(left.get(), true);
        self.pack();
        self.tiles(left, |tile, hidden| {
            self.wait_turn();
            self.start_scores();
            self.start_values();
            self.end_turn();
            k.wait_products(1);
            self.release(&self.keys);
            self.weigh(tile, hidden);
            k.wait_products(0);
            self.release(&self.values);
            self.pack();
        });
        self.start_values();
        k.wait_products(0);
        self.release(&self.values);
    }

    /// Every tile before one, down to the first: those with hidden keys, then the others.
    fn tiles(&self, left: Var<'k, u32>, each: impl Fn(Val<'k, u32>, bool)) {
        let (k, begin) = (self.k, self.task.begin);
        let down = |hidden: bool, to: Val<'k, u32>| {
            k.repeat(|exit| {
                exit.when(left.get().le(to));
                left.set(left.get() - 1);
                each(left.get(), hidden);
            });
        };
        if self.variant.bias.is_none() {
            down(true, self.whole().max(begin));
        }
        down(self.variant.bias.is_some(), begin);
    }

    /// Tiles of which all rows see all keys.
    fn whole(&self) -> Val<'k, u32> {
        let keys = self.params.keys;
        let first = self.task.first_row + self.number * 64 + 1;
        let seen = if self.variant.causal { keys.min(first) } else { keys };
        seen / self.variant.tile.keys
    }
}

/// Products.
impl<'k> Consumer<'k, '_> {
    fn factors(&self) -> Factors {
        if self.variant.element == PtxType::F16 { Factors::F16 } else { Factors::Bf16 }
    }

    /// Starts the product of queries and the next tile of keys.
    fn start_scores(&self) {
        let (k, layout) = (self.k, &self.shared.layout);
        self.keys.wait_full();
        let queries = Matrix::new(self.shared.queries(self.number), 16, 1024, Swizzle::B128);
        let keys = self.keys.as_keys();
        let pieces = self.variant.products().iter().flat_map(|(left, right)| {
            let chunks = 0..self.variant.chunks();
            chunks.flat_map(move |chunk| (0..4).map(move |step| (*left, *right, chunk, step)))
        });
        k.begin_products();
        for (nth, (left, right, chunk, step)) in pieces.enumerate() {
            let query = queries.at(layout.query_chunk(left, chunk) + 32 * step);
            let key = keys.at(layout.tile_chunk(right, chunk) + 32 * step);
            let (left, added) = (Left::Shared(query), self.truth(nth > 0));
            self.scores.multiply(self.factors(), left, key, added, Transposed::default());
        }
        k.commit_products();
    }

    fn truth(&self, holds: bool) -> Val<'k, bool> {
        self.k.constant(u32::from(holds)).differs(0)
    }

    /// Starts to add the product of weights and the next tile of values.
    fn start_values(&self) {
        let rows = &self.softmax.rows;
        scaled(&self.sums, [rows[0].shrink.get(), rows[1].shrink.get()]);
        self.values.wait_full();
        self.multiply_values(&self.sums, 0, true);
    }

    /// Adds the product of weights and the next tile of values. What tensor cores add is not
    /// rounded to nearest, so the sums of one tile are computed by themselves if that matters.
    fn add_values(&self) {
        if self.variant.parts == 1 {
            self.start_values();
            self.k.wait_products(0);
        } else {
            self.values.wait_full();
            let columns = if 2 * self.variant.width > SUMS { 64 } else { self.variant.width };
            let fresh = Sums::new(self.k, columns);
            for first in (0..self.variant.width).step_by(columns as usize) {
                self.add_fresh(&fresh, first);
            }
        }
        self.release(&self.values);
    }

    /// The same for the columns from one on, as many as there are fresh sums of.
    fn add_fresh(&self, fresh: &Sums<'k>, first: u32) {
        self.multiply_values(fresh, first, false);
        self.k.wait_products(0);
        for (row, state) in self.softmax.rows.iter().enumerate() {
            for nth in of_row(fresh, row) {
                let at = nth + first as usize / 2;
                let sum = self.sums.get(at).mul_add(state.shrink.get(), fresh.get(nth));
                self.sums.set(at, sum);
            }
        }
    }

    /// Starts the product of weights and some columns of the next tile of values.
    fn multiply_values(&self, sums: &Sums<'k>, column: u32, added: bool) {
        let (k, layout) = (self.k, &self.shared.layout);
        let values = self.values.as_values();
        let transposed = Transposed { left: false, right: true };
        let steps = self.variant.tile.keys / 16;
        k.begin_products();
        let pieces = self.variant.products().iter();
        let pieces = pieces.flat_map(|(left, right)| (0..steps).map(move |s| (*left, *right, s)));
        for (nth, (left, right, step)) in pieces.enumerate() {
            let words = &self.weights[left as usize][4 * step as usize..];
            let weights = [0, 1, 2, 3].map(|word: usize| words[word].get());
            let value = values.at(layout.tile_chunk(right, column / 64) + 16 * 128 * step);
            let (left, added) = (Left::Registers(weights), self.truth(added || nth > 0));
            sums.multiply(self.factors(), left, value, added, transposed);
        }
        k.commit_products();
    }

    /// Says that a tile may be replaced, and goes on to the next one.
    fn release(&self, walk: &Walk<'k>) {
        walk.empty().arrive_if(self.k.lane().equals(0));
        walk.advance();
    }
}

/// Consumers start their products in turns.
impl Consumer<'_, '_> {
    fn takes_turns(&self) -> bool {
        self.variant.tile.consumers > 1
    }

    fn first_turn(&self) {
        let last = self.variant.tile.consumers - 1;
        if self.takes_turns() && self.variant.form == Form::Overlapped {
            self.k.when(self.number.equals(last), || self.k.arrive(TURN, 256));
        }
    }

    fn wait_turn(&self) {
        if self.takes_turns() {
            self.k.sync_some(self.number + TURN, 256);
        }
    }

    fn end_turn(&self) {
        if self.takes_turns() {
            let next = self.number + 1;
            let next = next.equals(self.variant.tile.consumers).select::<u32>(0, next);
            self.k.arrive(next + TURN, 256);
        }
    }
}

/// Scores and weights.
impl<'k> Consumer<'k, '_> {
    fn weigh(&self, tile: Val<'k, u32>, hidden: bool) {
        if self.variant.bias.is_some() {
            self.add_bias(tile);
        }
        if hidden {
            self.hide(tile);
        }
        self.softmax.weigh(&self.scores, hidden);
    }

    /// Makes the scores minus infinity of keys that rows do not see.
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

    /// The batch, the head and the number of a query that is there, for one of the thread's rows.
    pub fn query(&self, half: usize) -> [Val<'k, u32>; 3] {
        let (row, group, task) = (self.row + 8 * half as u32, self.params.group, self.task);
        let (head, query) = if self.variant.packed() {
            (task.head + row % group, row / group)
        } else {
            (task.head, row)
        };
        [task.batch, head, query.min(self.params.queries - 1)]
    }

    fn add_bias(&self, tile: Val<'k, u32>) {
        let (Some(ty), Some(bias)) = (self.variant.bias, &self.params.bias) else { return };
        let first = tile * self.variant.tile.keys + self.column;
        for half in 0..2 {
            let row: Ptr<'k, Global, u8> = bias.row(ty.size(), self.query(half));
            for nth in of_row(&self.scores, half) {
                let column = (first + (8 * (nth / 4) + nth % 2) as u32).min(self.params.keys - 1);
                let index = (column * self.params.column).convert("");
                let added = read(ty, row, index) * LOG2_E;
                self.scores.set(nth, self.scores.get(nth).mul_add(self.params.scale, added));
            }
        }
    }

    /// Makes left factors of weights.
    fn pack(&self) {
        for word in 0..self.variant.tile.keys as usize / 4 {
            let pair = [self.scores.get(2 * word), self.scores.get(2 * word + 1)];
            let words = Rounding::to(self.variant.element).words(pair, self.variant.parts);
            self.weights.iter().zip(words).for_each(|(part, rounded)| part[word].set(rounded));
        }
    }
}
