//! Floats of every width: operations whose results are exact, and others with their tolerance.

use scry_gpu::DeviceInfo;

use crate::Cases;
use crate::case::ExpectedValue;
use crate::ty::{FLOATS, Ty};
use crate::typed::{Operands, Row, expressions, for_types};

/// Small multiples of 1/8: their sums and quotients by powers of two are exact in all types, and
/// so are most of their products.
fn operands(ty: Ty) -> Operands {
    let values: Vec<f64> = [
        0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.5, 0.125, -0.125, 0.875, -0.875, 7.25,
        -7.75, 10.0, -12.0, 15.5, -15.5, 16.0, 31.75, -31.75, 2.0, -2.0, 3.0, -3.0, 4.0, -8.0,
        0.75, -5.25, 6.125,
    ]
    .to_vec();
    let first = values.iter().map(|value| ty.nearest(*value)).collect();
    let second = values.iter().rev().map(|value| ty.nearest(value + 0.25)).collect();
    let third = (0..32).map(|i| i % 9).collect();
    Operands { ty, first, second, third }
}

/// Creates a row that expects the exact value if `ty` represents it, otherwise within 1 ULP.
fn exact_or_nearest(
    ty: Ty,
    expression: impl Into<String>,
    oracle: impl Fn(f64, f64, u32) -> f64 + 'static,
) -> Row {
    Row::new(expression, ty, move |a, b, s| {
        let value = oracle(ty.float(a), ty.float(b), s);
        let is_exact = ty.float(ty.nearest(value)) == value;
        if is_exact { ExpectedValue::Number(value) } else { ExpectedValue::WithinUlps(value, 1.0) }
    })
}

fn condition(ty: Ty, expression: &str, oracle: impl Fn(f64, f64) -> bool + 'static) -> Row {
    Row::condition(expression, move |a, b| oracle(ty.float(a), ty.float(b)))
}

fn arithmetic(ty: Ty) -> Vec<Row> {
    vec![
        exact_or_nearest(ty, "a + b", |a, b, _| a + b),
        exact_or_nearest(ty, "a - b", |a, b, _| a - b),
        exact_or_nearest(ty, "a * b", move |a, b, _| a * b),
        exact_or_nearest(ty, "-a", |a, _, _| -a),
        exact_or_nearest(ty, "abs(a)", |a, _, _| a.abs()),
        exact_or_nearest(ty, "sign(a)", |a, _, _| if a == 0.0 { 0.0 } else { a.signum() }),
        exact_or_nearest(ty, "floor(a)", |a, _, _| a.floor()),
        exact_or_nearest(ty, "ceil(a)", |a, _, _| a.ceil()),
        exact_or_nearest(ty, "round(a)", |a, _, _| a.round_ties_even()),
        exact_or_nearest(ty, "trunc(a)", |a, _, _| a.trunc()),
        exact_or_nearest(ty, "fract(a)", |a, _, _| a - a.floor()),
        exact_or_nearest(ty, "min(a, b)", |a, b, _| a.min(b)),
        exact_or_nearest(ty, "max(a, b)", |a, b, _| a.max(b)),
        exact_or_nearest(ty, "clamp(a, min(a, b), b)", |a, b, _| a.max(a.min(b)).min(b)),
        exact_or_nearest(ty, "saturate(a)", |a, _, _| a.clamp(0.0, 1.0)),
        exact_or_nearest(ty, "step(a, b)", |a, b, _| if a <= b { 1.0 } else { 0.0 }),
        exact_or_nearest(ty, "select(a, b, a < b)", |a, b, _| a.max(b)),
        exact_or_nearest(ty, "modf(a).fract", |a, _, _| a.fract()),
        exact_or_nearest(ty, "modf(a).whole", |a, _, _| a.trunc()),
        exact_or_nearest(ty, "frexp(a).fract", |a, _, _| fraction(a)),
        Row::new("i32(frexp(a).exp)", Ty::I32, move |a, _, _| {
            ExpectedValue::Bits(Ty::I32.wrap(exponent(ty.float(a)).into()))
        }),
        exact_or_nearest(ty, "ldexp(a, i32(s))", |a, _, s| a * 2f64.powi(s as i32)),
        exact_or_nearest(ty, "ldexp(a, -i32(s % 4u))", |a, _, s| a * 2f64.powi(-(s as i32 % 4))),
    ]
}

/// WGSL's `frexp`: a magnitude of at least 0.5 and less than 1, or zero.
fn fraction(a: f64) -> f64 {
    if a == 0.0 { 0.0 } else { a / 2f64.powi(exponent(a)) }
}

fn exponent(a: f64) -> i32 {
    if a == 0.0 { 0 } else { a.abs().log2().floor() as i32 + 1 }
}

fn comparisons(ty: Ty) -> Vec<Row> {
    vec![
        condition(ty, "a < b", |a, b| a < b),
        condition(ty, "a <= b", |a, b| a <= b),
        condition(ty, "a > b", |a, b| a > b),
        condition(ty, "a >= b", |a, b| a >= b),
        condition(ty, "a == b", |a, b| a == b),
        condition(ty, "a != b", |a, b| a != b),
        condition(ty, "a == a", |_, _| true),
        condition(ty, "all(vec2(a, b) == vec2(a, a))", |a, b| a == b),
    ]
}

/// Sums of products of integers that `f16` represents, remainders and divisions.
fn fma_dot_and_division(ty: Ty) -> Vec<Row> {
    let name = ty.name();
    vec![
        exact_or_nearest(ty, format!("fma(trunc(a), {name}(3), trunc(b))"), |a, b, _| {
            3.0 * a.trunc() + b.trunc()
        }),
        exact_or_nearest(ty, format!("fma({name}(-5), trunc(b), trunc(a))"), |a, b, _| {
            a.trunc() - 5.0 * b.trunc()
        }),
        exact_or_nearest(
            ty,
            format!("dot(vec2(trunc(a), {name}(2)), vec2({name}(3), trunc(b)))"),
            |a, b, _| 3.0 * a.trunc() + 2.0 * b.trunc(),
        ),
        exact_or_nearest(ty, format!("mix(trunc(a), trunc(b), {name}(0.5))"), |a, b, _| {
            (a.trunc() + b.trunc()) / 2.0
        }),
        // WGSL: `a - b * trunc(a / b)`.
        exact_or_nearest(ty, format!("a % {name}(2)"), |a, _, _| a % 2.0),
        exact_or_nearest(ty, format!("b % {name}(-4)"), |_, b, _| b % -4.0),
        // WGSL: within 2.5 ULP.
        Row::new(format!("a / (abs(b) + {name}(0.5))"), ty, move |a, b, _| {
            ExpectedValue::WithinUlps(ty.float(a) / (ty.float(b).abs() + 0.5), 2.5)
        }),
        Row::new(format!("{name}(3) / (abs(a) + {name}(1))"), ty, move |a, _, _| {
            ExpectedValue::WithinUlps(3.0 / (ty.float(a).abs() + 1.0), 2.5)
        }),
    ]
}

pub(crate) fn arithmetic_of_every_width(gpu: &DeviceInfo) -> Cases {
    for_types(gpu, &FLOATS, |gpu, ty| expressions(gpu, operands(ty), arithmetic(ty)))
}

pub(crate) fn comparisons_of_every_width(gpu: &DeviceInfo) -> Cases {
    for_types(gpu, &FLOATS, |gpu, ty| expressions(gpu, operands(ty), comparisons(ty)))
}

pub(crate) fn fma_dot_division_of_every_width(gpu: &DeviceInfo) -> Cases {
    for_types(gpu, &FLOATS, |gpu, ty| expressions(gpu, operands(ty), fma_dot_and_division(ty)))
}
