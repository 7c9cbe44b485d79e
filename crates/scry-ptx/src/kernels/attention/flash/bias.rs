//! The bias that is added to the scores.

use super::softmax::of_row;
use super::strip::Strip;
use crate::kernels::attention::scalar::{read, wide};
use crate::typed::{Global, Ptr, Val, unpack_bf16x2, unpack_f16x2};
use crate::types::PtxType;

const LOG2_E: f32 = std::f32::consts::LOG2_E;

/// The bias of a tile, if it was prefetched before the scores are computed: pairs of 16-bit floats.
pub(super) struct LoadedBias<'k>(Option<Vec<Val<'k, u32>>>);

impl<'k> Strip<'k, '_> {
    /// Issues the loads of a tile's bias ahead of use, if it needs few registers.
    pub fn fetch_bias(&self, tile: Val<'k, u32>, hidden: bool) -> LoadedBias<'k> {
        let form = self.variant.bias;
        let early = form.is_some_and(|form| form.pairs && form.element != PtxType::F32);
        LoadedBias((early && !hidden).then(|| {
            let rows = [0, 1].map(|half| self.bias_of(tile, half).cast::<u32>());
            let read = |row: Ptr<'k, Global, u32>, nth| row.at(4 * nth).load_constant();
            let pairs = (0..self.variant.tile.keys / 8).map(|nth| rows.map(|row| read(row, nth)));
            pairs.flatten().collect()
        }))
    }

    /// Returns the address of the bias of this thread's first column of a tile, for one of its
    /// rows.
    fn bias_of(&self, tile: Val<'k, u32>, half: usize) -> Ptr<'k, Global, u8> {
        let size = self.variant.bias.map_or(1, |form| form.element.size());
        let rows = self.params.bias.as_ref().expect("there is a bias where one is read");
        let first = tile * self.variant.tile.keys + self.column;
        rows.row(size, self.query(half)).at_wide(wide(first) * u64::from(size))
    }

    /// Adds the bias to the scores, which are scaled.
    pub fn add_bias(&self, tile: Val<'k, u32>, hidden: bool, bias: LoadedBias<'k>) {
        let Some(form) = self.variant.bias else { return };
        match bias.0 {
            Some(words) => self.add_halves(form.element, &words),
            None if form.pairs && !hidden => self.add_pairs(tile, form.element),
            None => self.add_each(tile, form.element),
        }
    }

    fn add_to_score(&self, nth: usize, by: Val<'k, f32>) {
        let score = self.scores.get(nth).mul_add(self.params.scale, by * LOG2_E);
        self.scores.set(nth, score);
    }

    fn add_halves(&self, element: PtxType, words: &[Val<'k, u32>]) {
        for (nth, word) in words.iter().enumerate() {
            let pair =
                if element == PtxType::F16 { unpack_f16x2(*word) } else { unpack_bf16x2(*word) };
            pair.into_iter().enumerate().for_each(|(odd, by)| self.add_to_score(2 * nth + odd, by));
        }
    }

    fn add_pairs(&self, tile: Val<'k, u32>, element: PtxType) {
        let rows = [0, 1].map(|half| self.bias_of(tile, half));
        for nth in 0..self.variant.tile.keys / 4 {
            let at = rows[nth as usize % 2];
            let column = 8 * (nth / 2);
            let pair = match element {
                PtxType::F32 => at.cast::<f32>().at(column).load_constant_vector(),
                PtxType::F16 => unpack_f16x2(at.cast::<u32>().at(column / 2).load_constant()),
                _ => unpack_bf16x2(at.cast::<u32>().at(column / 2).load_constant()),
            };
            pair.into_iter()
                .enumerate()
                .for_each(|(odd, by)| self.add_to_score(2 * nth as usize + odd, by));
        }
    }

    /// Adds it element by element, with bounds checks.
    fn add_each(&self, tile: Val<'k, u32>, element: PtxType) {
        let first = tile * self.variant.tile.keys + self.column;
        let rows = self.params.bias.as_ref().expect("there is a bias where one is read");
        for half in 0..2 {
            let row = rows.row(element.size(), self.query(half));
            for nth in of_row(&self.scores, half) {
                let column = (first + (8 * (nth / 4) + nth % 2) as u32).min(self.params.keys - 1);
                let index = (column * self.params.column).convert("");
                self.add_to_score(nth, read(element, row, index));
            }
        }
    }
}
