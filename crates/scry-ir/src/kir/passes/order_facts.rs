//! Order facts: proofs that a value is less than another one, such as the length of an array, from
//! the conditions that are true.

use super::super::{BinaryOp, Inst, Value};
use super::bounds::Bounds;

/// Maximum number of recent conditions that are considered.
const MAX_CONDITIONS: usize = 32;
/// Maximum depth of a proof, in instructions.
const MAX_STEPS: u32 = 4;

/// Returns whether `a <= last` is proven, where `last` is `length - 1`; false for any other `last`.
pub(super) fn is_at_most_last(bounds: &Bounds<'_>, a: Value, last: Value) -> bool {
    match *bounds.kir.inst(last) {
        Inst::Binary(BinaryOp::Sub, length, c) if constant(bounds, c) == Some(1) => {
            bounds.range(length).lo >= 1 && is_below(bounds, a, length, MAX_STEPS)
        }
        _ => false,
    }
}

/// Returns whether `a <= b` or `a < b` is one of the recent conditions that are true.
pub(super) fn is_less_equal(bounds: &Bounds<'_>, a: Value, b: Value) -> bool {
    let mut less_equal = bounds.less_equal.iter().rev().take(MAX_CONDITIONS);
    let mut less_than = bounds.less_than.iter().rev().take(MAX_CONDITIONS);
    less_equal.any(|pair| *pair == (a, b)) || less_than.any(|pair| *pair == (a, b))
}

fn constant(bounds: &Bounds<'_>, value: Value) -> Option<i64> {
    bounds.kir.constant(value).filter(|c| c.ty.is_integer()).map(|c| c.as_i64())
}

/// Returns whether `a < limit` is proven.
fn is_below(bounds: &Bounds<'_>, a: Value, limit: Value, steps: u32) -> bool {
    let recent = bounds.less_than.iter().rev().take(MAX_CONDITIONS);
    let mut upper_bounds = recent.filter(|pair| pair.0 == a).map(|pair| pair.1);
    if upper_bounds.any(|upper| is_at_most(bounds, upper, limit, steps)) {
        return true;
    }
    let Some(steps) = steps.checked_sub(1) else { return false };
    match *bounds.kir.inst(a) {
        Inst::Binary(BinaryOp::Add, x, c) => is_sum_below(bounds, x, c, limit, steps),
        Inst::Binary(BinaryOp::Sub, x, c) => {
            let (x_range, c_range) = (bounds.refined_range(x, 2), bounds.refined_range(c, 2));
            c_range.lo >= 0 && x_range.lo >= c_range.hi && is_below(bounds, x, limit, steps)
        }
        Inst::Binary(op, x, _) if never_exceeds_first(op) && bounds.range(x).lo >= 0 => {
            is_below(bounds, x, limit, steps)
        }
        Inst::Binary(BinaryOp::Min, x, y) => {
            is_below(bounds, x, limit, steps) || is_below(bounds, y, limit, steps)
        }
        _ => false,
    }
}

/// Returns whether the result is at most the first operand, if that is non-negative.
fn never_exceeds_first(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Shr | BinaryOp::And | BinaryOp::Rem)
}

/// Returns whether `x + c < limit` is proven, because `x < length - d` for a `d >= c` and a
/// `length <= limit`.
fn is_sum_below(bounds: &Bounds<'_>, x: Value, c: Value, limit: Value, steps: u32) -> bool {
    let Some(c) = constant(bounds, c) else { return false };
    let recent = bounds.less_than.iter().rev().take(MAX_CONDITIONS);
    let mut upper_bounds = recent.filter(|pair| pair.0 == x).map(|pair| pair.1);
    upper_bounds.any(|upper| match *bounds.kir.inst(upper) {
        Inst::Binary(BinaryOp::Sub, length, d) => constant(bounds, d).is_some_and(|d| {
            let does_not_wrap = bounds.refined_range(length, 2).lo >= d;
            0 <= c && c <= d && does_not_wrap && is_at_most(bounds, length, limit, steps)
        }),
        _ => false,
    })
}

/// Returns whether `a <= limit` is proven.
fn is_at_most(bounds: &Bounds<'_>, a: Value, limit: Value, steps: u32) -> bool {
    if a == limit {
        return true;
    }
    let Some(steps) = steps.checked_sub(1) else { return false };
    match *bounds.kir.inst(a) {
        Inst::Binary(BinaryOp::Min, x, y) => {
            is_at_most(bounds, x, limit, steps) || is_at_most(bounds, y, limit, steps)
        }
        Inst::Binary(BinaryOp::Sub, x, c) => {
            let (x_range, c_range) = (bounds.refined_range(x, 2), bounds.refined_range(c, 2));
            c_range.lo >= 0 && x_range.lo >= c_range.hi && is_at_most(bounds, x, limit, steps)
        }
        _ => false,
    }
}
