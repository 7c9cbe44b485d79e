//! Searches the scale and offset of a group of weights: a least-squares fit for each of several
//! candidate roundings, of which the one with the smallest error is chosen.
//!
//! The GPU kernel (`device_scale_search.rs`) executes the same operations in the same order, so
//! that both return the same bytes. Neither contracts to FMAs, and sums are in the order of the
//! weights.

/// Number of candidate roundings.
pub(super) const CANDIDATES: u32 = 9;
/// Difference between the candidates' numbers of quantisation steps over the range of the weights.
pub(super) const CANDIDATE_STEP: f32 = 0.25;
/// The first candidate has this many quantisation steps fewer than there are levels.
pub(super) const FIRST_STEP_OFFSET: f32 = 1.0;

/// A fit of weights as `scale * q - offset`, with integers `q`; `offset` is not negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Affine {
    pub(super) scale: f32,
    pub(super) offset: f32,
}

/// Rounds to the nearest integer and clamps.
pub(super) fn round_clamped(value: f32, low: f32, high: f32) -> f32 {
    value.round_ties_even().max(low).min(high)
}

/// `1 / value`, or 0 for 0.
pub(super) fn inverse(value: f32) -> f32 {
    if value == 0.0 { 0.0 } else { 1.0 / value }
}

/// Returns the minimum of the values and 0.
fn lowest(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |low, value| low.min(*value))
}

/// Returns the maximum of the values and an initial value.
fn highest(x: &[f32], initial: f32) -> f32 {
    x.iter().fold(initial, |high, value| high.max(*value))
}

/// Returns the value with the largest magnitude; of two equal ones, the positive value.
pub(super) fn extreme(x: &[f32]) -> f32 {
    let (low, high) = (lowest(x), highest(x, 0.0));
    if -low > high { low } else { high }
}

/// Returns the sum of squared errors.
fn error(x: &[f32], q: &[f32], fit: Affine) -> f32 {
    let residual = x.iter().zip(q).map(|(x, q)| (fit.scale * q - fit.offset) - x);
    residual.fold(0.0, |sum, residual| sum + residual * residual)
}

fn sum(values: impl Iterator<Item = f32>) -> f32 {
    values.fold(0.0, |sum, value| sum + value)
}

fn product(x: &[f32], y: &[f32]) -> f32 {
    sum(x.iter().zip(y).map(|(x, y)| x * y))
}

/// Returns the candidate fit with the smallest error; `first` if there is none. `try_candidate`
/// returns the fit and its integers for a number of extra quantisation steps.
fn best_fit(
    first: Affine,
    x: &[f32],
    try_candidate: impl Fn(f32) -> Option<(Affine, Vec<f32>)>,
) -> Affine {
    let (mut best, mut min_error) = (first, f32::INFINITY);
    for nth in 0..CANDIDATES {
        let Some((fit, q)) = try_candidate(CANDIDATE_STEP * nth as f32 - FIRST_STEP_OFFSET) else {
            continue;
        };
        let error = error(x, &q, fit);
        if error < min_error {
            (best, min_error) = (fit, error);
        }
    }
    best
}

/// Fits weights with integers from 0 to `levels`. The offset is never negative zero.
pub(super) fn fit_affine(x: &[f32], levels: f32) -> Affine {
    let low = lowest(x);
    let range = highest(x, x[0]) - low;
    // False for NaN, the range of equal infinities.
    let has_range = range > 0.0;
    if !has_range {
        return Affine { scale: 0.0, offset: 0.0 - low };
    }
    best_fit(Affine { scale: range / levels, offset: 0.0 - low }, x, |extra_steps| {
        let steps = (levels + extra_steps) / range;
        let q: Vec<_> = x.iter().map(|x| round_clamped((x - low) * steps, 0.0, levels)).collect();
        regression_line(x, &q).map(|fit| (fit, q))
    })
}

/// Returns the regression line of the weights `x` over the integers `q`; `None` if the integers are
/// all equal, or the slope is not positive.
fn regression_line(x: &[f32], q: &[f32]) -> Option<Affine> {
    let n = x.len() as f32;
    let (q1, q2) = (sum(q.iter().copied()), product(q, q));
    let (x1, xq) = (sum(x.iter().copied()), product(x, q));
    let determinant = n * q2 - q1 * q1;
    if determinant <= 0.0 {
        return None;
    }
    let low = (q2 * x1 - q1 * xq) / determinant;
    let through_zero = low > 0.0;
    let scale = if through_zero { xq / q2 } else { (n * xq - q1 * x1) / determinant };
    let offset = if through_zero { 0.0 } else { 0.0 - low };
    (scale > 0.0).then_some(Affine { scale, offset })
}

/// Fits weights as `scale * q` with integers from `-levels` to `levels - 1`, and returns the scale,
/// which may be negative.
pub(super) fn fit_centred(x: &[f32], levels: f32) -> f32 {
    let extreme = extreme(x);
    if extreme == 0.0 {
        return 0.0;
    }
    let fit = |scale| Affine { scale, offset: 0.0 };
    let best = best_fit(fit(extreme / -levels), x, |extra_steps| {
        let steps = -(levels + extra_steps) / extreme;
        let q: Vec<_> = x.iter().map(|x| round_clamped(x * steps, -levels, levels - 1.0)).collect();
        let q2 = product(&q, &q);
        (q2 > 0.0).then(|| (fit(product(x, &q) / q2), q))
    });
    best.scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_without_range_have_scale_zero() {
        let offset_of = |weight: f32| {
            let Affine { scale, offset } = fit_affine(&[weight; 32], 15.0);
            assert_eq!(scale, 0.0, "{weight}");
            offset
        };
        assert_eq!([0.0, -3.0].map(offset_of), [0.0, 3.0]);
        assert_eq!([f32::NAN, f32::NEG_INFINITY].map(offset_of), [0.0, f32::INFINITY]);
    }
}
