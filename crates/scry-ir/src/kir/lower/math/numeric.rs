//! Component-wise functions.

use naga::MathFunction as F;

use crate::kir::lower::componentwise::{each, each_binary, each_unary, number};
use crate::kir::lower::shape::Shaped;
use crate::kir::{BinaryOp, Builder, UnaryOp, Value};

/// Returns `None` if this file does not lower the function, or not with this many arguments.
pub(super) fn numeric(b: &mut Builder, fun: F, args: &[Shaped<'_>]) -> Option<Vec<Value>> {
    Some(match (fun, args) {
        (F::Abs, &[x]) => each(b, [x], &abs),
        (F::Sign, &[x]) => each(b, [x], &sign),
        (F::Min, &[x, y]) => each_binary(b, BinaryOp::Min, x, y),
        (F::Max, &[x, y]) => each_binary(b, BinaryOp::Max, x, y),
        (F::Clamp, &[x, low, high]) => each(b, [x, low, high], &clamp),
        (F::Saturate, &[x]) => each(b, [x], &saturate),
        (F::Radians, &[x]) => scale(b, x, std::f64::consts::PI / 180.0),
        (F::Degrees, &[x]) => scale(b, x, 180.0 / std::f64::consts::PI),
        (F::Atan2, &[y, x]) => each_binary(b, BinaryOp::Atan2, y, x),
        (F::Pow, &[x, y]) => each_binary(b, BinaryOp::Pow, x, y),
        (F::Ldexp, &[x, exponent]) => each_binary(b, BinaryOp::Ldexp, x, exponent),
        (F::Frexp, &[x]) => frexp(b, x),
        (F::Modf, &[x]) => modf(b, x),
        (F::Fma, &[x, y, z]) => each(b, [x, y, z], &|b, [x, y, z]| b.fma(x, y, z)),
        (F::Mix, &[x, y, share]) => each(b, [x, y, share], &mix),
        (F::Step, &[edge, x]) => each(b, [edge, x], &step),
        (F::SmoothStep, &[low, high, x]) => each(b, [low, high, x], &smoothstep),
        _ => return None,
    })
}

/// The absolute value of an unsigned number is the number.
fn abs(b: &mut Builder, [x]: [Value; 1]) -> Value {
    let ty = b.ty(x);
    if ty.is_float() || ty.is_signed() { b.unary(UnaryOp::Abs, x) } else { x }
}

fn sign(b: &mut Builder, [x]: [Value; 1]) -> Value {
    let ty = b.ty(x);
    if ty.is_float() || ty.is_signed() {
        return b.unary(UnaryOp::Sign, x);
    }
    let one = number(b, ty, 1.0);
    b.binary(BinaryOp::Min, x, one)
}

/// If `low > high`, the result is `high`, as WGSL defines for integers.
fn clamp(b: &mut Builder, [x, low, high]: [Value; 3]) -> Value {
    let raised = b.binary(BinaryOp::Max, x, low);
    b.binary(BinaryOp::Min, raised, high)
}

fn saturate(b: &mut Builder, [x]: [Value; 1]) -> Value {
    clamp_to(b, x, 0.0, 1.0)
}

/// Clamps between two constants.
pub(super) fn clamp_to(b: &mut Builder, x: Value, low: f64, high: f64) -> Value {
    let ty = b.ty(x);
    let bounds = [number(b, ty, low), number(b, ty, high)];
    clamp(b, [x, bounds[0], bounds[1]])
}

fn scale(b: &mut Builder, x: Shaped<'_>, factor: f64) -> Vec<Value> {
    each(b, [x], &|b, [x]| {
        let factor = number(b, b.ty(x), factor);
        b.binary(BinaryOp::Mul, x, factor)
    })
}

fn frexp(b: &mut Builder, x: Shaped<'_>) -> Vec<Value> {
    let mut parts = each_unary(b, UnaryOp::FrexpFraction, x);
    parts.extend(each_unary(b, UnaryOp::FrexpExponent, x));
    parts
}

fn modf(b: &mut Builder, x: Shaped<'_>) -> Vec<Value> {
    let whole = each_unary(b, UnaryOp::Trunc, x);
    let wholes = Shaped { values: &whole, ..x };
    let mut parts = each_binary(b, BinaryOp::Sub, x, wholes);
    parts.extend(whole);
    parts
}

/// `x * (1 - share) + y * share`: exactly `x` at 0 and `y` at 1.
fn mix(b: &mut Builder, [x, y, share]: [Value; 3]) -> Value {
    let one = number(b, b.ty(share), 1.0);
    let rest = b.binary(BinaryOp::Sub, one, share);
    let second = b.binary(BinaryOp::Mul, y, share);
    b.fma(x, rest, second)
}

fn step(b: &mut Builder, [edge, x]: [Value; 2]) -> Value {
    let ty = b.ty(x);
    let reached = b.binary(BinaryOp::Le, edge, x);
    let (one, zero) = (number(b, ty, 1.0), number(b, ty, 0.0));
    b.select(reached, one, zero)
}

/// `t * t * (3 - 2 * t)`, where `t` goes from 0 to 1 as `x` goes from `low` to `high`.
fn smoothstep(b: &mut Builder, [low, high, x]: [Value; 3]) -> Value {
    let ty = b.ty(x);
    let travelled = b.binary(BinaryOp::Sub, x, low);
    let distance = b.binary(BinaryOp::Sub, high, low);
    let ratio = b.binary(BinaryOp::Div, travelled, distance);
    let t = saturate(b, [ratio]);
    let (minus_two, three) = (number(b, ty, -2.0), number(b, ty, 3.0));
    let weight = b.fma(minus_two, t, three);
    let square = b.binary(BinaryOp::Mul, t, t);
    b.binary(BinaryOp::Mul, square, weight)
}
