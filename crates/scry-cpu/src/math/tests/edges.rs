//! Tests of special cases: zeros, infinities, NaN, and limits of domains.

use std::f32::consts::{FRAC_PI_2, PI};

use super::same;
use crate::math;

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

/// A function, its name, and arguments with expected results.
type Case = (&'static str, fn(f32) -> f32, &'static [(f32, f32)]);

const CASES: [Case; 18] = [
    (
        "exp",
        math::exp,
        &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (89.0, INF), (-105.0, 0.0)],
    ),
    (
        "exp2",
        math::exp2,
        &[
            (3.0, 8.0),
            (127.0, 1.701_411_8e38),
            (128.0, INF),
            (-149.0, 1e-45),
            (-INF, 0.0),
            (INF, INF),
        ],
    ),
    (
        "log",
        math::log,
        &[(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, INF)],
    ),
    ("log2", math::log2, &[(8.0, 3.0), (1e-45, -149.0), (0.0, -INF), (-1e-45, NAN), (INF, INF)]),
    ("inverse_sqrt", math::inverse_sqrt, &[(4.0, 0.5), (0.0, INF), (INF, 0.0), (-1.0, NAN)]),
    ("sin", math::sin, &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (1e-45, 1e-45)]),
    ("cos", math::cos, &[(0.0, 1.0), (-0.0, 1.0), (-INF, NAN)]),
    ("tan", math::tan, &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN)]),
    (
        "asin",
        math::asin,
        &[
            (0.0, 0.0),
            (-0.0, -0.0),
            (1.0, FRAC_PI_2),
            (-1.0, -FRAC_PI_2),
            (1.000_000_1, NAN),
            (-INF, NAN),
        ],
    ),
    (
        "acos",
        math::acos,
        &[(1.0, 0.0), (-1.0, PI), (0.0, FRAC_PI_2), (-1.000_000_1, NAN), (INF, NAN)],
    ),
    ("atan", math::atan, &[(0.0, 0.0), (-0.0, -0.0), (INF, FRAC_PI_2), (-INF, -FRAC_PI_2)]),
    ("sinh", math::sinh, &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (90.0, INF)]),
    ("cosh", math::cosh, &[(0.0, 1.0), (INF, INF), (-INF, INF), (-90.0, INF)]),
    ("tanh", math::tanh, &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (100.0, 1.0)]),
    ("asinh", math::asinh, &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)]),
    ("acosh", math::acosh, &[(1.0, 0.0), (0.999_999_9, NAN), (-INF, NAN), (INF, INF)]),
    (
        "atanh",
        math::atanh,
        &[(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.000_000_1, NAN), (-INF, NAN)],
    ),
    ("fract", math::fract, &[(INF, NAN), (-0.25, 0.75), (-1e-45, 1.0)]),
];

#[test]
fn special_cases_of_unary_functions() {
    for (name, function, cases) in CASES {
        for (x, want) in cases {
            let got = function(*x);
            assert!(same(got, *want), "{name}({x:?}) is {got:?}, not {want:?}");
        }
        assert!(function(NAN).is_nan(), "{name}(NaN) is {}", function(NAN));
        assert!(function(-NAN).is_nan(), "{name}(-NaN) is {}", function(-NAN));
    }
}

#[test]
fn atan2_at_axes_and_infinities() {
    let values = [0.0, -0.0, 1.0, -1.0, 2.0, f32::MAX, f32::MIN_POSITIVE, 1e-45, INF, -INF, NAN];
    for y in values {
        for x in values {
            let want = f64::from(y).atan2(f64::from(x)) as f32;
            let got = math::atan2(y, x);
            let near = (got - want).abs() <= 1e-6 * want.abs();
            let is_right = if want.is_nan() { got.is_nan() } else { near };
            assert!(is_right, "atan2({y:?}, {x:?}) is {got:?}, not {want:?}");
            assert!(want.is_nan() || got.is_sign_negative() == want.is_sign_negative());
        }
    }
}

#[test]
fn special_cases_of_pow() {
    let values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -2.0,
        3.0,
        -3.0,
        0.5,
        -0.5,
        1e-45,
        -1e-45,
        16_777_217.0,
        -8_388_609.0,
        f32::MAX,
        INF,
        -INF,
        NAN,
    ];
    for x in values {
        for y in values {
            let want = f64::from(x).powf(f64::from(y)) as f32;
            let got = math::pow(x, y);
            assert!(same(got, want), "pow({x:?}, {y:?}) is {got:?}, not {want:?}");
        }
    }
}

#[test]
fn sine_and_cosine_stay_within_one() {
    for x in super::samples(4).filter(|x| x.is_finite()) {
        assert!(math::sin(x).abs() <= 1.0 && math::cos(x).abs() <= 1.0, "of {x:e}");
    }
}
