//! Geometric functions.

use naga::MathFunction as F;

use crate::kir::lower::componentwise::{
    map_binary, map_components, numeric_constant, sum_of_products,
};
use crate::kir::lower::shape::{Shape, Shaped};
use crate::kir::{BinaryOp, Builder, UnaryOp, Value};

/// Lowers a geometric function; returns `None` for other functions and arguments.
pub(super) fn geometry(b: &mut Builder, fun: F, args: &[Shaped<'_>]) -> Option<Vec<Value>> {
    match (fun, args) {
        (F::Dot, &[x, y]) => Some(vec![dot(b, x, y)?]),
        (F::Cross, &[x, y]) => Some(cross(b, components_3(x)?, components_3(y)?).to_vec()),
        (F::Length, &[x]) => Some(vec![length(b, x)?]),
        (F::Distance, &[x, y]) => {
            let values = map_binary(b, BinaryOp::Sub, x, y);
            Some(vec![length(b, Shaped { values: &values, ..x })?])
        }
        (F::Normalize, &[x]) => normalize(b, x),
        (F::FaceForward, &[x, incident, normal]) => face_forward(b, x, incident, normal),
        (F::Reflect, &[incident, normal]) => reflect(b, incident, normal),
        (F::Refract, &[incident, normal, ratio]) => refract(b, incident, normal, ratio),
        _ => None,
    }
}

fn components_3(x: Shaped<'_>) -> Option<[Value; 3]> {
    x.values.try_into().ok()
}

fn dot(b: &mut Builder, x: Shaped<'_>, y: Shaped<'_>) -> Option<Value> {
    sum_of_products(b, &mut x.values.iter().zip(y.values))
}

/// Emits a cross product without `Fma`, so that the result is zero for parallel vectors, unless a
/// backend contracts the operations.
pub(super) fn cross(b: &mut Builder, x: [Value; 3], y: [Value; 3]) -> [Value; 3] {
    let mut component =
        |i: usize, j: usize| unfused_difference_of_products(b, [x[i], y[j]], [x[j], y[i]]);
    [component(1, 2), component(2, 0), component(0, 1)]
}

/// Emits `x[0] * x[1] - y[0] * y[1]` without `Fma`: both products are rounded, unless a backend
/// contracts the operations.
pub(super) fn unfused_difference_of_products(
    b: &mut Builder,
    x: [Value; 2],
    y: [Value; 2],
) -> Value {
    let x = b.binary(BinaryOp::Mul, x[0], x[1]);
    let y = b.binary(BinaryOp::Mul, y[0], y[1]);
    b.binary(BinaryOp::Sub, x, y)
}

fn length(b: &mut Builder, x: Shaped<'_>) -> Option<Value> {
    if let Shape::Scalar(_) = x.shape {
        return Some(b.unary(UnaryOp::Abs, *x.values.first()?));
    }
    let square = dot(b, x, x)?;
    Some(b.unary(UnaryOp::Sqrt, square))
}

fn normalize(b: &mut Builder, x: Shaped<'_>) -> Option<Vec<Value>> {
    let square = dot(b, x, x)?;
    let factor = b.unary(UnaryOp::InverseSqrt, square);
    Some(map_components(b, [x], &|b, [x]| b.binary(BinaryOp::Mul, x, factor)))
}

/// Emits `x` if the incident vector points against the normal, else `-x`.
fn face_forward(
    b: &mut Builder,
    x: Shaped<'_>,
    incident: Shaped<'_>,
    normal: Shaped<'_>,
) -> Option<Vec<Value>> {
    let cosine = dot(b, incident, normal)?;
    let zero = numeric_constant(b, b.ty(cosine), 0.0);
    let against = b.binary(BinaryOp::Lt, cosine, zero);
    Some(map_components(b, [x], &|b, [x]| {
        let opposite = b.unary(UnaryOp::Neg, x);
        b.select(against, x, opposite)
    }))
}

/// Emits `incident - 2 * dot(normal, incident) * normal`.
fn reflect(b: &mut Builder, incident: Shaped<'_>, normal: Shaped<'_>) -> Option<Vec<Value>> {
    let cosine = dot(b, normal, incident)?;
    let minus_two = numeric_constant(b, b.ty(cosine), -2.0);
    let factor = b.binary(BinaryOp::Mul, minus_two, cosine);
    Some(map_components(b, [incident, normal], &|b, [incident, normal]| {
        b.fma(factor, normal, incident)
    }))
}

/// Emits `ratio * incident - (ratio * cosine + sqrt(k)) * normal`, where the cosine is `dot(normal,
/// incident)` and `k = 1 - ratio * ratio * (1 - cosine * cosine)`; zero if `k < 0` (total internal
/// reflection).
fn refract(
    b: &mut Builder,
    incident: Shaped<'_>,
    normal: Shaped<'_>,
    ratio: Shaped<'_>,
) -> Option<Vec<Value>> {
    let (cosine, ratio) = (dot(b, normal, incident)?, *ratio.values.first()?);
    let zero = numeric_constant(b, b.ty(cosine), 0.0);
    let k = refracted_cosine_squared(b, cosine, ratio);
    let reflected = b.binary(BinaryOp::Lt, k, zero);
    let root = b.unary(UnaryOp::Sqrt, k);
    let along_normal = b.fma(ratio, cosine, root);
    Some(map_components(b, [incident, normal], &|b, [incident, normal]| {
        let x = b.binary(BinaryOp::Mul, ratio, incident);
        let y = b.binary(BinaryOp::Mul, along_normal, normal);
        let refracted = b.binary(BinaryOp::Sub, x, y);
        b.select(reflected, zero, refracted)
    }))
}

/// Emits the square of the cosine of the refracted direction, negative for total internal
/// reflection.
fn refracted_cosine_squared(b: &mut Builder, cosine: Value, ratio: Value) -> Value {
    let one = numeric_constant(b, b.ty(cosine), 1.0);
    let square = b.binary(BinaryOp::Mul, cosine, cosine);
    let sine_squared = b.binary(BinaryOp::Sub, one, square);
    let ratio_squared = b.binary(BinaryOp::Mul, ratio, ratio);
    let refracted_sine_squared = b.binary(BinaryOp::Mul, ratio_squared, sine_squared);
    b.binary(BinaryOp::Sub, one, refracted_sine_squared)
}
