//! Rounding, fractions and exponents: functions with exact results.

use scry_ir::kir::{BinaryOp, Type, UnaryOp};

use super::semantics::{Push, of_half, to_half};
use super::{Function, Random, program};

/// Bits of numbers of all magnitudes, and of multiples of 0.5.
fn samples(ty: Type) -> Vec<u64> {
    let mut random = Random(3);
    let any = (0..4000).map(|_| match ty {
        Type::F16 => random.word() & 0xffff,
        Type::F32 => random.word() & 0xffff_ffff,
        _ => random.word(),
    });
    let any: Vec<u64> = any.collect();
    let halves = (-200i16..200).map(|i| bits(f64::from(i) * 0.5, ty));
    let special = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0].map(|x| bits(x, ty));
    halves.chain(special).chain(any).collect()
}

fn bits(x: f64, ty: Type) -> u64 {
    match ty {
        Type::F16 => to_half(x),
        Type::F32 => (x as f32).to_bits().into(),
        _ => x.to_bits(),
    }
}

fn number(bits: u64, ty: Type) -> f64 {
    match ty {
        Type::F16 => of_half(bits),
        Type::F32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits),
    }
}

const TYPES: [Type; 3] = [Type::F16, Type::F32, Type::F64];

fn same(x: f64, y: f64) -> bool {
    x == y || (x.is_nan() && y.is_nan())
}

/// A function and its results.
type Case = (UnaryOp, fn(f64) -> f64);

#[test]
fn whole_numbers() {
    const CASES: [Case; 5] = [
        (UnaryOp::Floor, f64::floor),
        (UnaryOp::Ceil, f64::ceil),
        (UnaryOp::Round, f64::round_ties_even),
        (UnaryOp::Trunc, f64::trunc),
        (UnaryOp::Fract, |x| x - x.floor()),
    ];
    for ty in TYPES {
        for (op, exact) in CASES {
            let program = program(Function::One(op), ty);
            for x in samples(ty) {
                let got = number(program.run([x, 0], Push::Not), ty);
                let want = number(bits(exact(number(x, ty)), ty), ty);
                assert!(same(got, want), "{op:?}({:e}) of {ty:?} is {got:e}", number(x, ty));
            }
        }
    }
}

#[test]
fn parts_make_up_the_number() {
    for ty in TYPES {
        let fraction = program(Function::One(UnaryOp::FrexpFraction), ty);
        let exponent = program(Function::One(UnaryOp::FrexpExponent), ty);
        for bits in samples(ty) {
            let x = number(bits, ty);
            let f = number(fraction.run([bits, 0], Push::Not), ty);
            let e = exponent.run([bits, 0], Push::Not) as i32;
            if x == 0.0 || !x.is_finite() {
                assert!(same(f, x) && e == 0, "{x:e} of {ty:?} is {f:e} times 2^{e}");
                continue;
            }
            assert!((0.5..1.0).contains(&f.abs()), "{x:e} of {ty:?} has the fraction {f:e}");
            let half = e / 2;
            assert_eq!(f * 2f64.powi(half) * 2f64.powi(e - half), x, "{x:e} of {ty:?}");
        }
    }
}

/// A power of 2 times a number, rounded once to the type.
fn scaled(x: f64, e: i32, ty: Type) -> f64 {
    if !x.is_finite() {
        return x;
    }
    if ty != Type::F64 {
        let half = e.clamp(-600, 600) / 2;
        let rest = e.clamp(-600, 600) - half;
        return number(bits(x * 2f64.powi(half) * 2f64.powi(rest), ty), ty);
    }
    let (mut x, mut e) = (x, e.clamp(-2200, 2200));
    while e > 1000 {
        (x, e) = (x * 2f64.powi(1000), e - 1000);
    }
    // Scales down while the number stays normal, then by the rest.
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    let exact = (-1022 - exponent).clamp(-1022, 0).max(e).min(0);
    (x, e) = (x * 2f64.powi(exact), e - exact);
    if e < -1022 { 0.0 } else { x * 2f64.powi(e) }
}

#[test]
fn powers_of_2_round_once() {
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
        let program = program(Function::Two(BinaryOp::Ldexp), ty);
        for (nth, bits) in samples(ty).into_iter().enumerate() {
            let (x, e) = (number(bits, ty), exponents[nth % exponents.len()]);
            let got = number(program.run([bits, (e as u32).into()], Push::Not), ty);
            let want = scaled(x, e, ty);
            assert!(same(got, want), "ldexp({x:e}, {e}) of {ty:?} is {got:e}, not {want:e}");
        }
    }
}
