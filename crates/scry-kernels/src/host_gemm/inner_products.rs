//! Inner products of contiguous rows on the CPU device, in registers.
//!
//! Operands are read as they are, not packed: for few rows, such as the tokens of a sentence, the
//! other operand, such as the weights of a layer, is read from memory once.

use pulp::{Arch, Simd, WithSimd};

use super::prefetch;

/// Rows of the two operands in a tile: its sums, three vectors of rows of `many` and one of a row
/// of `few` take the 16 vector registers of AVX2.
const FEW: usize = 4;
const MANY: usize = 3;

/// Elements of a cache line.
const LINE: usize = 16;

/// Contiguous rows of a matrix: at least one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'r> {
    pub(super) numbers: &'r [f32],
    pub(super) count: usize,
    pub(super) len: usize,
    /// Elements from the start of a row to that of the next one.
    pub(super) distance: usize,
}

impl<'r> Rows<'r> {
    /// Returns some rows, the last one again in place of those after it.
    fn from<const COUNT: usize>(self, first: usize) -> [&'r [f32]; COUNT] {
        let mut rows = [&[][..]; COUNT];
        for (nth, row) in rows.iter_mut().enumerate() {
            let position = (first + nth).min(self.count - 1);
            *row = &self.numbers[position * self.distance..][..self.len];
        }
        rows
    }
}

/// Returns whether the processor has vector instructions that are known here: without them, packed
/// operands are better.
pub(super) fn has_vectors() -> bool {
    !matches!(Arch::new(), Arch::Scalar)
}

/// Calls a function with the positions of a row of `few` and of one of `many`, and their inner
/// product, for all pairs. Sums are added in `f32`.
pub(super) fn for_each_inner_product(
    few: Rows<'_>,
    many: Rows<'_>,
    store: impl FnMut(usize, usize, f32),
) {
    Arch::new().dispatch(AllPairs { few, many, store });
}

struct AllPairs<'p, F> {
    few: Rows<'p>,
    many: Rows<'p>,
    store: F,
}

impl<F: FnMut(usize, usize, f32)> WithSimd for AllPairs<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let tiles_of_few = self.few.count.div_ceil(FEW);
        for many in (0..self.many.count).step_by(MANY) {
            // Hardware does not prefetch beyond a page, so that each page would be waited for.
            let next = self.many.from::<MANY>(many + MANY);
            for nth in 0..tiles_of_few {
                let some = nth * MANY / tiles_of_few..(nth + 1) * MANY / tiles_of_few;
                let (at, next) = ([nth * FEW, many], &next[some]);
                match self.few.count - at[0] {
                    1 => self.tile::<S, 1>(simd, at, next),
                    2 => self.tile::<S, 2>(simd, at, next),
                    _ => self.tile::<S, FEW>(simd, at, next),
                }
            }
        }
    }
}

impl<F: FnMut(usize, usize, f32)> AllPairs<'_, F> {
    /// Computes the products of `COUNT` rows with `MANY` ones, and prefetches the next ones.
    #[inline(always)]
    fn tile<S: Simd, const COUNT: usize>(
        &mut self,
        simd: S,
        [few, many]: [usize; 2],
        next: &[&[f32]],
    ) {
        let rows = (self.few.from::<COUNT>(few), self.many.from(many));
        let sums = sums::<S, COUNT>(simd, rows, next);
        for (row, sums) in (few..self.few.count).zip(sums) {
            for (column, sum) in (many..self.many.count).zip(sums) {
                (self.store)(row, column, sum);
            }
        }
    }
}

/// Computes the products of `COUNT` rows with `MANY` ones.
// Loops, because functions of arrays are not always inlined, and then not compiled for vectors.
#[inline(always)]
fn sums<S: Simd, const COUNT: usize>(
    simd: S,
    (few, many): ([&[f32]; COUNT], [&[f32]; MANY]),
    next: &[&[f32]],
) -> [[f32; MANY]; COUNT] {
    let (few, few_ends) = split::<S, COUNT>(few);
    let (many, many_ends) = split::<S, MANY>(many);
    let mut lanes = [[simd.splat_f32s(0.0); MANY]; COUNT];
    for at in 0..many[0].len() {
        if (at * S::F32_LANES).is_multiple_of(LINE) {
            for row in next {
                prefetch(&row[at * S::F32_LANES]);
            }
        }
        let many = [many[0][at], many[1][at], many[2][at]];
        for row in 0..COUNT {
            let few = few[row][at];
            for column in 0..MANY {
                lanes[row][column] = simd.mul_add_e_f32s(few, many[column], lanes[row][column]);
            }
        }
    }
    let mut sums = [[0.0; MANY]; COUNT];
    for row in 0..COUNT {
        for column in 0..MANY {
            let ends = few_ends[row].iter().zip(many_ends[column]);
            let end: f32 = ends.map(|(a, b)| a * b).sum();
            sums[row][column] = simd.reduce_sum_f32s(lanes[row][column]) + end;
        }
    }
    sums
}

/// Splits rows of one length into whole vectors and the numbers after them.
#[inline(always)]
fn split<S: Simd, const COUNT: usize>(
    rows: [&[f32]; COUNT],
) -> ([&[S::f32s]; COUNT], [&[f32]; COUNT]) {
    let (mut vectors, mut ends) = ([&[][..]; COUNT], [&[][..]; COUNT]);
    let count = rows[0].len() / S::F32_LANES;
    for nth in 0..COUNT {
        let (row, end) = S::as_simd_f32s(rows[nth]);
        // Of one length that is known, so that positions are not checked in loops.
        (vectors[nth], ends[nth]) = (&row[..count], end);
    }
    (vectors, ends)
}
