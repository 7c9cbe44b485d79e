//! Component-wise functions.

use naga::MathFunction as F;

use crate::kir::lower::componentwise::{map_binary, map_components, map_unary, numeric_constant};
use crate::kir::lower::shape::Shaped;
use crate::kir::{BinaryOp, Builder, UnaryOp, Value};

/// Lowers a component-wise function; returns `None` for other functions and numbers of arguments.
pub(super) fn numeric(b: &mut Builder, fun: F, args: &[Shaped<'_>]) -> Option<Vec<Value>> {
    Some(match (fun, args) {
        (F::Abs, &[x]) => map_components(b, [x], &abs),
        (F::Sign, &[x]) => map_components(b, [x], &sign),
        (F::Min, &[x, y]) => map_binary(b, BinaryOp::Min, x, y),
        (F::Max, &[x, y]) => map_binary(b, BinaryOp::Max, x, y),
        (F::Clamp, &[x, low, high]) => map_components(b, [x, low, high], &clamp),
        (F::Saturate, &[x]) => map_components(b, [x], &saturate),
        (F::Radians, &[x]) => scale(b, x, std::f64::consts::PI / 180.0),
        (F::Degrees, &[x]) => scale(b, x, 180.0 / std::f64::consts::PI),
        (F::Atan2, &[y, x]) => map_binary(b, BinaryOp::Atan2, y, x),
        (F::Pow, &[x, y]) => map_binary(b, BinaryOp::Pow, x, y),
        (F::Ldexp, &[x, exponent]) => map_binary(b, BinaryOp::Ldexp, x, exponent),
        (F::Frexp, &[x]) => frexp(b, x),
        (F::Modf, &[x]) => modf(b, x),
        (F::Fma, &[x, y, z]) => map_components(b, [x, y, z], &|b, [x, y, z]| b.fma(x, y, z)),
        (F::Mix, &[x, y, weight]) => map_components(b, [x, y, weight], &mix),
        (F::Step, &[edge, x]) => map_components(b, [edge, x], &step),
        (F::SmoothStep, &[low, high, x]) => map_components(b, [low, high, x], &smoothstep),
        _ => return None,
    })
}

/// Emits the absolute value; that of an unsigned number is the number itself.
fn abs(b: &mut Builder, [x]: [Value; 1]) -> Value {
    let ty = b.ty(x);
    if ty.is_float() || ty.is_signed() { b.unary(UnaryOp::Abs, x) } else { x }
}

fn sign(b: &mut Builder, [x]: [Value; 1]) -> Value {
    let ty = b.ty(x);
    if ty.is_float() || ty.is_signed() {
        return b.unary(UnaryOp::Sign, x);
    }
    let one = numeric_constant(b, ty, 1.0);
    b.binary(BinaryOp::Min, x, one)
}

/// Emits `min(max(x, low), high)`: if `low > high`, the result is `high`, as WGSL defines for
/// integers.
fn clamp(b: &mut Builder, [x, low, high]: [Value; 3]) -> Value {
    let at_least_low = b.binary(BinaryOp::Max, x, low);
    b.binary(BinaryOp::Min, at_least_low, high)
}

fn saturate(b: &mut Builder, [x]: [Value; 1]) -> Value {
    clamp_to(b, x, 0.0, 1.0)
}

/// Emits a clamp between two constants.
pub(super) fn clamp_to(b: &mut Builder, x: Value, low: f64, high: f64) -> Value {
    let ty = b.ty(x);
    let bounds = [numeric_constant(b, ty, low), numeric_constant(b, ty, high)];
    clamp(b, [x, bounds[0], bounds[1]])
}

fn scale(b: &mut Builder, x: Shaped<'_>, factor: f64) -> Vec<Value> {
    map_components(b, [x], &|b, [x]| {
        let factor = numeric_constant(b, b.ty(x), factor);
        b.binary(BinaryOp::Mul, x, factor)
    })
}

fn frexp(b: &mut Builder, x: Shaped<'_>) -> Vec<Value> {
    let mut parts = map_unary(b, UnaryOp::FrexpFraction, x);
    parts.extend(map_unary(b, UnaryOp::FrexpExponent, x));
    parts
}

fn modf(b: &mut Builder, x: Shaped<'_>) -> Vec<Value> {
    let integers = map_unary(b, UnaryOp::Trunc, x);
    let subtrahend = Shaped { values: &integers, ..x };
    let mut parts = map_binary(b, BinaryOp::Sub, x, subtrahend);
    parts.extend(integers);
    parts
}

/// Emits `x * (1 - weight) + y * weight`: if both are finite, `x` for a weight of 0 and `y` for 1.
fn mix(b: &mut Builder, [x, y, weight]: [Value; 3]) -> Value {
    let one = numeric_constant(b, b.ty(weight), 1.0);
    let x_weight = b.binary(BinaryOp::Sub, one, weight);
    let weighted_y = b.binary(BinaryOp::Mul, y, weight);
    b.fma(x, x_weight, weighted_y)
}

fn step(b: &mut Builder, [edge, x]: [Value; 2]) -> Value {
    let ty = b.ty(x);
    let reached = b.binary(BinaryOp::Le, edge, x);
    let (one, zero) = (numeric_constant(b, ty, 1.0), numeric_constant(b, ty, 0.0));
    b.select(reached, one, zero)
}

/// Emits `t * t * (3 - 2 * t)`, where `t` goes from 0 to 1 as `x` goes from `low` to `high`.
fn smoothstep(b: &mut Builder, [low, high, x]: [Value; 3]) -> Value {
    let ty = b.ty(x);
    let offset = b.binary(BinaryOp::Sub, x, low);
    let width = b.binary(BinaryOp::Sub, high, low);
    let ratio = b.binary(BinaryOp::Div, offset, width);
    let t = saturate(b, [ratio]);
    let (minus_two, three) = (numeric_constant(b, ty, -2.0), numeric_constant(b, ty, 3.0));
    let weight = b.fma(minus_two, t, three);
    let square = b.binary(BinaryOp::Mul, t, t);
    b.binary(BinaryOp::Mul, square, weight)
}
