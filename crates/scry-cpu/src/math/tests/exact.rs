//! Tests of functions whose results must be exact.

use super::{SPECIAL, same, samples};
use crate::math::{self, f64 as math64};

#[track_caller]
fn assert_equal(name: &str, ours: fn(f32) -> f32, reference: fn(f32) -> f32) {
    for x in samples(1).chain(SPECIAL).chain(half_integers()) {
        let (got, want) = (ours(x), reference(x));
        assert!(same(got, want), "{name}({x:?}) is {got:?}, not {want:?}");
    }
}

/// Returns multiples of 1/2, and their neighbours.
fn half_integers() -> impl Iterator<Item = f32> {
    (-2000i16..2000).flat_map(|i| {
        let half = f32::from(i) * 0.5;
        [half, half.next_up(), half.next_down()]
    })
}

#[test]
fn rounding_matches_std() {
    assert_equal("floor", math::floor, f32::floor);
    assert_equal("ceil", math::ceil, f32::ceil);
    assert_equal("trunc", math::trunc, f32::trunc);
    assert_equal("round_even", math::round_even, f32::round_ties_even);
    assert_equal("fract", math::fract, |x| x - x.floor());
}

#[test]
fn f64_rounding_matches_std() {
    assert_equal("floor", |x| math64::floor(x.into()) as f32, f32::floor);
    assert_equal("ceil", |x| math64::ceil(x.into()) as f32, f32::ceil);
    assert_equal("trunc", |x| math64::trunc(x.into()) as f32, f32::trunc);
    assert_equal("round_even", |x| math64::round_even(x.into()) as f32, f32::round_ties_even);
}

#[test]
fn remainder_has_sign_of_dividend() {
    // Multiples of 1/4: only some quotients round, and never across an integer.
    for i in (-200i16..200).filter(|i| *i != 0) {
        for j in [-25i16, -7, -1, 1, 3, 10, 64] {
            let (x, y) = (f32::from(i) / 4.0, f32::from(j) / 4.0);
            assert_eq!(math::rem(x, y), x % y, "{x} % {y}");
            assert_eq!(math64::rem(x.into(), y.into()), f64::from(x % y), "{x} % {y}");
        }
    }
    assert!(math::rem(1.0, 0.0).is_nan() && math64::rem(1.0, 0.0).is_nan());
}

#[test]
fn sign_keeps_zero_and_nan() {
    let sign = |x: f32| if x == 0.0 || x.is_nan() { x } else { x.signum() };
    assert_equal("sign", math::sign, sign);
}

#[test]
fn min_max_prefer_numbers_to_nan() {
    for x in SPECIAL {
        for y in SPECIAL {
            // Either zero may be the minimum.
            let equal = |got: f32, want: f32| got == want || same(got, want);
            assert!(equal(math::min(x, y), x.min(y)), "min({x}, {y}) is {}", math::min(x, y));
            assert!(equal(math::max(x, y), x.max(y)), "max({x}, {y}) is {}", math::max(x, y));
        }
    }
    assert_eq!([math::min(1.0, f32::NAN), math::min(f32::NAN, 1.0)], [1.0; 2]);
    assert_eq!([math::max(1.0, f32::NAN), math::max(f32::NAN, 1.0)], [1.0; 2]);
}

/// Returns `x * 2^e`, computed in double precision and rounded once.
fn ldexp_reference(x: f32, e: i32) -> f32 {
    let half = e / 2;
    let exact = f64::from(x) * 2f64.powi(half) * 2f64.powi(e - half);
    exact as f32
}

#[test]
fn ldexp_rounds_once() {
    let exponents =
        [-400, -300, -277, -150, -127, -126, -90, -30, -24, -1, 0, 1, 30, 127, 128, 278];
    for (i, x) in samples(2).chain(SPECIAL).enumerate() {
        let e = exponents[i % exponents.len()];
        let (got, want) = (math::ldexp(x, e), ldexp_reference(x, e));
        assert!(same(got, want), "ldexp({x:e}, {e}) is {got:e}, not {want:e}");
    }
    for e in [i32::MIN, i32::MAX, -100_000, 100_000] {
        let want = if e < 0 { 0.0 } else { f32::INFINITY };
        assert_eq!([math::ldexp(1.5, e), math::ldexp(-0.0, e)], [want, 0.0]);
    }
}

#[test]
fn frexp_parts_make_up_number() {
    for x in samples(3).filter(|x| x.is_finite() && *x != 0.0) {
        let (fraction, exponent) = (math::frexp_fraction(x), math::frexp_exponent(x));
        assert!((0.5..1.0).contains(&fraction.abs()), "{x:e} has the fraction {fraction}");
        assert_eq!(ldexp_reference(fraction, exponent), x);
    }
    for x in [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
        assert!(same(math::frexp_fraction(x), x));
        assert_eq!(math::frexp_exponent(x), 0);
    }
}

/// Returns the value of an `f16` from its bits.
fn f16_value(bits: u16) -> f64 {
    let exponent = i32::from(bits >> 10 & 31);
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    let abs = match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -abs } else { abs }
}

#[test]
fn every_f16_converts_exactly() {
    for bits in 0..=u16::MAX {
        let (got, want) = (math::f32_of_f16(bits), f16_value(bits));
        assert!(same(got, want as f32), "{bits:#x} is {got}, not {want}");
        assert_eq!(got.is_sign_negative(), bits >> 15 == 1);
        if got.is_nan() {
            assert_eq!(math::f16_bits(got), bits | 0x200);
        } else {
            assert_eq!(math::f16_bits(got), bits);
            assert!(same(math::quantize_f16(got), got));
        }
    }
}

#[test]
fn f16_rounds_to_nearest_even() {
    for bits in 0..0x7c00u16 {
        // Above the largest number, the next one would be 2^16: from the midpoint on, infinity.
        let (low, next) = (f16_value(bits), f16_value(bits + 1).min(65536.0));
        let middle = ((low + next) / 2.0) as f32;
        assert_eq!(f64::from(middle), (low + next) / 2.0, "the middle is exact");
        let even = bits + bits % 2;
        let cases = [(middle.next_down(), bits), (middle, even), (middle.next_up(), bits + 1)];
        for (x, want) in cases {
            assert_eq!(math::f16_bits(x), want, "of {x:e}");
            assert_eq!(math::f16_bits(-x), want | 0x8000, "of -{x:e}");
        }
    }
    assert_eq!(math::f16_bits(f32::MAX), 0x7c00);
    assert_eq!(math::f16_bits(f32::from_bits(1)), 0);
    assert!(math::quantize_f16(f32::NAN).is_nan());
    let signalling = f32::from_bits(0x7f80_0001);
    assert!(math::f32_of_f16(math::f16_bits(signalling)).is_nan());
}

#[test]
fn f64_rounds_to_f16_once() {
    for bits in 0..0x7c00u16 {
        let (low, next) = (f16_value(bits), f16_value(bits + 1).min(65536.0));
        let middle = (low + next) / 2.0;
        let even = bits + bits % 2;
        let cases = [
            (low, bits),
            (low.next_up(), bits),
            (middle.next_down(), bits),
            (middle, even),
            (middle.next_up(), bits + 1),
            (middle * (1.0 + 2f64.powi(-30)), bits + 1),
        ];
        for (x, want) in cases {
            assert_eq!(math::f16_bits_of_f64(x), want, "of {x:e}");
            assert_eq!(math::f16_bits_of_f64(-x), want | 0x8000, "of -{x:e}");
        }
    }
    let infinite = [f64::MAX, f64::INFINITY, 65520.0, 1e39];
    assert_eq!(infinite.map(math::f16_bits_of_f64), [0x7c00; 4]);
    assert_eq!([5e-324, 1e-40, 1e-300].map(math::f16_bits_of_f64), [0; 3]);
    assert!(math::f32_of_f16(math::f16_bits_of_f64(f64::NAN)).is_nan());
}

#[test]
fn special_cases_of_f64_functions() {
    let exponents = [-2200, -1100, -1075, -1074, -1022, -600, 0, 600, 1023, 2098];
    for x in [1.5, 1.0 + f64::EPSILON, f64::MAX, f64::MIN_POSITIVE, 5e-324, -3.0] {
        let (fraction, exponent) = (math64::frexp_fraction(x), math64::frexp_exponent(x));
        assert!((0.5..1.0).contains(&fraction.abs()));
        assert_eq!(math64::ldexp(fraction, exponent), x);
        for e in exponents {
            let power = math64::ldexp(1.0, e);
            let is_right = power == 0.0 || power.is_infinite() || power.log2() == f64::from(e);
            assert!(is_right, "2^{e} is {power}");
        }
    }
    // A midpoint of two subnormal numbers, and slightly above two others: rounded once, not twice.
    assert_eq!(math64::ldexp(1.5, -1074), 1e-323);
    assert_eq!(math64::ldexp(2.5 + f64::EPSILON * 2.0, -1074), 1.5e-323);
    assert_eq!(math64::ldexp(1.0 + f64::EPSILON, -1075), 5e-324);
    assert_eq!([math64::min(f64::NAN, 1.0), math64::max(1.0, f64::NAN)], [1.0; 2]);
    assert_eq!([math64::sign(-0.5), math64::sign(0.0), math64::fract(-0.25)], [-1.0, 0.0, 0.75]);
    assert_eq!(math64::round_even(2.5), 2.0);
}
