//! Tests of the errors of `f32` and `f16` functions. Those of `f32` are tested with approximate
//! instructions at both ends of their error bounds in the PTX ISA manual.

use std::f64::consts::PI;

use scry_ir::kir::{BinaryOp, Type, UnaryOp};

use super::semantics::{BIASES, Bias, f16_to_f64, ulp};
use super::{Function, Program, Random, acosh, compile};

/// Returns the permitted error of a result in ULP, given the argument and the exact result.
type ErrorBound = fn(f64, f64) -> f64;

/// Returns random numbers: of all magnitudes, up to 4 and 100, from 1 to 2^24 with the same share
/// for each power of two, near 1, and one whose multiple of π is hard to find.
fn arguments(count: usize) -> Vec<f32> {
    let mut random = Random(5);
    let number = |nth: usize| match nth % 5 {
        0 => f32::from_bits(random.word() as u32),
        1 => random.unit() as f32 * 4.0,
        2 => random.unit() as f32 * 100.0,
        3 => ((1.0 + random.unit()) * 2f64.powi((random.word() % 24) as i32)) as f32,
        _ => (1.0 + random.unit() * 2f64.powi(-((random.word() % 24) as i32))) as f32,
    };
    (0..count).map(number).chain([7_990_051.0]).filter(|x| x.is_finite()).collect()
}

/// The largest error of a function, its argument and its result.
#[derive(Default)]
struct Worst {
    /// As a fraction of the permitted error.
    share: f64,
    ulps: f64,
    x: f32,
    result: f64,
}

/// Finds the largest error of a function. Overflow may occur slightly early: infinity counts as the
/// successor of the largest number.
fn worst(program: &Program, exact: fn(f64) -> f64, bound: ErrorBound, range: f64) -> Worst {
    let mut worst = Worst::default();
    for x in arguments(20_000) {
        let expected = exact(x.into());
        if f64::from(x.abs()) > range
            || !expected.is_finite()
            || expected.abs() > f64::from(f32::MAX)
        {
            continue;
        }
        for bias in BIASES {
            let result = f32::from_bits(program.run([x.to_bits().into(), 0], bias) as u32);
            let result = if result.is_infinite() { 2f64.powi(128) } else { result.into() };
            let ulps = (result - expected).abs() / ulp(expected);
            let share = ulps / bound(x.into(), expected);
            worst.ulps = worst.ulps.max(ulps);
            if share > worst.share || result.is_nan() {
                let share = if result.is_nan() { f64::INFINITY } else { share };
                worst = Worst { share, x, result, ..worst };
            }
        }
    }
    worst
}

#[track_caller]
fn assert_accurate(op: UnaryOp, exact: fn(f64) -> f64, bound: ErrorBound, range: f64) {
    let program = compile(Function::One(op), Type::F32);
    let Worst { share, ulps, x, result } = worst(&program, exact, bound, range);
    println!("{op:?}: {ulps:.2} ULP, {share:.2} of what is allowed at {x:e}");
    let expected = exact(x.into());
    assert!(
        share <= 1.0,
        "{op:?}({x:e}) is {result:e}, not {expected:e}: {share} times what is allowed"
    );
}

const ANY: f64 = f64::INFINITY;

#[test]
fn roots_are_accurate() {
    assert_accurate(UnaryOp::Sqrt, f64::sqrt, |_, _| 2.5, ANY);
    assert_accurate(UnaryOp::InverseSqrt, |x| 1.0 / x.sqrt(), |_, _| 2.0, ANY);
}

/// The bound that WGSL requires: 3 ULP, plus 2 ULP times the magnitude of the exponent.
fn exponential_bound(x: f64, _: f64) -> f64 {
    3.0 + 2.0 * x.abs()
}

#[test]
fn exponentials_are_accurate() {
    assert_accurate(UnaryOp::Exp, f64::exp, exponential_bound, ANY);
    assert_accurate(UnaryOp::Exp2, f64::exp2, exponential_bound, ANY);
}

/// The bound that WGSL requires: 2^-21 for arguments in [0.5, 2], else 3 ULP.
fn logarithm_bound(x: f64, expected: f64) -> f64 {
    if (0.5..=2.0).contains(&x) { 2f64.powi(-21) / ulp(expected) } else { 3.0 }
}

#[test]
fn logarithms_are_accurate() {
    assert_accurate(UnaryOp::Log2, f64::log2, logarithm_bound, ANY);
    // The manual's bounds are 2 ULP for `lg2.approx`, and 3 ULP for its product with ln 2. In this
    // model the product of a logarithm at the first bound can slightly exceed the second.
    let bound = |x: f64, expected: f64| logarithm_bound(x, expected) * 1.12;
    assert_accurate(UnaryOp::Log, f64::ln, bound, ANY);
}

#[test]
fn trigonometric_functions_are_accurate() {
    // Beyond 2^21 the rest of the range reduction exceeds π/2 so far that the polynomial errs.
    let bound = |x: f64, _| if x.abs() < 2f64.powi(21) { 2.0 } else { 3.0 };
    assert_accurate(UnaryOp::Sin, f64::sin, bound, 8e6);
    assert_accurate(UnaryOp::Cos, f64::cos, bound, 8e6);
    assert_accurate(UnaryOp::Tan, f64::tan, |_, _| 6.0, 8e6);
    assert_accurate(UnaryOp::Asin, f64::asin, |_, _| 4.0, 1.0);
    assert_accurate(UnaryOp::Acos, f64::acos, |_, _| 4.0, 1.0);
    assert_accurate(UnaryOp::Atan, f64::atan, |_, _| 3.0, ANY);
}

#[test]
fn hyperbolic_functions_are_accurate() {
    assert_accurate(UnaryOp::Sinh, f64::sinh, |x, _| 4.0 + 1.3 * x.abs(), ANY);
    assert_accurate(UnaryOp::Cosh, f64::cosh, |x, _| 4.0 + 1.3 * x.abs(), ANY);
    assert_accurate(UnaryOp::Tanh, f64::tanh, |_, _| 4.0, ANY);
    assert_accurate(UnaryOp::Asinh, f64::asinh, |_, _| 5.0, ANY);
    assert_accurate(UnaryOp::Acosh, acosh, |_, _| 5.0, ANY);
    assert_accurate(UnaryOp::Atanh, f64::atanh, |_, _| 6.0, 1.0);
}

#[test]
fn atan2_is_accurate() {
    let program = compile(Function::Two(BinaryOp::Atan2), Type::F32);
    let (ys, mut xs) = (arguments(20_000), arguments(20_000));
    xs.rotate_left(777);
    let mut max_error: f64 = 0.0;
    for (y, x) in ys.into_iter().zip(xs) {
        let expected = f64::from(y).atan2(x.into());
        for bias in BIASES {
            let result = program.run([y.to_bits().into(), x.to_bits().into()], bias);
            let error = (f64::from(f32::from_bits(result as u32)) - expected).abs() / ulp(expected);
            assert!(error <= 5.0, "atan2({y:e}, {x:e}) is {error} ULP off");
            max_error = max_error.max(error);
        }
    }
    println!("Atan2: {max_error:.2} ULP");
}

/// WGSL requires the accuracy of `exp2(y * log2(x))`.
#[test]
fn pow_is_accurate() {
    let program = compile(Function::Two(BinaryOp::Pow), Type::F32);
    let (xs, mut ys) = (arguments(20_000), arguments(20_000));
    ys.rotate_left(778);
    for (x, y) in xs.into_iter().zip(ys) {
        let log = f64::from(x.abs()).log2();
        let log_error = logarithm_bound(x.abs().into(), log) * ulp(log);
        let products = [log - log_error, log + log_error].map(|log| f64::from(y) * log);
        let ends = products.map(f64::exp2);
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let max_exponent = products[0].abs().max(products[1].abs());
        let error = (exponential_bound(max_exponent, 0.0) + max_exponent) * ulp(high);
        if !(x > 0.0 && max_exponent < 126.0) {
            continue;
        }
        for bias in BIASES {
            let result = program.run([x.to_bits().into(), y.to_bits().into()], bias);
            let result = f64::from(f32::from_bits(result as u32));
            let is_right = low - error <= result && result <= high + error;
            assert!(is_right, "pow({x:e}, {y:e}) is {result:e}, not {low:e} to {high:e}");
        }
    }
}

#[test]
fn sine_and_cosine_stay_within_one() {
    for op in [UnaryOp::Sin, UnaryOp::Cos] {
        let program = compile(Function::One(op), Type::F32);
        let near_peaks = (-4000i16..4000).flat_map(|i| {
            let peak = (f64::from(i) * PI / 2.0) as f32;
            let steps = if i.abs() < 40 { 300 } else { 8 };
            (-steps..steps).map(move |step| f32::from_bits((peak.to_bits() as i32 + step) as u32))
        });
        for x in arguments(100_000).into_iter().chain(near_peaks).filter(|x| x.is_finite()) {
            let result = program.run([x.to_bits().into(), 0], Bias::Nearest);
            let result = f32::from_bits(result as u32);
            assert!(result.abs() <= 1.0, "{op:?}({x:e}) is {result:e}");
        }
    }
}

type Cases<const N: usize> = [(UnaryOp, fn(f64) -> f64); N];

/// Every fifth `f16`: the error is half a unit in the last place, plus that of the `f32`.
#[test]
fn f16_functions_are_accurate() {
    const CASES: Cases<18> = [
        (UnaryOp::Sqrt, f64::sqrt),
        (UnaryOp::InverseSqrt, |x| 1.0 / x.sqrt()),
        (UnaryOp::Exp, f64::exp),
        (UnaryOp::Exp2, f64::exp2),
        (UnaryOp::Log, f64::ln),
        (UnaryOp::Log2, f64::log2),
        (UnaryOp::Sin, f64::sin),
        (UnaryOp::Cos, f64::cos),
        (UnaryOp::Tan, f64::tan),
        (UnaryOp::Asin, f64::asin),
        (UnaryOp::Acos, f64::acos),
        (UnaryOp::Atan, f64::atan),
        (UnaryOp::Sinh, f64::sinh),
        (UnaryOp::Cosh, f64::cosh),
        (UnaryOp::Tanh, f64::tanh),
        (UnaryOp::Asinh, f64::asinh),
        (UnaryOp::Acosh, acosh),
        (UnaryOp::Atanh, f64::atanh),
    ];
    for (op, exact) in CASES {
        let program = compile(Function::One(op), Type::F16);
        for bits in (0..0x1_0000u64).step_by(5) {
            let x = f16_to_f64(bits);
            let expected = exact(x);
            let result = f16_to_f64(program.run([bits, 0], Bias::Nearest));
            let is_right = match expected.abs() {
                _ if expected.is_nan() => result.is_nan(),
                magnitude if magnitude > 65504.0 => {
                    result.abs() >= 65504.0 && result * expected > 0.0
                }
                magnitude => (result - expected).abs() <= f16_error_bound(magnitude),
            };
            assert!(is_right, "{op:?}({x:e}) is {result:e}, not {expected:e}");
        }
    }
}

/// Returns slightly more than half a unit in the last place of an `f16`, plus 2^-22, the error of
/// logarithms near 0.
fn f16_error_bound(magnitude: f64) -> f64 {
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(-14);
    0.503 * 2f64.powi(exponent - 10) + 2f64.powi(-22)
}
