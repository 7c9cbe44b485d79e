//! Tests of conversions and bitcasts.

use half::f16;
use proptest::prelude::*;

use super::{Operand, Scalar, constants, evaluate, matrix, scalar, vector};
use crate::kir::lower::componentwise::numeric_constant;
use crate::kir::lower::convert::{bitcast, convert};
use crate::kir::{Const, Type};

fn evaluate_convert(operand: Operand, to: Type) -> Vec<Const> {
    evaluate(&|b, args| convert(b, args[0], to), &[operand]).expect("the conversion exists")
}

fn evaluate_bitcast(operand: Operand, to: Type) -> Vec<Const> {
    evaluate(&|b, args| bitcast(b, args[0], to), &[operand]).expect("the sizes are the same")
}

#[track_caller]
fn assert_converts<T: Scalar, R: Scalar>(from: &[T], to: &[R]) {
    assert_eq!(evaluate_convert(vector(from), to[0].constant().ty), constants(to));
}

#[test]
fn float_to_integer_truncates_and_saturates() {
    assert_converts(&[1.9f32, -1.9, 0.0, -0.0], &[1i32, -1, 0, 0]);
    assert_converts(&[1.9f32, -1.9], &[1u32, 0]);
    // The largest `f32` that an `i32` (a `u32`) can represent.
    assert_converts(&[1e20f32, -1e20], &[2_147_483_520i32, i32::MIN]);
    assert_converts(&[1e20f32, -1e20], &[4_294_967_040u32, 0]);
    assert_converts(&[f64::MAX, f64::MIN], &[i32::MAX, i32::MIN]);
    assert_converts(&[f16::MAX, f16::MIN], &[65504i32, -65504]);
    assert_converts(&[f16::MAX, f16::INFINITY], &[32752i16, 32752]);
    assert_converts(&[1e30f32], &[9_223_371_487_098_961_920i64]);
}

#[test]
fn integer_to_float_rounds_to_nearest() {
    assert_converts(&[16_777_217i32, -16_777_219], &[16_777_216f32, -16_777_220.0]);
    assert_converts(&[u32::MAX], &[4_294_967_296f32]);
    assert_converts(&[2049i32, 2051], &[f16::from_f32(2048.0), f16::from_f32(2052.0)]);
    assert_converts(&[i64::MIN], &[-9_223_372_036_854_775_808f64]);
}

#[test]
fn integer_conversions_truncate_or_extend() {
    assert_converts(&[-1i32, i32::MIN], &[u32::MAX, 0x8000_0000]);
    assert_converts(&[-1i32], &[-1i64]);
    assert_converts(&[-1i32], &[u64::MAX]);
    assert_converts(&[u32::MAX], &[4_294_967_295i64]);
    assert_converts(&[0x1_2345_6789u64], &[0x2345_6789u32]);
    assert_converts(&[0xffffu16], &[0xffffu32]);
    assert_converts(&[0x1_8000i32], &[i16::MIN]);
}

#[test]
fn bool_conversions() {
    assert_converts(&[true, false], &[1f32, 0.0]);
    assert_converts(&[true, false], &[1i32, 0]);
    assert_converts(&[true, false], &[f16::ONE, f16::ZERO]);
    assert_converts(&[0f32, -0.0, 1e-30, -2.0], &[false, false, true, true]);
    assert_converts(&[0u32, 2, 0x8000_0000], &[false, true, true]);
}

#[test]
fn matrix_conversion_is_component_wise() {
    let m = matrix(&[[1f32, 65520.0], [2049.0, -0.5]]);
    let expected = [1.0, f32::INFINITY, 2048.0, -0.5].map(f16::from_f32);
    assert_eq!(evaluate_convert(m, Type::F16), constants(&expected));
}

#[test]
fn conversion_to_same_type_is_identity() {
    assert_eq!(evaluate_convert(scalar(3u32), Type::U32), constants(&[3u32]));
    assert_eq!(evaluate_bitcast(scalar(3f32), Type::F32), constants(&[3f32]));
}

#[test]
fn bitcast_keeps_bits() {
    assert_eq!(
        evaluate_bitcast(vector(&[1f32, -0.0]), Type::U32),
        constants(&[0x3f80_0000u32, 0x8000_0000])
    );
    assert_eq!(evaluate_bitcast(scalar(-1i32), Type::U32), constants(&[u32::MAX]));
    assert_eq!(evaluate_bitcast(scalar(0x3c00u16), Type::F16), constants(&[f16::ONE]));
    assert_eq!(evaluate_bitcast(scalar(-2f64), Type::I64), constants(&[-0x4000_0000_0000_0000i64]));
}

#[test]
fn bitcast_to_other_size_is_rejected() {
    for (operand, to) in [(scalar(1f32), Type::U64), (scalar(true), Type::U32)] {
        let error = evaluate(&|b, args| bitcast(b, args[0], to), &[operand]).unwrap_err();
        assert!(error.message.contains(to.name()), "{}", error.message);
    }
}

fn evaluate_constant(ty: Type, value: f64) -> Vec<Const> {
    evaluate(&|b, _| Ok(vec![numeric_constant(b, ty, value)]), &[])
        .expect("a constant has no operands")
}

#[test]
fn numeric_constants_of_every_type() {
    assert_eq!(evaluate_constant(Type::F64, 0.1), constants(&[0.1f64]));
    assert_eq!(evaluate_constant(Type::F32, 0.1), constants(&[0.1f32]));
    assert_eq!(evaluate_constant(Type::I32, -128.0), constants(&[-128i32]));
    assert_eq!(evaluate_constant(Type::U64, 255.0), constants(&[255u64]));
    assert_eq!(evaluate_constant(Type::F16, 0.0), constants(&[f16::ZERO]));
    // A tie, to even, and a carry into the exponent.
    assert_eq!(evaluate_constant(Type::F16, 2049.0), constants(&[f16::from_f32(2048.0)]));
    assert_eq!(evaluate_constant(Type::F16, 2051.0), constants(&[f16::from_f32(2052.0)]));
    // Just below a tie that rounding to f32 first would make one.
    let below_tie = evaluate_constant(Type::F16, 9_323.999_749_046_749);
    assert_eq!(below_tie, constants(&[f16::from_f32(9320.0)]));
    assert_eq!(evaluate_constant(Type::F16, -4095.9), constants(&[f16::from_f32(-4096.0)]));
}

/// Returns the `f16` that is nearest to a positive number. (`f16::from_f64` may round to `f32`
/// first, and then a second time.)
fn nearest_f16(x: f64) -> f16 {
    let near = f16::from_f64(x).to_bits();
    let error = |bits: u16| (f16::from_bits(bits).to_f64() - x).abs();
    let closer = |a: &u16, b: &u16| error(*a).total_cmp(&error(*b)).then((a % 2).cmp(&(b % 2)));
    f16::from_bits((near - 1..=near + 1).min_by(closer).expect("there are three"))
}

proptest! {
    #[test]
    fn f16_constants_round_to_nearest(x in 6.11e-5f64..65504.0) {
        let nearest = nearest_f16(x);
        prop_assert_eq!(evaluate_constant(Type::F16, x), constants(&[nearest]));
        prop_assert_eq!(evaluate_constant(Type::F16, -x), constants(&[-nearest]));
    }
}
