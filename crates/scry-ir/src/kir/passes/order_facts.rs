//! Order facts: proofs that a value is at most another one, such as the length of an array.

use super::super::{BinaryOp, Inst, Value};
use super::bounds::Bounds;

/// Maximum number of recent conditions that are considered.
const MAX_CONDITIONS: usize = 32;
/// Maximum number of instructions in a proof.
const MAX_STEPS: u32 = 4;

/// Returns whether `a <= b` follows from the conditions that hold; `b` is a length less a constant.
pub(super) fn at_most(bounds: &Bounds<'_>, a: Value, b: Value) -> bool {
    match *bounds.kir.inst(b) {
        Inst::Binary(BinaryOp::Sub, length, c) if constant(bounds, c) == Some(1) => {
            bounds.range(length).lo >= 1 && below(bounds, a, length, MAX_STEPS)
        }
        _ => false,
    }
}

/// Returns whether `a <= b` is one of the conditions that hold.
pub(super) fn is_ordered(bounds: &Bounds<'_>, a: Value, b: Value) -> bool {
    let mut recent = bounds.ordered.iter().rev().take(MAX_CONDITIONS);
    let mut strict = bounds.less.iter().rev().take(MAX_CONDITIONS);
    recent.any(|pair| *pair == (a, b)) || strict.any(|pair| *pair == (a, b))
}

fn constant(bounds: &Bounds<'_>, value: Value) -> Option<i64> {
    bounds.kir.constant(value).filter(|c| c.ty.is_integer()).map(|c| c.as_i64())
}

/// Returns whether `a < limit` is proven.
fn below(bounds: &Bounds<'_>, a: Value, limit: Value, steps: u32) -> bool {
    let recent = bounds.less.iter().rev().take(MAX_CONDITIONS);
    let mut above = recent.filter(|pair| pair.0 == a).map(|pair| pair.1);
    if above.any(|above| is_up_to(bounds, above, limit, steps)) {
        return true;
    }
    let Some(steps) = steps.checked_sub(1) else { return false };
    match *bounds.kir.inst(a) {
        Inst::Binary(BinaryOp::Add, x, c) => next(bounds, x, c, limit, steps),
        Inst::Binary(BinaryOp::Sub, x, c) => {
            let (x_range, c_range) = (bounds.range_now(x, 2), bounds.range_now(c, 2));
            c_range.lo >= 0 && x_range.lo >= c_range.hi && below(bounds, x, limit, steps)
        }
        Inst::Binary(op, x, _) if shrinks(op) && bounds.range(x).lo >= 0 => {
            below(bounds, x, limit, steps)
        }
        Inst::Binary(BinaryOp::Min, x, y) => {
            below(bounds, x, limit, steps) || below(bounds, y, limit, steps)
        }
        _ => false,
    }
}

/// Operations whose result is at most the first operand, if that is non-negative.
fn shrinks(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Shr | BinaryOp::And | BinaryOp::Rem)
}

/// Returns whether `x + c < limit`, because `x < limit - d` for a `d >= c`.
fn next(bounds: &Bounds<'_>, x: Value, c: Value, limit: Value, steps: u32) -> bool {
    let Some(c) = constant(bounds, c) else { return false };
    let recent = bounds.less.iter().rev().take(MAX_CONDITIONS);
    let mut above = recent.filter(|pair| pair.0 == x).map(|pair| pair.1);
    above.any(|above| match *bounds.kir.inst(above) {
        Inst::Binary(BinaryOp::Sub, length, d) => constant(bounds, d).is_some_and(|d| {
            let apart = 0 <= c && c <= d && bounds.range_now(length, 2).lo >= d;
            apart && is_up_to(bounds, length, limit, steps)
        }),
        _ => false,
    })
}

/// Returns whether `a <= limit` is proven.
fn is_up_to(bounds: &Bounds<'_>, a: Value, limit: Value, steps: u32) -> bool {
    if a == limit {
        return true;
    }
    let Some(steps) = steps.checked_sub(1) else { return false };
    match *bounds.kir.inst(a) {
        Inst::Binary(BinaryOp::Min, x, y) => {
            is_up_to(bounds, x, limit, steps) || is_up_to(bounds, y, limit, steps)
        }
        Inst::Binary(BinaryOp::Sub, x, c) => {
            let (x_range, c_range) = (bounds.range_now(x, 2), bounds.range_now(c, 2));
            c_range.lo >= 0 && x_range.lo >= c_range.hi && is_up_to(bounds, x, limit, steps)
        }
        _ => false,
    }
}
