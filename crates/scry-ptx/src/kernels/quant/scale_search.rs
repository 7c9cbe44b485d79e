//! Searches the scale and offset of a group of weights: least squares over several roundings.
//!
//! The GPU kernel executes the same operations in the same order, so that both return the same
//! bytes. Neither contracts to FMAs, and sums are in the order of the weights.

/// Number of candidate roundings.
pub(super) const TRIES: u32 = 9;
/// Difference between candidates, in quantisation steps over the whole range.
pub(super) const STEP: f32 = 0.25;
/// Quantisation steps of the first candidate below the number of levels.
pub(super) const BELOW: f32 = 1.0;

/// Weights as `scale * q - offset`, `q` from 0 up, `offset` not negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Affine {
    pub(super) scale: f32,
    pub(super) offset: f32,
}

/// Rounds to the nearest integer and clamps.
pub(super) fn rounded(value: f32, low: f32, high: f32) -> f32 {
    value.round_ties_even().max(low).min(high)
}

/// `1 / value`, or 0 for 0.
pub(super) fn inverse(value: f32) -> f32 {
    if value == 0.0 { 0.0 } else { 1.0 / value }
}

fn lowest(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |low, value| low.min(*value))
}

fn highest(x: &[f32], least: f32) -> f32 {
    x.iter().fold(least, |high, value| high.max(*value))
}

/// Returns the value with the largest magnitude; of two, the positive one.
pub(super) fn extreme(x: &[f32]) -> f32 {
    let (low, high) = (lowest(x), highest(x, 0.0));
    if -low > high { low } else { high }
}

/// Returns the sum of squared errors.
fn error(x: &[f32], q: &[f32], fit: Affine) -> f32 {
    let left = x.iter().zip(q).map(|(x, q)| (fit.scale * q - fit.offset) - x);
    left.fold(0.0, |sum, left| sum + left * left)
}

fn sum(values: impl Iterator<Item = f32>) -> f32 {
    values.fold(0.0, |sum, value| sum + value)
}

fn product(x: &[f32], y: &[f32]) -> f32 {
    sum(x.iter().zip(y).map(|(x, y)| x * y))
}

/// Returns the fit with the least error of the candidates that succeed, or else the first one.
fn best(first: Affine, x: &[f32], tried: impl Fn(f32) -> Option<(Affine, Vec<f32>)>) -> Affine {
    let (mut best, mut least) = (first, f32::INFINITY);
    for nth in 0..TRIES {
        let Some((fit, q)) = tried(STEP * nth as f32 - BELOW) else { continue };
        let error = error(x, &q, fit);
        if error < least {
            (best, least) = (fit, error);
        }
    }
    best
}

/// Fits weights with integers from 0 to `levels`. Offsets are never negative zero.
pub(super) fn affine(x: &[f32], levels: f32) -> Affine {
    let low = lowest(x);
    let range = highest(x, x[0]) - low;
    if range <= 0.0 {
        return Affine { scale: 0.0, offset: 0.0 - low };
    }
    best(Affine { scale: range / levels, offset: 0.0 - low }, x, |more| {
        let steps = (levels + more) / range;
        let q: Vec<_> = x.iter().map(|x| rounded((x - low) * steps, 0.0, levels)).collect();
        line(x, &q).map(|fit| (fit, q))
    })
}

/// Returns the regression line through weights at integers, where these differ and its slope is
/// positive.
fn line(x: &[f32], q: &[f32]) -> Option<Affine> {
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

/// Fits weights with integers from `-levels` to `levels - 1`; the scale may be negative.
pub(super) fn centred(x: &[f32], levels: f32) -> f32 {
    let extreme = extreme(x);
    if extreme == 0.0 {
        return 0.0;
    }
    let fit = |scale| Affine { scale, offset: 0.0 };
    let found = best(fit(extreme / -levels), x, |more| {
        let steps = -(levels + more) / extreme;
        let q: Vec<_> = x.iter().map(|x| rounded(x * steps, -levels, levels - 1.0)).collect();
        let q2 = product(&q, &q);
        (q2 > 0.0).then(|| (fit(product(x, &q) / q2), q))
    });
    found.scale
}
