//! Errors of `f32` and `f16` functions, with approximations at both ends of the ISA's error bounds.

use std::f64::consts::PI;

use scry_ir::kir::{BinaryOp, Type, UnaryOp};

use super::semantics::{PUSHES, Push, of_half, ulp};
use super::{Function, Program, Random, acosh, program};

/// The permitted error of a result, given the argument and the exact result.
type Allowed = fn(f64, f64) -> f64;

/// Numbers of all magnitudes, near 1, and at the ends of the polynomials' ranges.
fn arguments(count: usize) -> Vec<f32> {
    let mut random = Random(5);
    let number = |nth: usize| match nth % 4 {
        0 => f32::from_bits(random.word() as u32),
        1 => random.unit() as f32 * 4.0,
        2 => random.unit() as f32 * 100.0,
        _ => (1.0 + random.unit() * 2f64.powi(-((random.word() % 24) as i32))) as f32,
    };
    (0..count).map(number).filter(|x| x.is_finite()).collect()
}

/// The largest error of a function, its argument and its result.
#[derive(Default)]
struct Worst {
    /// As a fraction of the permitted error.
    share: f64,
    ulps: f64,
    x: f32,
    got: f64,
}

/// Overflow may occur slightly early: infinity counts as the successor of the largest number.
fn worst(program: &Program, exact: fn(f64) -> f64, allowed: Allowed, range: f64) -> Worst {
    let mut worst = Worst::default();
    for x in arguments(20_000) {
        let want = exact(x.into());
        if f64::from(x.abs()) > range || !want.is_finite() || want.abs() > f64::from(f32::MAX) {
            continue;
        }
        for push in PUSHES {
            let got = f32::from_bits(program.run([x.to_bits().into(), 0], push) as u32);
            let got = if got.is_infinite() { 2f64.powi(128) } else { got.into() };
            let ulps = (got - want).abs() / ulp(want);
            let share = ulps / allowed(x.into(), want);
            worst.ulps = worst.ulps.max(ulps);
            if share > worst.share || got.is_nan() {
                let share = if got.is_nan() { f64::INFINITY } else { share };
                worst = Worst { share, x, got, ..worst };
            }
        }
    }
    worst
}

#[track_caller]
fn check(op: UnaryOp, exact: fn(f64) -> f64, allowed: Allowed, range: f64) {
    let program = program(Function::One(op), Type::F32);
    let Worst { share, ulps, x, got } = worst(&program, exact, allowed, range);
    println!("{op:?}: {ulps:.2} ULP, {share:.2} of what is allowed at {x:e}");
    let want = exact(x.into());
    assert!(share <= 1.0, "{op:?}({x:e}) is {got:e}, not {want:e}: {share} times what is allowed");
}

const ANY: f64 = f64::INFINITY;

#[test]
fn roots() {
    check(UnaryOp::Sqrt, f64::sqrt, |_, _| 2.5, ANY);
    check(UnaryOp::InverseSqrt, |x| 1.0 / x.sqrt(), |_, _| 2.0, ANY);
}

/// 3 ULP, and 2 for each 1 of the exponent, as WGSL requires.
fn of_power(x: f64, _: f64) -> f64 {
    3.0 + 2.0 * x.abs()
}

#[test]
fn powers() {
    check(UnaryOp::Exp, f64::exp, of_power, ANY);
    check(UnaryOp::Exp2, f64::exp2, of_power, ANY);
}

/// 2^-21 between a half and 2, else 3 ULP, as WGSL requires.
fn of_logarithm(x: f64, want: f64) -> f64 {
    if (0.5..=2.0).contains(&x) { 2f64.powi(-21) / ulp(want) } else { 3.0 }
}

#[test]
fn logarithms() {
    check(UnaryOp::Log2, f64::log2, of_logarithm, ANY);
    // The manual says 3 ULP of the logarithm times ln 2, but 2 ULP of the logarithm alone, which a
    // product can make a little more than 3.
    let allowed = |x: f64, want: f64| of_logarithm(x, want) * 1.12;
    check(UnaryOp::Log, f64::ln, allowed, ANY);
}

#[test]
fn angles() {
    check(UnaryOp::Sin, f64::sin, |_, _| 2.0, 8e6);
    check(UnaryOp::Cos, f64::cos, |_, _| 2.0, 8e6);
    check(UnaryOp::Tan, f64::tan, |_, _| 6.0, 8e6);
    check(UnaryOp::Asin, f64::asin, |_, _| 4.0, 1.0);
    check(UnaryOp::Acos, f64::acos, |_, _| 4.0, 1.0);
    check(UnaryOp::Atan, f64::atan, |_, _| 3.0, ANY);
}

#[test]
fn hyperbolic_functions() {
    check(UnaryOp::Sinh, f64::sinh, |x, _| 4.0 + 1.3 * x.abs(), ANY);
    check(UnaryOp::Cosh, f64::cosh, |x, _| 4.0 + 1.3 * x.abs(), ANY);
    check(UnaryOp::Tanh, f64::tanh, |_, _| 4.0, ANY);
    check(UnaryOp::Asinh, f64::asinh, |_, _| 5.0, ANY);
    check(UnaryOp::Acosh, acosh, |_, _| 5.0, ANY);
    check(UnaryOp::Atanh, f64::atanh, |_, _| 6.0, 1.0);
}

#[test]
fn angles_of_points() {
    let program = program(Function::Two(BinaryOp::Atan2), Type::F32);
    let (ys, mut xs) = (arguments(20_000), arguments(20_000));
    xs.rotate_left(777);
    let mut most: f64 = 0.0;
    for (y, x) in ys.into_iter().zip(xs) {
        let want = f64::from(y).atan2(x.into());
        for push in PUSHES {
            let got = program.run([y.to_bits().into(), x.to_bits().into()], push);
            let error = (f64::from(f32::from_bits(got as u32)) - want).abs() / ulp(want);
            assert!(error <= 5.0, "atan2({y:e}, {x:e}) is {error} ULP off");
            most = most.max(error);
        }
    }
    println!("Atan2: {most:.2} ULP");
}

/// As `exp2(y * log2(x))`, as WGSL requires.
#[test]
fn powers_of_any_base() {
    let program = program(Function::Two(BinaryOp::Pow), Type::F32);
    let (xs, mut ys) = (arguments(20_000), arguments(20_000));
    ys.rotate_left(778);
    for (x, y) in xs.into_iter().zip(ys) {
        let log = f64::from(x.abs()).log2();
        let off = of_logarithm(x.abs().into(), log) * ulp(log);
        let products = [log - off, log + off].map(|log| f64::from(y) * log);
        let ends = products.map(f64::exp2);
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let most = products[0].abs().max(products[1].abs());
        let error = (of_power(most, 0.0) + most) * ulp(high);
        if !(x > 0.0 && most < 126.0) {
            continue;
        }
        for push in PUSHES {
            let got = program.run([x.to_bits().into(), y.to_bits().into()], push);
            let got = f64::from(f32::from_bits(got as u32));
            let is_right = low - error <= got && got <= high + error;
            assert!(is_right, "pow({x:e}, {y:e}) is {got:e}, not {low:e} to {high:e}");
        }
    }
}

#[test]
fn sine_and_cosine_stay_within_one() {
    for op in [UnaryOp::Sin, UnaryOp::Cos] {
        let program = program(Function::One(op), Type::F32);
        let near_peaks = (-40i16..40).flat_map(|i| {
            let peak = (f64::from(i) * PI / 2.0) as f32;
            (-300i32..300).map(move |step| f32::from_bits((peak.to_bits() as i32 + step) as u32))
        });
        for x in arguments(100_000).into_iter().chain(near_peaks).filter(|x| x.is_finite()) {
            let got = program.run([x.to_bits().into(), 0], Push::Not);
            let got = f32::from_bits(got as u32);
            assert!(got.abs() <= 1.0, "{op:?}({x:e}) is {got:e}");
        }
    }
}

type Cases<const N: usize> = [(UnaryOp, fn(f64) -> f64); N];

/// Every `f16`: within its last place, but for what the `f32` is off.
#[test]
fn halves() {
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
        let program = program(Function::One(op), Type::F16);
        for bits in (0..0x1_0000u64).step_by(5) {
            let x = of_half(bits);
            let want = exact(x);
            let got = of_half(program.run([bits, 0], Push::Not));
            let is_right = match want.abs() {
                _ if want.is_nan() => got.is_nan(),
                size if size > 65504.0 => got.abs() >= 65504.0 && got * want > 0.0,
                size => (got - want).abs() <= half_error(size),
            };
            assert!(is_right, "{op:?}({x:e}) is {got:e}, not {want:e}");
        }
    }
}

/// Little more than half a unit in the last place of an `f16`; near 0 what logarithms are off.
fn half_error(size: f64) -> f64 {
    let exponent = ((size.to_bits() >> 52) as i32 - 1023).max(-14);
    0.503 * 2f64.powi(exponent - 10) + 2f64.powi(-22)
}
