//! Errors in units in the last place, relative to the functions on `f64`.

use super::samples;
use crate::math::{self, f64 as double};

/// Returns the distance from an exact value, in units in the last place of `f32`.
fn ulps(got: f32, want: f64) -> f64 {
    let rounded = want as f32;
    if rounded.is_infinite() || rounded.is_nan() || got.is_nan() {
        let same = got == rounded || (got.is_nan() && rounded.is_nan());
        // Just below the overflow threshold, the largest finite number is accurate as well.
        let near = got.abs() == f32::MAX && want.abs() < 3.402_824e38 && got * rounded > 0.0;
        return if same {
            0.0
        } else if near {
            1.0
        } else {
            f64::INFINITY
        };
    }
    if got.is_infinite() {
        return if want.abs() > 3.402_823e38 { 1.0 } else { f64::INFINITY };
    }
    let exponent = want.abs().max(f64::from(f32::MIN_POSITIVE)).log2().floor();
    (f64::from(got) - want).abs() / 2f64.powf(exponent - 23.0)
}

/// Returns the maximum error of a function, and its argument.
fn worst<A: Copy>(
    ours: impl Fn(A) -> f32,
    exact: impl Fn(A) -> f64,
    arguments: impl Iterator<Item = A>,
) -> (f64, Option<A>) {
    arguments.fold((-1.0, None), |worst, x| {
        let error = ulps(ours(x), exact(x));
        if error > worst.0 { (error, Some(x)) } else { worst }
    })
}

#[track_caller]
fn check(name: &str, ours: fn(f32) -> f32, exact: fn(f64) -> f64, range: f32, allowed: f64) {
    let in_range = |x: &f32| x.abs() <= range;
    let near = samples(6).map(|x| x.fract() * range.min(100.0));
    let arguments = samples(5).chain(near).filter(in_range);
    let (error, x) = worst(ours, |x| exact(x.into()), arguments);
    println!("{name}: {error:.3} ULP at {x:?}");
    assert!(error <= allowed, "{name}({x:?}) is {error} ULP off, allowed are {allowed}");
}

const EVERYWHERE: f32 = f32::INFINITY;

#[test]
fn powers_and_logarithms() {
    check("exp", math::exp, double::exp, EVERYWHERE, 1.0);
    check("exp2", math::exp2, double::exp2, EVERYWHERE, 1.0);
    check("log", math::log, double::log, EVERYWHERE, 0.8);
    check("log2", math::log2, double::log2, EVERYWHERE, 1.5);
    check("inverse_sqrt", math::inverse_sqrt, double::inverse_sqrt, EVERYWHERE, 1.5);
}

#[test]
fn angles() {
    check("sin", math::sin, double::sin, 1e9, 1.5);
    check("cos", math::cos, double::cos, 1e9, 1.5);
    check("tan", math::tan, double::tan, 1e9, 3.5);
}

#[test]
fn inverse_angles() {
    check("asin", math::asin, double::asin, EVERYWHERE, 2.3);
    check("acos", math::acos, double::acos, EVERYWHERE, 2.0);
    check("atan", math::atan, double::atan, EVERYWHERE, 1.5);
}

#[test]
fn hyperbolic_functions() {
    check("sinh", math::sinh, double::sinh, EVERYWHERE, 1.6);
    check("cosh", math::cosh, double::cosh, EVERYWHERE, 1.3);
    check("tanh", math::tanh, double::tanh, EVERYWHERE, 1.3);
    check("asinh", math::asinh, double::asinh, EVERYWHERE, 0.51);
    check("acosh", math::acosh, double::acosh, EVERYWHERE, 0.51);
    check("atanh", math::atanh, double::atanh, EVERYWHERE, 0.51);
}

/// Pairs of any magnitude, and pairs near 1.
fn pairs() -> impl Iterator<Item = (f32, f32)> {
    let any = samples(7).zip(samples(8).map(|x| x.fract() * 100.0));
    let wild = samples(9).zip(samples(10).collect::<Vec<_>>().into_iter().rev());
    let near_one = samples(11).zip(samples(12)).map(|(x, y)| (1.0 + x.fract() * 0.01, y));
    any.chain(wild).chain(near_one)
}

#[test]
fn functions_of_two() {
    let (error, at) = worst(
        |(x, y)| math::pow(x, y),
        |(x, y): (f32, f32)| double::pow(x.into(), y.into()),
        pairs(),
    );
    println!("pow: {error:.3} ULP at {at:?}");
    assert!(error <= 0.51, "pow of {at:?} is {error} ULP off");
    let (error, at) = worst(
        |(y, x)| math::atan2(y, x),
        |(y, x): (f32, f32)| double::atan2(y.into(), x.into()),
        pairs(),
    );
    println!("atan2: {error:.3} ULP at {at:?}");
    assert!(error <= 1.5, "atan2 of {at:?} is {error} ULP off");
}
