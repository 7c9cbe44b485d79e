//! Tests of the functions with exact results: rounding, `fract`, `frexp` and `ldexp`.

use scry_ir::kir::{BinaryOp, Type, UnaryOp};

use super::semantics::{Bias, f16_bits, f16_to_f64};
use super::{Function, Random, compile};

/// Returns the bits of multiples of 0.5, special numbers, and random numbers of all magnitudes.
fn samples(ty: Type) -> Vec<u64> {
    let mut random = Random(3);
    let any = (0..4000).map(|_| match ty {
        Type::F16 => random.word() & 0xffff,
        Type::F32 => random.word() & 0xffff_ffff,
        _ => random.word(),
    });
    let any: Vec<u64> = any.collect();
    let multiples_of_half = (-200i16..200).map(|i| bits(f64::from(i) * 0.5, ty));
    let special = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0].map(|x| bits(x, ty));
    multiples_of_half.chain(special).chain(any).collect()
}

fn bits(x: f64, ty: Type) -> u64 {
    match ty {
        Type::F16 => f16_bits(x),
        Type::F32 => (x as f32).to_bits().into(),
        _ => x.to_bits(),
    }
}

fn number(bits: u64, ty: Type) -> f64 {
    match ty {
        Type::F16 => f16_to_f64(bits),
        Type::F32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits),
    }
}

const TYPES: [Type; 3] = [Type::F16, Type::F32, Type::F64];

fn is_same(x: f64, y: f64) -> bool {
    x == y || (x.is_nan() && y.is_nan())
}

/// A function and its reference.
type Case = (UnaryOp, fn(f64) -> f64);

#[test]
fn rounding_functions_are_exact() {
    const CASES: [Case; 5] = [
        (UnaryOp::Floor, f64::floor),
        (UnaryOp::Ceil, f64::ceil),
        (UnaryOp::Round, f64::round_ties_even),
        (UnaryOp::Trunc, f64::trunc),
        (UnaryOp::Fract, |x| x - x.floor()),
    ];
    for ty in TYPES {
        for (op, exact) in CASES {
            let program = compile(Function::One(op), ty);
            for x in samples(ty) {
                let result = number(program.run([x, 0], Bias::Nearest), ty);
                let expected = number(bits(exact(number(x, ty)), ty), ty);
                assert!(
                    is_same(result, expected),
                    "{op:?}({:e}) of {ty:?} is {result:e}",
                    number(x, ty)
                );
            }
        }
    }
}

#[test]
fn frexp_parts_multiply_to_argument() {
    for ty in TYPES {
        let fraction = compile(Function::One(UnaryOp::FrexpFraction), ty);
        let exponent = compile(Function::One(UnaryOp::FrexpExponent), ty);
        for bits in samples(ty) {
            let x = number(bits, ty);
            let f = number(fraction.run([bits, 0], Bias::Nearest), ty);
            let e = exponent.run([bits, 0], Bias::Nearest) as i32;
            if x == 0.0 || !x.is_finite() {
                assert!(is_same(f, x) && e == 0, "{x:e} of {ty:?} is {f:e} times 2^{e}");
                continue;
            }
            assert!((0.5..1.0).contains(&f.abs()), "{x:e} of {ty:?} has the fraction {f:e}");
            let half = e / 2;
            assert_eq!(f * 2f64.powi(half) * 2f64.powi(e - half), x, "{x:e} of {ty:?}");
        }
    }
}

/// Returns `x * 2^e`, rounded once to the type.
fn reference_ldexp(x: f64, e: i32, ty: Type) -> f64 {
    if !x.is_finite() {
        return x;
    }
    if ty != Type::F64 {
        let half = e.clamp(-600, 600) / 2;
        let other_half = e.clamp(-600, 600) - half;
        return number(bits(x * 2f64.powi(half) * 2f64.powi(other_half), ty), ty);
    }
    let (mut x, mut e) = (x, e.clamp(-2200, 2200));
    while e > 1000 {
        (x, e) = (x * 2f64.powi(1000), e - 1000);
    }
    // Scales down exactly, as long as the number stays normal, then by the rest.
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    let exact = (-1022 - exponent).clamp(-1022, 0).max(e).min(0);
    (x, e) = (x * 2f64.powi(exact), e - exact);
    if e < -1022 { 0.0 } else { x * 2f64.powi(e) }
}

#[test]
fn ldexp_rounds_once() {
    let exponents = [
        0,
        1,
        -1,
        9,
        -9,
        24,
        -24,
        53,
        -53,
        126,
        -126,
        127,
        150,
        -150,
        277,
        -277,
        1000,
        1023,
        1024,
        -1000,
        -1022,
        -1023,
        -1074,
        -1100,
        1100,
        2098,
        -2098,
        5000,
        -5000,
        i32::MAX,
        i32::MIN,
    ];
    for ty in TYPES {
        let program = compile(Function::Two(BinaryOp::Ldexp), ty);
        for (nth, bits) in samples(ty).into_iter().enumerate() {
            let (x, e) = (number(bits, ty), exponents[nth % exponents.len()]);
            let result = number(program.run([bits, (e as u32).into()], Bias::Nearest), ty);
            let expected = reference_ldexp(x, e, ty);
            assert!(
                is_same(result, expected),
                "ldexp({x:e}, {e}) of {ty:?} is {result:e}, not {expected:e}"
            );
        }
    }
}
