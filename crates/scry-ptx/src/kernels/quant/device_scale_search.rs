//! The fits of `scale_search.rs` on the GPU: the same operations in the same order, none of them
//! contracted to FMAs.

use super::scale_search::{CANDIDATE_STEP, CANDIDATES, FIRST_STEP_OFFSET};
use crate::typed::{KernelBuilder, Val, Var};

/// The moments that a least-squares fit of weights `x` to integers `q` needs.
struct Moments<'k> {
    /// Sum of `q`.
    q1: Val<'k, f32>,
    /// Sum of `q * q`.
    q2: Val<'k, f32>,
    /// Sum of `x`.
    x1: Val<'k, f32>,
    /// Sum of `x * q`.
    xq: Val<'k, f32>,
}

/// Arithmetic without FMA contraction.
pub(super) trait Exact<'k>: Sized {
    fn plus(self, other: Val<'k, f32>) -> Self;
    fn minus(self, other: Val<'k, f32>) -> Self;
    fn times(self, other: Val<'k, f32>) -> Self;
    fn divided_by(self, other: Val<'k, f32>) -> Self;
    /// Rounds to the nearest integer and clamps.
    fn round_clamped(self, low: f32, high: f32) -> Self;
    /// `1 / self`, or 0 for 0.
    fn inverse(self) -> Self;
}

impl<'k> Exact<'k> for Val<'k, f32> {
    fn plus(self, other: Self) -> Self {
        self.binary("add.rn", other)
    }

    fn minus(self, other: Self) -> Self {
        self.binary("sub.rn", other)
    }

    fn times(self, other: Self) -> Self {
        self.binary("mul.rn", other)
    }

    fn divided_by(self, other: Self) -> Self {
        self.binary("div.rn", other)
    }

    fn round_clamped(self, low: f32, high: f32) -> Self {
        self.convert::<f32>("rni").max(low).min(high)
    }

    fn inverse(self) -> Self {
        let one = self.builder().constant(1.0f32);
        self.eq(0.0).select(0.0, one.divided_by(self))
    }
}

/// The weights of a thread, which share a scale.
#[derive(Debug, Clone)]
pub(super) struct Weights<'k> {
    pub(super) k: &'k KernelBuilder,
    pub(super) x: Vec<Val<'k, f32>>,
}

/// The best fit so far.
struct Best<'k> {
    scale: Var<'k, f32>,
    offset: Var<'k, f32>,
    min_error: Var<'k, f32>,
}

impl<'k> Weights<'k> {
    /// Returns the minimum of the weights and 0.
    fn lowest(&self) -> Val<'k, f32> {
        self.x.iter().fold(self.k.constant(0.0), |low, x| low.min(*x))
    }

    /// Returns the maximum of the weights and an initial value.
    fn highest(&self, initial: Val<'k, f32>) -> Val<'k, f32> {
        self.x.iter().fold(initial, |high, x| high.max(*x))
    }

    /// Returns the value with the largest magnitude; of two equal ones, the positive value.
    pub(super) fn extreme(&self) -> Val<'k, f32> {
        larger_magnitude(self.lowest(), self.highest(self.k.constant(0.0)))
    }

    /// Returns the first of the least numbers, and the range up to the largest one: 0 without
    /// numbers, and between equal ones.
    pub(super) fn low_and_range(&self) -> (Val<'k, f32>, Val<'k, f32>) {
        let k = self.k;
        let (none_low, none_high) = (k.constant(f32::INFINITY), k.constant(f32::NEG_INFINITY));
        let low = self.x.iter().fold(none_low, |low, x| x.lt(low).select(*x, low));
        let high = self.x.iter().fold(none_high, |high, x| x.gt(high).select(*x, high));
        let range = low.lt(high).select(high.minus(low), 0.0);
        (low.gt(high).select(0.0, low), range)
    }

    fn sum(&self, values: impl Iterator<Item = Val<'k, f32>>) -> Val<'k, f32> {
        values.fold(self.k.constant(0.0), |sum, value| sum.plus(value))
    }

    fn moments(&self, q: &[Val<'k, f32>]) -> Moments<'k> {
        let moment = |x: &[Val<'k, f32>]| {
            let products: Vec<_> = x.iter().zip(q).map(|(x, q)| x.times(*q)).collect();
            self.sum(products.into_iter())
        };
        Moments {
            q1: self.sum(q.iter().copied()),
            q2: moment(q),
            x1: self.sum(self.x.iter().copied()),
            xq: moment(&self.x),
        }
    }

    /// Keeps a fit (scale, offset, whether it is valid) as the best one if it is valid and its
    /// error is smaller.
    fn keep_if_better(
        &self,
        best: &Best<'k>,
        q: &[Val<'k, f32>],
        fit: (Val<'k, f32>, Val<'k, f32>, Val<'k, bool>),
    ) {
        let (scale, offset, fits) = fit;
        let squares = self.x.iter().zip(q).map(|(x, q)| {
            let residual = scale.times(*q).minus(offset).minus(*x);
            residual.times(residual)
        });
        let squares: Vec<_> = squares.collect();
        let error = self.sum(squares.into_iter());
        self.k.if_then(fits & error.lt(best.min_error.get()), || {
            best.scale.set(scale);
            best.offset.set(offset);
            best.min_error.set(error);
        });
    }

    /// Writes the loop over the candidates, with the number of extra quantisation steps of each.
    fn for_each_candidate(&self, write: impl FnOnce(Val<'k, f32>)) {
        self.k.for_range(0, CANDIDATES, 1, |nth| {
            let extra_steps = self.k.constant(CANDIDATE_STEP).times(nth.convert("rn"));
            write(extra_steps.minus(self.k.constant(FIRST_STEP_OFFSET)));
        });
    }

    /// Returns the fit that is used if no candidate is better.
    fn initial_fit(&self, scale: Val<'k, f32>, offset: Val<'k, f32>) -> Best<'k> {
        let k = self.k;
        Best { scale: k.var(scale), offset: k.var(offset), min_error: k.var(f32::INFINITY) }
    }

    /// Returns scale and offset for integers from 0 to `levels`.
    pub(super) fn fit_affine(&self, levels: f32) -> (Val<'k, f32>, Val<'k, f32>) {
        let k = self.k;
        let low = self.lowest();
        let range = self.highest(self.x[0]).minus(low);
        let has_range = range.gt(0.0);
        let first_scale = range.divided_by(k.constant(levels));
        let zero = k.constant(0.0);
        let best = self.initial_fit(has_range.select(first_scale, 0.0), zero.minus(low));
        k.if_then(has_range, || {
            self.for_each_candidate(|extra_steps| {
                let steps = k.constant(levels).plus(extra_steps).divided_by(range);
                let q = self.x.iter().map(|x| x.minus(low).times(steps).round_clamped(0.0, levels));
                let q: Vec<_> = q.collect();
                self.keep_if_better(&best, &q, self.regression_line(&q));
            });
        });
        (best.scale.get(), best.offset.get())
    }

    /// Returns scale and offset of the regression line, and whether it is valid.
    fn regression_line(&self, q: &[Val<'k, f32>]) -> (Val<'k, f32>, Val<'k, f32>, Val<'k, bool>) {
        let n = self.k.constant(self.x.len() as f32);
        let Moments { q1, q2, x1, xq } = self.moments(q);
        let determinant = n.times(q2).minus(q1.times(q1));
        let low = q2.times(x1).minus(q1.times(xq)).divided_by(determinant);
        let through_zero = low.gt(0.0);
        let sloped = n.times(xq).minus(q1.times(x1)).divided_by(determinant);
        let scale = through_zero.select(xq.divided_by(q2), sloped);
        let offset = through_zero.select(0.0, self.k.constant(0.0).minus(low));
        (scale, offset, determinant.gt(0.0) & scale.gt(0.0))
    }

    /// Returns the scale for integers from `-levels` to `levels - 1`.
    pub(super) fn fit_centred(&self, levels: f32) -> Val<'k, f32> {
        let k = self.k;
        let extreme = self.extreme();
        let has_range = extreme.ne(0.0);
        let best = self.initial_fit(extreme.divided_by(k.constant(-levels)), k.constant(0.0));
        k.if_then(has_range, || {
            self.for_each_candidate(|extra_steps| {
                let steps = (-k.constant(levels).plus(extra_steps)).divided_by(extreme);
                let q = self.x.iter().map(|x| x.times(steps).round_clamped(-levels, levels - 1.0));
                let q: Vec<_> = q.collect();
                let Moments { q2, xq, .. } = self.moments(&q);
                self.keep_if_better(&best, &q, (xq.divided_by(q2), k.constant(0.0), q2.gt(0.0)));
            });
        });
        has_range.select(best.scale.get(), 0.0)
    }
}

/// Returns the one of a minimum and a maximum that has the larger magnitude; if they are equal, the
/// maximum.
pub(super) fn larger_magnitude<'k>(low: Val<'k, f32>, high: Val<'k, f32>) -> Val<'k, f32> {
    (-low).gt(high).select(low, high)
}
