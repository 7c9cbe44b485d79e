//! The operators and functions with WGSL's accuracy requirements.

use std::f64::consts::PI;

use super::range::{ANY, Format, Range};

/// An expression over the floats `a`, `b` and `c`, and its permitted results.
#[derive(Clone, Copy)]
pub struct Row {
    pub wgsl: &'static str,
    pub allowed: Allowed,
}

pub type Allowed = fn(Format, [Range; 3]) -> Range;

const fn case(wgsl: &'static str, allowed: Allowed) -> Row {
    Row { wgsl, allowed }
}

fn number(x: f64) -> Range {
    Range::of(x)
}

pub const OPERATORS: [Row; 8] = [
    case("a + b", |f, [a, b, _]| f.add(a, b)),
    case("a - b", |f, [a, b, _]| f.sub(a, b)),
    case("a * b", |f, [a, b, _]| f.mul(a, b)),
    case("a / b", |f, [a, b, _]| f.div(a, b)),
    case("1.0 / a", |f, [a, ..]| f.div(number(1.0), a)),
    case("a % b", remainder),
    case("-a", |_, [a, ..]| a.negated()),
    case("fma(a, b, c)", |f, [a, b, c]| f.add(f.mul(a, b), c)),
];

/// Inherited from `a - b * trunc(a / b)`.
fn remainder(f: Format, [a, b, _]: [Range; 3]) -> Range {
    let quotient = f.whole(f.div(a, b), f64::trunc);
    f.sub(a, f.mul(b, quotient))
}

pub const CHOICES: [Row; 11] = [
    case("abs(a)", |f, [a, ..]| f.correct(a.low.abs())),
    case("sign(a)", |_, [a, ..]| number(if a.low == 0.0 { 0.0 } else { a.low.signum() })),
    case("ceil(a)", |f, [a, ..]| f.whole(a, f64::ceil)),
    case("floor(a)", |f, [a, ..]| f.whole(a, f64::floor)),
    case("round(a)", |f, [a, ..]| f.whole(a, f64::round_ties_even)),
    case("trunc(a)", |f, [a, ..]| f.whole(a, f64::trunc)),
    case("min(a, b)", |f, [a, b, _]| f.min(a, b)),
    case("max(a, b)", |f, [a, b, _]| f.max(a, b)),
    case("clamp(a, min(b, c), max(b, c))", |f, [a, b, c]| {
        f.min(f.max(a, f.min(b, c)), f.max(b, c))
    }),
    case("saturate(a)", |f, [a, ..]| f.min(f.max(a, number(0.0)), number(1.0))),
    case("step(a, b)", |_, [a, b, _]| number(if a.low <= b.low { 1.0 } else { 0.0 })),
];

pub const PARTS: [Row; 7] = [
    case("fract(a)", fract),
    case("modf(a).whole", |f, [a, ..]| f.whole(a, f64::trunc)),
    case("modf(a).fract", |f, [a, ..]| f.correct(a.low.fract())),
    case("frexp(a).fract", |f, [a, ..]| {
        frexp(f, a.low).map_or(ANY, |(fraction, _)| number(fraction))
    }),
    case("f32(frexp(a).exp)", |f, [a, ..]| {
        frexp(f, a.low).map_or(ANY, |(_, exponent)| number(exponent))
    }),
    case("ldexp(a, 9)", |f, [a, ..]| f.correct(a.low * 512.0)),
    case("ldexp(a, i32(clamp(b, -12.0, 12.0)))", |f, [a, b, _]| {
        f.correct(a.low * b.low.clamp(-12.0, 12.0).trunc().exp2())
    }),
];

/// Inherited from `a - floor(a)`.
fn fract(f: Format, [a, ..]: [Range; 3]) -> Range {
    f.sub(a, f.whole(a, f64::floor))
}

/// Returns a fraction of at least 0.5 and less than 1, and its exponent; unspecified for subnormal
/// numbers.
fn frexp(f: Format, x: f64) -> Option<(f64, f64)> {
    if x == 0.0 {
        return Some((0.0, 0.0));
    }
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32 - 1022;
    (!f.is_subnormal(x)).then(|| (x / 2f64.powi(exponent), exponent.into()))
}

pub const POWERS: [Row; 8] = [
    case("sqrt(a)", |f, [a, ..]| f.sqrt(a)),
    case("inverseSqrt(a)", |f, [a, ..]| f.inverse_sqrt(a)),
    case("exp(a)", |f, [a, ..]| f.exp(a)),
    case("exp2(a)", |f, [a, ..]| f.exp2(a)),
    case("log(a)", |f, [a, ..]| f.log(a)),
    case("log2(a)", |f, [a, ..]| f.log2(a)),
    case("pow(a, b)", |f, [a, b, _]| f.exp2(f.mul(b, f.log2(a)))),
    case("pow(abs(a), 2.5)", |f, [a, ..]| f.exp2(f.mul(number(2.5), f.log2(number(a.low.abs()))))),
];

/// Sine or cosine: an absolute error from -π to π.
fn wave(f: Format, a: Range, exact: fn(f64) -> f64) -> Range {
    let error = if f.name == "f16" { 2f64.powi(-7) } else { 2f64.powi(-11) };
    match (-PI..=PI).contains(&a.low) {
        true => f.within(exact(a.low), error),
        false => ANY,
    }
}

pub const ANGLES: [Row; 9] = [
    case("sin(a)", |f, [a, ..]| wave(f, a, f64::sin)),
    case("cos(a)", |f, [a, ..]| wave(f, a, f64::cos)),
    case("tan(a)", |f, [a, ..]| f.div(wave(f, a, f64::sin), wave(f, a, f64::cos))),
    case("asin(a)", |f, [a, ..]| {
        let error = if f.name == "f16" { 3.91e-3 } else { 6.81e-5 };
        worse(f.within(a.low.asin(), error), f.atan2(a, leg(f, a)))
    }),
    case("acos(a)", |f, [a, ..]| {
        let error = if f.name == "f16" { 3.91e-3 } else { 6.77e-5 };
        worse(f.within(a.low.acos(), error), f.atan2(leg(f, a), a))
    }),
    case("atan(a)", |f, [a, ..]| {
        f.within_ulps(a.low.atan(), if f.name == "f16" { 5.0 } else { 4096.0 })
    }),
    case("atan2(a, b)", |f, [a, b, _]| f.atan2(a, b)),
    case("degrees(a)", |f, [a, ..]| times(f, a, 180.0 / PI)),
    case("radians(a)", |f, [a, ..]| times(f, a, PI / 180.0)),
];

/// The union of two accuracies; the second only where it is specified.
fn worse(absolute: Range, inherited: Range) -> Range {
    if inherited.is_any() { absolute } else { absolute.or(inherited) }
}

/// `sqrt(1.0 - a * a)`.
fn leg(f: Format, a: Range) -> Range {
    f.sqrt(f.sub(number(1.0), f.mul(a, a)))
}

/// A product with a constant, which is rounded first.
fn times(f: Format, a: Range, constant: f64) -> Range {
    f.mul(a, f.correct(constant))
}

pub const HYPERBOLIC: [Row; 6] = [
    case("sinh(a)", |f, [a, ..]| sinh(f, a)),
    case("cosh(a)", |f, [a, ..]| cosh(f, a)),
    case("tanh(a)", |f, [a, ..]| {
        worse(f.within(a.low.tanh(), 1e-5), f.div(sinh(f, a), cosh(f, a)))
    }),
    case("asinh(a)", |f, [a, ..]| f.log(f.add(a, f.sqrt(f.add(f.mul(a, a), number(1.0)))))),
    case("acosh(a)", |f, [a, ..]| f.log(f.add(a, f.sqrt(f.sub(f.mul(a, a), number(1.0)))))),
    case("atanh(a)", |f, [a, ..]| {
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
    case("dot(vec3(a, b, c), vec3(b, c, a))", |f, [a, b, c]| f.dot([a, b, c], [b, c, a])),
    case("length(a)", |f, [a, ..]| f.sqrt(f.mul(a, a))),
    case("length(vec3(a, b, c))", |f, v| f.length(v)),
    case("distance(a, b)", |f, [a, b, _]| {
        let difference = f.sub(a, b);
        f.sqrt(f.mul(difference, difference))
    }),
    case("distance(vec3(a, b, c), vec3(b, c, a))", |f, [a, b, c]| {
        f.length([f.sub(a, b), f.sub(b, c), f.sub(c, a)])
    }),
    case("normalize(vec3(a, b, c)).y", |f, v| f.div(v[1], f.length(v))),
    case("cross(vec3(a, b, c), vec3(b, c, a)).z", |f, [a, b, c]| f.sub(f.mul(a, c), f.mul(b, b))),
    case("faceForward(vec3(a, b, c), vec3(c, a, b), vec3(b, c, a)).x", |f, [a, b, c]| {
        let along = f.dot([b, c, a], [c, a, b]);
        match along {
            _ if along.high < 0.0 => a,
            _ if along.low >= 0.0 => a.negated(),
            _ => a.or(a.negated()),
        }
    }),
    case("reflect(vec3(a, b, c), vec3(b, c, a)).x", |f, [a, b, c]| {
        let twice = f.mul(number(2.0), f.dot([a, b, c], [b, c, a]));
        f.sub(a, f.mul(twice, b))
    }),
    case("refract(vec3(a, b, c), vec3(c, a, b), 0.5).x", refract),
];

/// Inherited from `z * x - (z * dot(y, x) + sqrt(k)) * y`, or zero for a negative k.
fn refract(f: Format, [a, b, c]: [Range; 3]) -> Range {
    let (z, one) = (number(0.5), number(1.0));
    let along = f.dot([c, a, b], [a, b, c]);
    let k = f.sub(one, f.mul(f.mul(z, z), f.sub(one, f.mul(along, along))));
    if k.high < 0.0 {
        return number(0.0);
    }
    let root = f.sqrt(Range { low: k.low.max(0.0), high: k.high });
    let bent = f.sub(f.mul(z, a), f.mul(f.add(f.mul(z, along), root), c));
    if k.low < 0.0 { bent.or(number(0.0)) } else { bent }
}

pub const MIXTURES: [Row; 3] = [
    case("mix(a, b, c)", mix),
    case("mix(a, b, saturate(c))", |f, [a, b, c]| mix(f, [a, b, number(c.low.clamp(0.0, 1.0))])),
    case("smoothstep(a, b, c)", smoothstep),
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
