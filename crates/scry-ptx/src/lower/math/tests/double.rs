//! Tests of the errors of `f64` functions, relative to the functions of the standard library.

use scry_ir::kir::{BinaryOp, Type, UnaryOp};

use super::semantics::Bias;
use super::{Function, Program, Random, acosh, compile};

fn run(program: &Program, x: f64, y: f64) -> f64 {
    f64::from_bits(program.run([x.to_bits(), y.to_bits()], Bias::Nearest))
}

/// Returns the error in units in the last place.
fn ulps(result: f64, expected: f64) -> f64 {
    if result == expected || (result.is_nan() && expected.is_nan()) {
        return 0.0;
    }
    let exponent = ((expected.abs().to_bits() >> 52) as i32 - 1023).clamp(-1022, 1023);
    let units =
        (result / 2f64.powi(exponent) - expected / 2f64.powi(exponent)).abs() * 2f64.powi(52);
    if units.is_nan() { f64::INFINITY } else { units }
}

/// Returns random numbers: of all magnitudes, up to 4, 40 and 800, and near 1.
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
fn assert_accurate(op: UnaryOp, exact: fn(f64) -> f64, range: f64, max_error: f64) {
    let program = compile(Function::One(op), Type::F64);
    let mut worst = (0.0, 0.0);
    for x in arguments(100_000).filter(|x| x.is_nan() || x.abs() <= range) {
        let error = ulps(run(&program, x, 0.0), exact(x));
        if error > worst.0 {
            worst = (error, x);
        }
    }
    let (error, x) = worst;
    println!("{op:?}: {error:.2} ULP at {x:e}");
    let result = run(&program, x, 0.0);
    assert!(error <= max_error, "{op:?}({x:e}) is {result:e}, not {:e}: {error} ULP", exact(x));
}

const ANY: f64 = f64::INFINITY;

#[test]
fn powers_roots_and_logarithms_are_accurate() {
    assert_accurate(UnaryOp::Sqrt, f64::sqrt, ANY, 0.0);
    assert_accurate(UnaryOp::InverseSqrt, |x| 1.0 / x.sqrt(), ANY, 1.0);
    assert_accurate(UnaryOp::Exp, f64::exp, ANY, 2.0);
    assert_accurate(UnaryOp::Exp2, f64::exp2, ANY, 2.0);
    assert_accurate(UnaryOp::Log, f64::ln, ANY, 2.0);
    assert_accurate(UnaryOp::Log2, f64::log2, ANY, 2.0);
}

#[test]
fn trigonometric_functions_are_accurate() {
    assert_accurate(UnaryOp::Sin, f64::sin, 1e15, 2.0);
    assert_accurate(UnaryOp::Cos, f64::cos, 1e15, 2.0);
    assert_accurate(UnaryOp::Tan, f64::tan, 1e15, 3.0);
    assert_accurate(UnaryOp::Asin, f64::asin, ANY, 2.0);
    assert_accurate(UnaryOp::Acos, f64::acos, ANY, 2.0);
    assert_accurate(UnaryOp::Atan, f64::atan, ANY, 2.0);
}

#[test]
fn hyperbolic_functions_are_accurate() {
    assert_accurate(UnaryOp::Sinh, f64::sinh, ANY, 2.0);
    assert_accurate(UnaryOp::Cosh, f64::cosh, ANY, 2.0);
    assert_accurate(UnaryOp::Tanh, f64::tanh, ANY, 2.0);
    // The standard library's function overflows slightly too early.
    assert_accurate(UnaryOp::Asinh, f64::asinh, 8e307, 3.0);
    assert_accurate(UnaryOp::Acosh, acosh, 1e150, 3.0);
    // The standard library's function is only accurate for positive numbers.
    assert_accurate(UnaryOp::Atanh, |x| x.abs().atanh().copysign(x), ANY, 3.0);
}

#[test]
fn atan2_and_pow_are_accurate() {
    let atan2 = compile(Function::Two(BinaryOp::Atan2), Type::F64);
    let pow = compile(Function::Two(BinaryOp::Pow), Type::F64);
    let (mut atan2_error, mut pow_error) = (0f64, 0f64);
    for (x, y) in arguments(200_000).zip(arguments(200_013).skip(13)) {
        atan2_error = atan2_error.max(ulps(run(&atan2, x, y), x.atan2(y)));
        pow_error = pow_error.max(ulps(run(&pow, x, y), x.powf(y)));
        // Large and small results from a base near 1.
        let base = 1.0 + (x % 1.0) / 16.0;
        let exponent = y * 100.0;
        let error = ulps(run(&pow, base, exponent), base.powf(exponent));
        assert!(error <= 2.0, "pow({base:e}, {exponent:e}) is {error} ULP off");
    }
    println!("Atan2: {atan2_error:.2} ULP, Pow: {pow_error:.2} ULP");
    assert!(atan2_error <= 2.0 && pow_error <= 2.0, "{atan2_error} and {pow_error} ULP");
}
