//! Errors of an `f64`, against the standard library's functions.

use scry_ir::kir::{BinaryOp, Type, UnaryOp};

use super::semantics::Push;
use super::{Function, Program, Random, acosh, program};

fn run(program: &Program, x: f64, y: f64) -> f64 {
    f64::from_bits(program.run([x.to_bits(), y.to_bits()], Push::Not))
}

/// The distance in units of the last place.
fn ulps(got: f64, want: f64) -> f64 {
    if got == want || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    let exponent = ((want.abs().to_bits() >> 52) as i32 - 1023).clamp(-1022, 1023);
    let units = (got / 2f64.powi(exponent) - want / 2f64.powi(exponent)).abs() * 2f64.powi(52);
    if units.is_nan() { f64::INFINITY } else { units }
}

/// Numbers of every size, of few binary orders, and about 1.
fn arguments(count: usize) -> impl Iterator<Item = f64> {
    let mut random = Random(7);
    (0..count).map(move |nth| match nth % 5 {
        0 => f64::from_bits(random.word()),
        1 => random.unit() * 4.0,
        2 => random.unit() * 40.0,
        3 => random.unit() * 800.0,
        _ => 1.0 + random.unit() * 2f64.powi(-((random.word() % 53) as i32)),
    })
}

#[track_caller]
fn check(op: UnaryOp, exact: fn(f64) -> f64, range: f64, allowed: f64) {
    let program = program(Function::One(op), Type::F64);
    let mut worst = (0.0, 0.0);
    for x in arguments(100_000).filter(|x| x.is_nan() || x.abs() <= range) {
        let error = ulps(run(&program, x, 0.0), exact(x));
        if error > worst.0 {
            worst = (error, x);
        }
    }
    let (error, x) = worst;
    println!("{op:?}: {error:.2} ULP at {x:e}");
    let got = run(&program, x, 0.0);
    assert!(error <= allowed, "{op:?}({x:e}) is {got:e}, not {:e}: {error} ULP", exact(x));
}

const ANY: f64 = f64::INFINITY;

#[test]
fn powers_and_roots() {
    check(UnaryOp::Sqrt, f64::sqrt, ANY, 0.0);
    check(UnaryOp::InverseSqrt, |x| 1.0 / x.sqrt(), ANY, 1.0);
    check(UnaryOp::Exp, f64::exp, ANY, 2.0);
    check(UnaryOp::Exp2, f64::exp2, ANY, 2.0);
    check(UnaryOp::Log, f64::ln, ANY, 2.0);
    check(UnaryOp::Log2, f64::log2, ANY, 2.0);
}

#[test]
fn angles() {
    check(UnaryOp::Sin, f64::sin, 1e15, 2.0);
    check(UnaryOp::Cos, f64::cos, 1e15, 2.0);
    check(UnaryOp::Tan, f64::tan, 1e15, 3.0);
    check(UnaryOp::Asin, f64::asin, ANY, 2.0);
    check(UnaryOp::Acos, f64::acos, ANY, 2.0);
    check(UnaryOp::Atan, f64::atan, ANY, 2.0);
}

#[test]
fn hyperbolic_functions() {
    check(UnaryOp::Sinh, f64::sinh, ANY, 2.0);
    check(UnaryOp::Cosh, f64::cosh, ANY, 2.0);
    check(UnaryOp::Tanh, f64::tanh, ANY, 2.0);
    // The standard library's is infinite a little early.
    check(UnaryOp::Asinh, f64::asinh, 8e307, 3.0);
    check(UnaryOp::Acosh, acosh, 1e150, 3.0);
    // The standard library's is exact above 0 only.
    check(UnaryOp::Atanh, |x| x.abs().atanh().copysign(x), ANY, 3.0);
}

#[test]
fn functions_of_two() {
    let angle = program(Function::Two(BinaryOp::Atan2), Type::F64);
    let power = program(Function::Two(BinaryOp::Pow), Type::F64);
    let (mut of_angle, mut of_power) = (0f64, 0f64);
    for (x, y) in arguments(200_000).zip(arguments(200_013).skip(13)) {
        of_angle = of_angle.max(ulps(run(&angle, x, y), x.atan2(y)));
        of_power = of_power.max(ulps(run(&power, x, y), x.powf(y)));
        // Large and small results from a base near 1.
        let base = 1.0 + (x % 1.0) / 16.0;
        let exponent = y * 100.0;
        let error = ulps(run(&power, base, exponent), base.powf(exponent));
        assert!(error <= 2.0, "pow({base:e}, {exponent:e}) is {error} ULP off");
    }
    println!("Atan2: {of_angle:.2} ULP, Pow: {of_power:.2} ULP");
    assert!(of_angle <= 2.0 && of_power <= 2.0, "{of_angle} and {of_power} ULP");
}
