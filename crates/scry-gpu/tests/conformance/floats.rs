//! Floats: what is exact, what is rounded, and how far off the rest may be.

use std::f32::consts::PI;

use crate::harness::{Case, all_pairs, check_table, check_table_by};
use crate::support::random_f32;

const AS_FLOATS: &str = "let a = bitcast<f32>(x); let b = bitcast<f32>(y);";

fn pairs() -> Vec<[u32; 2]> {
    let values = [0.5, 1.0, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5, 7.25, -7.75, 1e6, -1e6, 1234.567];
    let mut pairs = all_pairs(&values.map(f32::to_bits));
    let random = random_f32(8, 400);
    pairs.extend(random.chunks(2).map(|pair| [pair[0] * 100.0, pair[1]].map(f32::to_bits)));
    pairs
}

/// An expression over the floats `a` and `b`, and its value on the host.
type FloatCase = (&'static str, fn(f32, f32) -> f32);

/// The sign of a zero is not compared: an implementation may ignore it.
fn check_floats(cases: &[FloatCase], pairs: &[[u32; 2]]) {
    let as_words = |(expression, host): &FloatCase| {
        let host = *host;
        let host = move |x, y| host(f32::from_bits(x), f32::from_bits(y)).to_bits();
        (format!("bitcast<u32>({expression})"), host)
    };
    let cases: Vec<_> = cases.iter().map(as_words).collect();
    check_table_by(AS_FLOATS, &cases, pairs, |got, want| {
        f32::from_bits(got) == f32::from_bits(want)
    });
}

#[test]
fn exact_operations() {
    const CASES: [FloatCase; 18] = [
        ("a + b", |a, b| a + b),
        ("a - b", |a, b| a - b),
        ("a * b", |a, b| a * b),
        ("-a", |a, _| -a),
        ("abs(a)", |a, _| a.abs()),
        ("floor(a)", |a, _| a.floor()),
        ("ceil(a)", |a, _| a.ceil()),
        ("trunc(a)", |a, _| a.trunc()),
        ("round(a)", |a, _| a.round_ties_even()),
        ("fract(a)", |a, _| a - a.floor()),
        ("sign(a)", |a, _| a.signum()),
        ("min(a, b)", |a, b| a.min(b)),
        ("max(a, b)", |a, b| a.max(b)),
        ("clamp(a, -1.0, 2.0)", |a, _| a.clamp(-1.0, 2.0)),
        ("saturate(a)", |a, _| a.clamp(0.0, 1.0)),
        ("step(a, b)", |a, b| if a <= b { 1.0 } else { 0.0 }),
        ("ldexp(a, 3)", |a, _| a * 8.0),
        ("select(a, b, a < b)", |a, b| a.max(b)),
    ];
    check_floats(&CASES, &pairs());
}

#[test]
fn comparisons() {
    const CASES: [Case; 6] = [
        ("u32(a < b)", |x, y| (f32::from_bits(x) < f32::from_bits(y)).into()),
        ("u32(a <= b)", |x, y| (f32::from_bits(x) <= f32::from_bits(y)).into()),
        ("u32(a > b)", |x, y| (f32::from_bits(x) > f32::from_bits(y)).into()),
        ("u32(a >= b)", |x, y| (f32::from_bits(x) >= f32::from_bits(y)).into()),
        ("u32(a == b)", |x, y| (f32::from_bits(x) == f32::from_bits(y)).into()),
        ("u32(a != b)", |x, y| (f32::from_bits(x) != f32::from_bits(y)).into()),
    ];
    let values = [0.0, -0.0, 1.0, -1.0, 1.5, f32::MAX, f32::MIN];
    let mut pairs = all_pairs(&values.map(f32::to_bits));
    pairs.extend(self::pairs());
    check_table(AS_FLOATS, &CASES, &pairs);
}

#[test]
fn remainders_have_the_sign_of_the_dividend() {
    const CASES: [FloatCase; 2] =
        [("a % b", |a, b| a % b), ("(vec2(a, 1.0) % vec2(b, 1.0)).x", |a, b| a % b)];
    // Small multiples of a quarter by powers of two: nothing is rounded on any way to the result.
    let dividends: Vec<f32> =
        (-20i8..20).filter(|i| *i % 8 != 0).map(|i| f32::from(i) / 4.0).collect();
    let pair = |a: &f32| [2.0, -2.0].map(|b: f32| [a.to_bits(), b.to_bits()]);
    let pairs: Vec<[u32; 2]> = dividends.iter().flat_map(pair).collect();
    check_floats(&CASES, &pairs);
}

#[test]
fn parts_of_floats() {
    const FLOATS: [FloatCase; 3] = [
        ("modf(a).whole", |a, _| a.trunc()),
        ("modf(a).fract", |a, _| a.fract()),
        ("ldexp(frexp(a).fract, frexp(a).exp)", |a, _| a),
    ];
    // A fraction of at least a half and less than one, and the exponent that goes with it.
    const WORDS: [Case; 2] = [
        ("bitcast<u32>(frexp(a).fract)", |x, _| x & 0x807f_ffff | 126 << 23),
        ("bitcast<u32>(frexp(a).exp)", |x, _| (x >> 23 & 255).wrapping_sub(126)),
    ];
    check_floats(&FLOATS, &pairs());
    check_table(AS_FLOATS, &WORDS, &pairs());
}

/// A function, its value in double precision, and the error that WGSL allows at a place.
struct Function {
    wgsl: &'static str,
    exact: fn(f64) -> f64,
    allowed: fn(f64, f64) -> f64,
    domain: fn(f32) -> f32,
}

/// So many units in the last place of a value.
fn ulps(count: f64, value: f64) -> f64 {
    let exponent = value.abs().max(f64::from(f32::MIN_POSITIVE)).log2().floor();
    count * (exponent - 23.0).exp2()
}

/// `domain` takes a number between -1 and 1 to where the function is tried.
const FUNCTIONS: [Function; 16] = [
    Function {
        wgsl: "1.0 / a",
        exact: |a| 1.0 / a,
        allowed: |_, v| ulps(2.5, v),
        domain: |r| r * 50.0,
    },
    Function {
        wgsl: "sqrt(a)",
        exact: f64::sqrt,
        allowed: |_, v| ulps(4.5, v),
        domain: |r| r.abs() * 100.0,
    },
    Function {
        wgsl: "inverseSqrt(a)",
        exact: |a| 1.0 / a.sqrt(),
        allowed: |_, v| ulps(2.0, v),
        domain: |r| r.abs() * 100.0,
    },
    Function {
        wgsl: "exp(a)",
        exact: f64::exp,
        allowed: |a, v| ulps(3.0 + 2.0 * a.abs(), v),
        domain: |r| r * 20.0,
    },
    Function {
        wgsl: "exp2(a)",
        exact: f64::exp2,
        allowed: |a, v| ulps(3.0 + 2.0 * a.abs(), v),
        domain: |r| r * 30.0,
    },
    Function { wgsl: "log(a)", exact: f64::ln, allowed: log_error, domain: |r| r.abs() * 10.0 },
    Function { wgsl: "log2(a)", exact: f64::log2, allowed: log_error, domain: |r| r.abs() * 10.0 },
    Function {
        wgsl: "sin(a)",
        exact: f64::sin,
        allowed: |_, _| 2f64.powi(-11),
        domain: |r| r * PI,
    },
    Function {
        wgsl: "cos(a)",
        exact: f64::cos,
        allowed: |_, _| 2f64.powi(-11),
        domain: |r| r * PI,
    },
    Function {
        wgsl: "atan(a)",
        exact: f64::atan,
        allowed: |_, v| ulps(4096.0, v),
        domain: |r| r * 10.0,
    },
    Function {
        wgsl: "asin(a)",
        exact: f64::asin,
        allowed: |_, v| ulps(4096.0, v).max(6.77e-5),
        domain: |r| r,
    },
    Function {
        wgsl: "acos(a)",
        exact: f64::acos,
        allowed: |_, v| ulps(4096.0, v).max(6.77e-5),
        domain: |r| r,
    },
    Function { wgsl: "sinh(a)", exact: f64::sinh, allowed: hyperbolic_error, domain: |r| r * 5.0 },
    Function { wgsl: "cosh(a)", exact: f64::cosh, allowed: hyperbolic_error, domain: |r| r * 5.0 },
    Function {
        wgsl: "tanh(a)",
        exact: f64::tanh,
        allowed: |a, v| hyperbolic_error(a, v).max(1e-5),
        domain: |r| r * 5.0,
    },
    Function {
        wgsl: "pow(a, 2.5)",
        exact: |a| a.powf(2.5),
        allowed: power_error,
        domain: |r| r.abs() * 10.0,
    },
];

/// 3 ULP, and 2^-21 between a half and two.
fn log_error(a: f64, value: f64) -> f64 {
    match (0.5..=2.0).contains(&a) {
        true => 2f64.powi(-21),
        false => ulps(3.0, value),
    }
}

/// By the formula in e^a and e^-a, each with the error of `exp`.
fn hyperbolic_error(a: f64, value: f64) -> f64 {
    2.0 * ulps(3.0 + 2.0 * a.abs(), a.abs().exp()) * value.abs().max(1.0) / a.cosh()
        + ulps(4.0, value)
}

/// By `exp2(2.5 * log2(a))`.
fn power_error(a: f64, value: f64) -> f64 {
    let exponent = 2.5 * a.log2();
    let shift = 2.5 * log_error(a, a.log2()) + ulps(1.0, exponent);
    value * (shift.exp2() - 1.0) + ulps(3.0 + 2.0 * exponent.abs(), value)
}

#[test]
fn functions_are_as_accurate_as_wgsl_asks() {
    for function in &FUNCTIONS {
        let words: Vec<[u32; 2]> = random_f32(9, 500)
            .into_iter()
            .map(|random| [(function.domain)(random).to_bits(), 0])
            .collect();
        let expression = format!("bitcast<u32>({})", function.wgsl);
        // The host's word is the argument: what is right depends on it.
        let is_right = |got: u32, argument: u32| {
            let argument = f64::from(f32::from_bits(argument));
            let want = (function.exact)(argument);
            let error = (f64::from(f32::from_bits(got)) - want).abs();
            error <= (function.allowed)(argument, want)
        };
        check_table_by(AS_FLOATS, &[(expression, |x: u32, _| x)], &words, is_right);
    }
}

#[test]
fn bits_of_floats_pass_through_buffers() {
    const CASES: [Case; 2] = [("x", |x, _| x), ("y", |_, y| y)];
    // NaNs with payloads, subnormals, both zeros, infinities.
    let words =
        [0x7fc0_0001, 0xffff_ffff, 0x7f80_0001, 1, 0x8000_0001, 0x8000_0000, 0x7f80_0000, 0];
    check_table("", &CASES, &all_pairs(&words));
}
