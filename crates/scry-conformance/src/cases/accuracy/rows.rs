//! The operators and functions, each with the results that WGSL's accuracy requirements permit.

use std::f64::consts::PI;

use super::range::{ANY, Format, Range};

/// An expression over the floats `a`, `b` and `c`, and its permitted results.
#[derive(Clone, Copy)]
pub struct Row {
    pub wgsl: &'static str,
    pub allowed: Allowed,
}

/// The function that computes the permitted results. The arguments `a`, `b` and `c` are ranges of
/// one number each: `low` equals `high`.
pub type Allowed = fn(Format, [Range; 3]) -> Range;

const fn row(wgsl: &'static str, allowed: Allowed) -> Row {
    Row { wgsl, allowed }
}

fn number(x: f64) -> Range {
    Range::of(x)
}

pub const OPERATORS: [Row; 8] = [
    row("a + b", |f, [a, b, _]| f.add(a, b)),
    row("a - b", |f, [a, b, _]| f.sub(a, b)),
    row("a * b", |f, [a, b, _]| f.mul(a, b)),
    row("a / b", |f, [a, b, _]| f.div(a, b)),
    row("1.0 / a", |f, [a, ..]| f.div(number(1.0), a)),
    row("a % b", remainder),
    row("-a", |_, [a, ..]| a.negated()),
    row("fma(a, b, c)", |f, [a, b, c]| f.add(f.mul(a, b), c)),
];

/// Inherited from `a - b * trunc(a / b)`.
fn remainder(f: Format, [a, b, _]: [Range; 3]) -> Range {
    let quotient = f.rounding_function(f.div(a, b), f64::trunc);
    f.sub(a, f.mul(b, quotient))
}

pub const ROUNDING_AND_CHOICES: [Row; 11] = [
    row("abs(a)", |f, [a, ..]| f.correctly_rounded(a.low.abs())),
    row("sign(a)", |_, [a, ..]| number(if a.low == 0.0 { 0.0 } else { a.low.signum() })),
    row("ceil(a)", |f, [a, ..]| f.rounding_function(a, f64::ceil)),
    row("floor(a)", |f, [a, ..]| f.rounding_function(a, f64::floor)),
    row("round(a)", |f, [a, ..]| f.rounding_function(a, f64::round_ties_even)),
    row("trunc(a)", |f, [a, ..]| f.rounding_function(a, f64::trunc)),
    row("min(a, b)", |f, [a, b, _]| f.min(a, b)),
    row("max(a, b)", |f, [a, b, _]| f.max(a, b)),
    row("clamp(a, min(b, c), max(b, c))", |f, [a, b, c]| f.min(f.max(a, f.min(b, c)), f.max(b, c))),
    row("saturate(a)", |f, [a, ..]| f.min(f.max(a, number(0.0)), number(1.0))),
    row("step(a, b)", |_, [a, b, _]| number(if a.low <= b.low { 1.0 } else { 0.0 })),
];

pub const FLOAT_PARTS: [Row; 7] = [
    row("fract(a)", fract),
    row("modf(a).whole", |f, [a, ..]| f.rounding_function(a, f64::trunc)),
    row("modf(a).fract", |f, [a, ..]| f.correctly_rounded(a.low.fract())),
    row("frexp(a).fract", |f, [a, ..]| {
        frexp(f, a.low).map_or(ANY, |(fraction, _)| number(fraction))
    }),
    row("f32(frexp(a).exp)", |f, [a, ..]| {
        frexp(f, a.low).map_or(ANY, |(_, exponent)| number(exponent))
    }),
    row("ldexp(a, 9)", |f, [a, ..]| f.correctly_rounded(a.low * 512.0)),
    row("ldexp(a, i32(clamp(b, -12.0, 12.0)))", |f, [a, b, _]| {
        f.correctly_rounded(a.low * b.low.clamp(-12.0, 12.0).trunc().exp2())
    }),
];

/// Inherited from `a - floor(a)`.
fn fract(f: Format, [a, ..]: [Range; 3]) -> Range {
    f.sub(a, f.rounding_function(a, f64::floor))
}

/// Returns a fraction whose magnitude is at least 0.5 and less than 1, and its exponent; `None` for
/// subnormal numbers, for which they are unspecified.
fn frexp(f: Format, x: f64) -> Option<(f64, f64)> {
    if x == 0.0 {
        return Some((0.0, 0.0));
    }
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32 - 1022;
    (!f.is_subnormal(x)).then(|| (x / 2f64.powi(exponent), exponent.into()))
}

pub const POWERS: [Row; 8] = [
    row("sqrt(a)", |f, [a, ..]| f.sqrt(a)),
    row("inverseSqrt(a)", |f, [a, ..]| f.inverse_sqrt(a)),
    row("exp(a)", |f, [a, ..]| f.exp(a)),
    row("exp2(a)", |f, [a, ..]| f.exp2(a)),
    row("log(a)", |f, [a, ..]| f.log(a)),
    row("log2(a)", |f, [a, ..]| f.log2(a)),
    row("pow(a, b)", |f, [a, b, _]| f.exp2(f.mul(b, f.log2(a)))),
    row("pow(abs(a), 2.5)", |f, [a, ..]| f.exp2(f.mul(number(2.5), f.log2(number(a.low.abs()))))),
];

/// Sine or cosine: an absolute error for arguments from -π to π.
fn sine_or_cosine(f: Format, a: Range, exact: fn(f64) -> f64) -> Range {
    let error = if f.name == "f16" { 2f64.powi(-7) } else { 2f64.powi(-11) };
    match (-PI..=PI).contains(&a.low) {
        true => f.within(exact(a.low), error),
        false => ANY,
    }
}

pub const TRIGONOMETRY: [Row; 9] = [
    row("sin(a)", |f, [a, ..]| sine_or_cosine(f, a, f64::sin)),
    row("cos(a)", |f, [a, ..]| sine_or_cosine(f, a, f64::cos)),
    row("tan(a)", |f, [a, ..]| {
        f.div(sine_or_cosine(f, a, f64::sin), sine_or_cosine(f, a, f64::cos))
    }),
    row("asin(a)", |f, [a, ..]| {
        let error = if f.name == "f16" { 3.91e-3 } else { 6.81e-5 };
        either(f.within(a.low.asin(), error), f.atan2(a, cofunction(f, a)))
    }),
    row("acos(a)", |f, [a, ..]| {
        let error = if f.name == "f16" { 3.91e-3 } else { 6.77e-5 };
        either(f.within(a.low.acos(), error), f.atan2(cofunction(f, a), a))
    }),
    row("atan(a)", |f, [a, ..]| {
        f.within_ulps(a.low.atan(), if f.name == "f16" { 5.0 } else { 4096.0 })
    }),
    row("atan2(a, b)", |f, [a, b, _]| f.atan2(a, b)),
    row("degrees(a)", |f, [a, ..]| scaled(f, a, 180.0 / PI)),
    row("radians(a)", |f, [a, ..]| scaled(f, a, PI / 180.0)),
];

/// Returns the results that either of two accuracies permits; the second only where it is
/// specified.
fn either(absolute: Range, inherited: Range) -> Range {
    if inherited.is_any() { absolute } else { absolute.or(inherited) }
}

/// `sqrt(1.0 - a * a)`: the cosine of an angle whose sine is `a`, and the reverse.
fn cofunction(f: Format, a: Range) -> Range {
    f.sqrt(f.sub(number(1.0), f.mul(a, a)))
}

/// A product with a constant, which is rounded to the format first.
fn scaled(f: Format, a: Range, constant: f64) -> Range {
    f.mul(a, f.correctly_rounded(constant))
}

pub const HYPERBOLIC: [Row; 6] = [
    row("sinh(a)", |f, [a, ..]| sinh(f, a)),
    row("cosh(a)", |f, [a, ..]| cosh(f, a)),
    row("tanh(a)", |f, [a, ..]| {
        either(f.within(a.low.tanh(), 1e-5), f.div(sinh(f, a), cosh(f, a)))
    }),
    row("asinh(a)", |f, [a, ..]| f.log(f.add(a, f.sqrt(f.add(f.mul(a, a), number(1.0)))))),
    row("acosh(a)", |f, [a, ..]| f.log(f.add(a, f.sqrt(f.sub(f.mul(a, a), number(1.0)))))),
    row("atanh(a)", |f, [a, ..]| {
        let one = number(1.0);
        f.mul(f.log(f.div(f.add(one, a), f.sub(one, a))), number(0.5))
    }),
];

fn sinh(f: Format, a: Range) -> Range {
    f.mul(f.sub(f.exp(a), f.exp(a.negated())), number(0.5))
}

fn cosh(f: Format, a: Range) -> Range {
    f.mul(f.add(f.exp(a), f.exp(a.negated())), number(0.5))
}

pub const VECTORS: [Row; 10] = [
    row("dot(vec3(a, b, c), vec3(b, c, a))", |f, [a, b, c]| f.dot([a, b, c], [b, c, a])),
    row("length(a)", |f, [a, ..]| f.sqrt(f.mul(a, a))),
    row("length(vec3(a, b, c))", |f, v| f.length(v)),
    row("distance(a, b)", |f, [a, b, _]| {
        let difference = f.sub(a, b);
        f.sqrt(f.mul(difference, difference))
    }),
    row("distance(vec3(a, b, c), vec3(b, c, a))", |f, [a, b, c]| {
        f.length([f.sub(a, b), f.sub(b, c), f.sub(c, a)])
    }),
    row("normalize(vec3(a, b, c)).y", |f, v| f.div(v[1], f.length(v))),
    row("cross(vec3(a, b, c), vec3(b, c, a)).z", |f, [a, b, c]| f.sub(f.mul(a, c), f.mul(b, b))),
    row("faceForward(vec3(a, b, c), vec3(c, a, b), vec3(b, c, a)).x", |f, [a, b, c]| {
        let along = f.dot([b, c, a], [c, a, b]);
        match along {
            _ if along.high < 0.0 => a,
            _ if along.low >= 0.0 => a.negated(),
            _ => a.or(a.negated()),
        }
    }),
    row("reflect(vec3(a, b, c), vec3(b, c, a)).x", |f, [a, b, c]| {
        let twice = f.mul(number(2.0), f.dot([a, b, c], [b, c, a]));
        f.sub(a, f.mul(twice, b))
    }),
    row("refract(vec3(a, b, c), vec3(c, a, b), 0.5).x", refract),
];

/// Component x of `e3 * e1 - (e3 * dot(e2, e1) + sqrt(k)) * e2`, where e1 = (a, b, c),
/// e2 = (c, a, b), e3 = 0.5 and k = 1 - e3² (1 - dot(e2, e1)²); zero if k is negative.
fn refract(f: Format, [a, b, c]: [Range; 3]) -> Range {
    let (z, one) = (number(0.5), number(1.0));
    let along = f.dot([c, a, b], [a, b, c]);
    let k = f.sub(one, f.mul(f.mul(z, z), f.sub(one, f.mul(along, along))));
    if k.high < 0.0 {
        return number(0.0);
    }
    let root = f.sqrt(Range { low: k.low.max(0.0), high: k.high });
    let refracted = f.sub(f.mul(z, a), f.mul(f.add(f.mul(z, along), root), c));
    if k.low < 0.0 { refracted.or(number(0.0)) } else { refracted }
}

pub const INTERPOLATION: [Row; 3] = [
    row("mix(a, b, c)", mix),
    row("mix(a, b, saturate(c))", |f, [a, b, c]| mix(f, [a, b, number(c.low.clamp(0.0, 1.0))])),
    row("smoothstep(a, b, c)", smoothstep),
];

/// Inherited from `a * (1.0 - c) + b * c`.
fn mix(f: Format, [a, b, c]: [Range; 3]) -> Range {
    f.add(f.mul(a, f.sub(number(1.0), c)), f.mul(b, c))
}

/// Inherited from `t * t * (3.0 - 2.0 * t)`; any result for equal or reversed edges.
fn smoothstep(f: Format, [low, high, x]: [Range; 3]) -> Range {
    if low.low >= high.low {
        return ANY;
    }
    let part = f.div(f.sub(x, low), f.sub(high, low));
    let t = f.min(f.max(part, number(0.0)), number(1.0));
    let slope = f.sub(number(3.0), f.mul(number(2.0), t));
    f.mul(f.mul(t, t), slope)
}
