//! Order facts: values that are at most others, such as lengths of arrays.

use super::super::{BinaryOp, Inst, Value};
use super::bounds::Bounds;

/// How many of the latest conditions are looked at.
const CONDITIONS: usize = 32;
/// How many instructions a proof goes through.
const STEPS: u32 = 4;

/// Whether `a <= b` follows from the conditions that hold; `b` is a length less a constant.
pub(super) fn at_most(bounds: &Bounds<'_>, a: Value, b: Value) -> bool {
    match *bounds.kir.inst(b) {
        Inst::Binary(BinaryOp::Sub, length, c) if constant(bounds, c) == Some(1) => {
            bounds.range(length).lo >= 1 && below(bounds, a, length, STEPS)
        }
        _ => false,
    }
}

/// Whether conditions that hold say `a <= b`.
pub(super) fn is_ordered(bounds: &Bounds<'_>, a: Value, b: Value) -> bool {
    let mut recent = bounds.ordered.iter().rev().take(CONDITIONS);
    let mut strict = bounds.less.iter().rev().take(CONDITIONS);
    recent.any(|pair| *pair == (a, b)) || strict.any(|pair| *pair == (a, b))
}

fn constant(bounds: &Bounds<'_>, value: Value) -> Option<i64> {
    bounds.kir.constant(value).filter(|c| c.ty.is_integer()).map(|c| c.as_i64())
}

/// Whether `a < limit`.
fn below(bounds: &Bounds<'_>, a: Value, limit: Value, steps: u32) -> bool {
    let recent = bounds.less.iter().rev().take(CONDITIONS);
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

/// Whether `x + c < limit`, because `x < limit - d` for a `d` of at least `c`.
fn next(bounds: &Bounds<'_>, x: Value, c: Value, limit: Value, steps: u32) -> bool {
    let Some(c) = constant(bounds, c) else { return false };
    let recent = bounds.less.iter().rev().take(CONDITIONS);
    let mut above = recent.filter(|pair| pair.0 == x).map(|pair| pair.1);
    above.any(|above| match *bounds.kir.inst(above) {
        Inst::Binary(BinaryOp::Sub, length, d) => constant(bounds, d).is_some_and(|d| {
            let apart = 0 <= c && c <= d && bounds.range_now(length, 2).lo >= d;
            apart && is_up_to(bounds, length, limit, steps)
        }),
        _ => false,
    })
}

/// Whether `a <= limit`.
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
