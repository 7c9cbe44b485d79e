//! The bias that is added to the scores.

use super::softmax::row_registers;
use super::strip::Strip;
use crate::kernels::attention::scalar::{load_element, to_u64};
use crate::typed::{Global, Ptr, Val, unpack_bf16x2, unpack_f16x2};
use crate::types::PtxType;

const LOG2_E: f32 = std::f32::consts::LOG2_E;

/// The bias of a tile as pairs of 16-bit floats, if it is loaded before the scores are computed.
pub(super) struct PrefetchedBias<'k>(Option<Vec<Val<'k, u32>>>);

impl<'k> Strip<'k, '_> {
    /// Issues the loads of a tile's bias ahead of their use, if the bias needs few registers and no
    /// bounds checks.
    pub fn fetch_bias(&self, tile: Val<'k, u32>, may_be_masked: bool) -> PrefetchedBias<'k> {
        let form = self.variant.bias;
        let is_prefetched = form.is_some_and(|form| form.pairs && form.element != PtxType::F32);
        PrefetchedBias((is_prefetched && !may_be_masked).then(|| {
            let rows = [0, 1].map(|thread_row| self.bias_address(tile, thread_row).cast::<u32>());
            let read = |row: Ptr<'k, Global, u32>, nth| row.at(4 * nth).load_constant();
            let pairs = (0..self.variant.tile.keys / 8).map(|nth| rows.map(|row| read(row, nth)));
            pairs.flatten().collect()
        }))
    }

    /// Returns the address of the bias of this thread's first column of a tile, for one of its
    /// rows.
    fn bias_address(&self, tile: Val<'k, u32>, thread_row: usize) -> Ptr<'k, Global, u8> {
        let size = self.variant.bias.map_or(1, |form| form.element.size());
        let rows = self.params.bias.as_ref().expect("there is a bias where one is read");
        let first = tile * self.variant.tile.keys + self.column;
        rows.row_address(size, self.query(thread_row)).at_wide(to_u64(first) * u64::from(size))
    }

    /// Scales the scores and adds the bias, if there is one.
    pub fn add_bias(&self, tile: Val<'k, u32>, may_be_masked: bool, bias: PrefetchedBias<'k>) {
        let Some(form) = self.variant.bias else { return };
        match bias.0 {
            Some(words) => self.add_prefetched(form.element, &words),
            None if form.pairs && !may_be_masked => self.add_vectors(tile, form.element),
            None => self.add_scalars(tile, form.element),
        }
    }

    /// Scales a score, and adds its bias.
    fn add_to_score(&self, nth: usize, bias: Val<'k, f32>) {
        let score = self.scores.get(nth).mul_add(self.params.scale, bias * LOG2_E);
        self.scores.set(nth, score);
    }

    fn add_prefetched(&self, element: PtxType, words: &[Val<'k, u32>]) {
        for (nth, word) in words.iter().enumerate() {
            let pair =
                if element == PtxType::F16 { unpack_f16x2(*word) } else { unpack_bf16x2(*word) };
            pair.into_iter()
                .enumerate()
                .for_each(|(odd, bias)| self.add_to_score(2 * nth + odd, bias));
        }
    }

    fn add_vectors(&self, tile: Val<'k, u32>, element: PtxType) {
        let rows = [0, 1].map(|thread_row| self.bias_address(tile, thread_row));
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
                .for_each(|(odd, bias)| self.add_to_score(2 * nth as usize + odd, bias));
        }
    }

    /// Adds the bias element by element, with bounds checks.
    fn add_scalars(&self, tile: Val<'k, u32>, element: PtxType) {
        let first = tile * self.variant.tile.keys + self.column;
        let rows = self.params.bias.as_ref().expect("there is a bias where one is read");
        for thread_row in 0..2 {
            let row = rows.row_address(element.size(), self.query(thread_row));
            for nth in row_registers(&self.scores, thread_row) {
                let column = (first + (8 * (nth / 4) + nth % 2) as u32).min(self.params.keys - 1);
                let index = (column * self.params.bias_column_stride).convert("");
                self.add_to_score(nth, load_element(element, row, index));
            }
        }
    }
}
