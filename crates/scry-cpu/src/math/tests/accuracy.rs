//! Tests of accuracy: errors in units in the last place, relative to the functions on `f64`.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2, SQRT_2};

use super::samples;
use crate::math::{self, double, f64 as math64};

/// Returns the distance from an exact value, in units in the last place of `f32`.
fn ulps(got: f32, want: f64) -> f64 {
    let rounded = want as f32;
    if rounded.is_infinite() || rounded.is_nan() || got.is_nan() {
        let same = got == rounded || (got.is_nan() && rounded.is_nan());
        // Just above the overflow threshold, the largest finite number is accurate as well.
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

/// Returns the maximum error of a function, and the argument where it occurs.
fn max_error<A: Copy>(
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
fn assert_accurate(
    name: &str,
    ours: fn(f32) -> f32,
    exact: fn(f64) -> f64,
    range: f32,
    allowed: f64,
) {
    let in_range = |x: &f32| x.abs() <= range;
    let near = samples(6).map(|x| x.fract() * range.min(100.0));
    let arguments = samples(5).chain(near).filter(in_range);
    let (error, x) = max_error(ours, |x| exact(x.into()), arguments);
    println!("{name}: {error:.3} ULP at {x:?}");
    assert!(error <= allowed, "{name}({x:?}) is {error} ULP off, allowed are {allowed}");
}

const EVERYWHERE: f32 = f32::INFINITY;

#[test]
fn exp_and_log_are_accurate() {
    assert_accurate("exp", math::exp, math64::exp, EVERYWHERE, 1.0);
    assert_accurate("exp2", math::exp2, math64::exp2, EVERYWHERE, 1.0);
    assert_accurate("log", math::log, math64::log, EVERYWHERE, 0.8);
    assert_accurate("log2", math::log2, math64::log2, EVERYWHERE, 1.5);
    assert_accurate("inverse_sqrt", math::inverse_sqrt, math64::inverse_sqrt, EVERYWHERE, 1.5);
}

#[test]
fn log2_in_double_precision_is_accurate() {
    let errors = (1..100_000).map(|i| {
        let x = FRAC_1_SQRT_2 + (SQRT_2 - FRAC_1_SQRT_2) * f64::from(i) / 100_000.0;
        ((double::log2(x) - x.log2()) / x.log2()).abs()
    });
    let error = errors.fold(0.0, f64::max);
    assert!(error <= 2f64.powi(-45), "2^{}", error.log2());
}

#[test]
fn trigonometry_is_accurate() {
    assert_accurate("sin", math::sin, math64::sin, 1e9, 1.5);
    assert_accurate("cos", math::cos, math64::cos, 1e9, 1.5);
    assert_accurate("tan", math::tan, math64::tan, 1e9, 3.5);
}

/// Returns the angle in (-π, π] that is an integer number of radians, below 2^50, modulo 2π.
fn reduced(integer: u64) -> f64 {
    // 2/π in units of 2^-126: multiples wrap around at four quadrants.
    const FRAC_2_PI: u128 = 0x28be_60db_9391_054a_7f09_d5f4_7d4d_3770;
    let quadrants = FRAC_2_PI.wrapping_mul(integer.into()) as i128;
    quadrants as f64 * 2f64.powi(-126) * FRAC_PI_2
}

#[test]
fn large_angles_are_reduced_accurately() {
    for x in samples(13).map(f32::abs).filter(|x| (1e7..2f32.powi(50)).contains(x)) {
        let angle = reduced(x as u64);
        let errors = [f64::from(math::sin(x)) - angle.sin(), f64::from(math::cos(x)) - angle.cos()];
        assert!(errors.iter().all(|e| e.abs() < 1.5 * 2f64.powi(-24)), "at {x:e}: {errors:?}");
    }
}

#[test]
fn inverse_trigonometry_is_accurate() {
    assert_accurate("asin", math::asin, math64::asin, EVERYWHERE, 2.3);
    assert_accurate("acos", math::acos, math64::acos, EVERYWHERE, 2.0);
    assert_accurate("atan", math::atan, math64::atan, EVERYWHERE, 1.5);
}

#[test]
fn hyperbolic_functions_are_accurate() {
    assert_accurate("sinh", math::sinh, math64::sinh, EVERYWHERE, 1.6);
    assert_accurate("cosh", math::cosh, math64::cosh, EVERYWHERE, 1.3);
    assert_accurate("tanh", math::tanh, math64::tanh, EVERYWHERE, 1.3);
    assert_accurate("asinh", math::asinh, math64::asinh, EVERYWHERE, 0.51);
    assert_accurate("acosh", math::acosh, math64::acosh, EVERYWHERE, 0.51);
    assert_accurate("atanh", math::atanh, math64::atanh, EVERYWHERE, 0.51);
}

/// Returns pairs of any magnitude, and pairs of a number near 1 and any number.
fn pairs() -> impl Iterator<Item = (f32, f32)> {
    let any = samples(7).zip(samples(8).map(|x| x.fract() * 100.0));
    let extreme = samples(9).zip(samples(10).collect::<Vec<_>>().into_iter().rev());
    let near_one = samples(11).zip(samples(12)).map(|(x, y)| (1.0 + x.fract() * 0.01, y));
    any.chain(extreme).chain(near_one)
}

#[test]
fn pow_and_atan2_are_accurate() {
    let (error, at) = max_error(
        |(x, y)| math::pow(x, y),
        |(x, y): (f32, f32)| math64::pow(x.into(), y.into()),
        pairs(),
    );
    println!("pow: {error:.3} ULP at {at:?}");
    assert!(error <= 0.51, "pow of {at:?} is {error} ULP off");
    let (error, at) = max_error(
        |(y, x)| math::atan2(y, x),
        |(y, x): (f32, f32)| math64::atan2(y.into(), x.into()),
        pairs(),
    );
    println!("atan2: {error:.3} ULP at {at:?}");
    assert!(error <= 1.5, "atan2 of {at:?} is {error} ULP off");
}
