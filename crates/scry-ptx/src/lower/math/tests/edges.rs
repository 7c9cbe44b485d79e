//! Tests of functions at zeros, infinities, NaN and the ends of their domains, for `f32` and `f64`.

use scry_ir::kir::{BinaryOp, Type, UnaryOp};

use super::semantics::Bias;
use super::{Function, compile};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const PI: f64 = std::f64::consts::PI;

/// A function, and arguments with their results.
type Case = (UnaryOp, &'static [(f64, f64)]);

const CASES: [Case; 19] = [
    (UnaryOp::Sqrt, &[(0.0, 0.0), (4.0, 2.0), (INF, INF), (-1.0, NAN)]),
    (UnaryOp::InverseSqrt, &[(4.0, 0.5), (0.0, INF), (INF, 0.0), (-1.0, NAN)]),
    (
        UnaryOp::Exp,
        &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (711.0, INF), (-746.0, 0.0)],
    ),
    (
        UnaryOp::Exp2,
        &[(3.0, 8.0), (-126.0, 1.175_494_350_822_287_5e-38), (1025.0, INF), (INF, INF)],
    ),
    (UnaryOp::Exp2, &[(-INF, 0.0), (-1076.0, 0.0), (10.0, 1024.0)]),
    (UnaryOp::Log, &[(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, INF)]),
    (UnaryOp::Log2, &[(8.0, 3.0), (0.125, -3.0), (0.0, -INF), (-1e-30, NAN), (INF, INF)]),
    (UnaryOp::Sin, &[(0.0, 0.0), (INF, NAN), (1e30, 0.0), (1e-30, 1e-30)]),
    (UnaryOp::Cos, &[(0.0, 1.0), (-0.0, 1.0), (-INF, NAN), (1e30, 1.0)]),
    (UnaryOp::Tan, &[(0.0, 0.0), (INF, NAN), (-1e-30, -1e-30)]),
    (UnaryOp::Asin, &[(0.0, 0.0), (1.0, PI / 2.0), (-1.0, -PI / 2.0), (1.001, NAN), (-INF, NAN)]),
    (UnaryOp::Acos, &[(1.0, 0.0), (-1.0, PI), (0.0, PI / 2.0), (-1.001, NAN), (INF, NAN)]),
    (UnaryOp::Atan, &[(0.0, 0.0), (INF, PI / 2.0), (-INF, -PI / 2.0), (1.0, PI / 4.0)]),
    (UnaryOp::Sinh, &[(0.0, 0.0), (INF, INF), (-INF, -INF), (712.0, INF)]),
    (UnaryOp::Cosh, &[(0.0, 1.0), (INF, INF), (-INF, INF), (-712.0, INF)]),
    (UnaryOp::Tanh, &[(0.0, 0.0), (INF, 1.0), (-INF, -1.0), (100.0, 1.0)]),
    (UnaryOp::Asinh, &[(0.0, 0.0), (INF, INF), (-INF, -INF)]),
    (UnaryOp::Acosh, &[(1.0, 0.0), (0.999, NAN), (-INF, NAN), (INF, INF), (-2.0, NAN)]),
    (UnaryOp::Atanh, &[(0.0, 0.0), (1.0, INF), (-1.0, -INF), (1.001, NAN), (-INF, NAN)]),
];

/// Returns whether both are the same number or NaN; multiples of π are rounded to the type.
fn is_same(result: f64, expected: f64, ty: Type) -> bool {
    let nearest = if ty == Type::F32 { f64::from(expected as f32) } else { expected };
    result == nearest || (result.is_nan() && expected.is_nan())
}

fn bits(x: f64, ty: Type) -> u64 {
    if ty == Type::F32 { (x as f32).to_bits().into() } else { x.to_bits() }
}

fn number(bits: u64, ty: Type) -> f64 {
    if ty == Type::F32 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) }
}

#[test]
fn unary_functions_at_edge_cases() {
    for ty in [Type::F32, Type::F64] {
        for (op, cases) in CASES {
            let program = compile(Function::One(op), ty);
            for (x, expected) in cases.iter().chain(&[(NAN, NAN)]) {
                let result = number(program.run([bits(*x, ty), 0], Bias::Nearest), ty);
                assert!(
                    is_same(result, *expected, ty),
                    "{op:?}({x:e}) of {ty:?} is {result:e}, not {expected:e}"
                );
            }
        }
    }
}

const VALUES: [f64; 14] =
    [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1e30, INF, -INF, NAN];

#[test]
fn atan2_on_axes_and_at_infinity() {
    for ty in [Type::F32, Type::F64] {
        let program = compile(Function::Two(BinaryOp::Atan2), ty);
        for y in VALUES {
            for x in VALUES {
                let expected = y.atan2(x);
                let result = number(program.run([bits(y, ty), bits(x, ty)], Bias::Nearest), ty);
                let is_near = (result - expected).abs() <= 1e-6 * expected.abs();
                let is_right = if expected.is_nan() { result.is_nan() } else { is_near };
                assert!(is_right, "atan2({y:e}, {x:e}) of {ty:?} is {result:e}, not {expected:e}");
                assert!(
                    expected.is_nan() || result.is_sign_negative() == expected.is_sign_negative()
                );
            }
        }
    }
}

#[test]
fn pow_at_edge_cases() {
    for ty in [Type::F32, Type::F64] {
        let program = compile(Function::Two(BinaryOp::Pow), ty);
        for x in VALUES {
            // Excludes powers that the standard library defines, but the lowering does not: ±1 to
            // an infinite power (0 times infinity), and -inf to a fractional one (NaN, as for all
            // negative numbers).
            let is_comparable = |y: &f64| match x.abs() {
                1.0 => y.is_finite(),
                _ => x != -INF || y.trunc() == *y,
            };
            for y in VALUES.into_iter().filter(is_comparable) {
                let exact = x.powf(y);
                let expected = if ty == Type::F32 { f64::from(exact as f32) } else { exact };
                let result = number(program.run([bits(x, ty), bits(y, ty)], Bias::Nearest), ty);
                let is_near =
                    result == expected || (result - expected).abs() <= 1e-5 * expected.abs();
                let is_right = if expected.is_nan() { result.is_nan() } else { is_near };
                assert!(is_right, "pow({x:e}, {y:e}) of {ty:?} is {result:e}, not {expected:e}");
            }
        }
    }
}
