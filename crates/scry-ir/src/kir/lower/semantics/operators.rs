//! Tests of operators, `select` and relational functions.

use half::f16;
use naga::{BinaryOperator as O, RelationalFunction, UnaryOperator};

use super::{Operand, Scalar, constants, evaluate, matrix, scalar, vector};
use crate::kir::lower::operators::{binary, relational, select, unary};
use crate::kir::lower::shape::Shape;

/// Asserts the result of a binary operator, bit by bit.
#[track_caller]
fn assert_binary<T: Scalar>(op: O, left: Operand, right: Operand, expected: &[T]) {
    let actual = evaluate(&|b, args| binary(b, op, args[0], args[1]), &[left, right])
        .expect("the operator accepts these operands");
    assert_eq!(actual, constants(expected), "{op:?}");
}

/// Asserts the results of a binary operator on scalars; a case is `(left, right, result)`.
#[track_caller]
fn assert_scalar_binary<T: Scalar>(op: O, cases: &[(T, T, T)]) {
    for &(left, right, expected) in cases {
        assert_binary(op, scalar(left), scalar(right), &[expected]);
    }
}

/// Asserts the result of a unary operator, bit by bit.
#[track_caller]
fn assert_unary<T: Scalar>(op: UnaryOperator, operand: Operand, expected: &[T]) {
    let actual = evaluate(&|b, args| unary(b, op, args[0]), &[operand]);
    assert_eq!(actual.expect("the operator accepts the operand"), constants(expected), "{op:?}");
}

#[test]
fn negation_wraps_and_negates_zero() {
    assert_unary(UnaryOperator::Negate, vector(&[i32::MIN, -1, 0, 7]), &[i32::MIN, 1, 0, -7]);
    assert_unary(UnaryOperator::Negate, vector(&[i16::MIN, 3]), &[i16::MIN, -3]);
    assert_unary(UnaryOperator::Negate, scalar(i64::MIN), &[i64::MIN]);
    assert_unary(UnaryOperator::Negate, vector(&[0f32, 1.5]), &[-0f32, -1.5]);
    assert_unary(UnaryOperator::Negate, scalar(f16::MAX), &[f16::MIN]);
}

#[test]
fn not_of_bools_and_integers() {
    assert_unary(UnaryOperator::LogicalNot, vector(&[true, false]), &[false, true]);
    assert_unary(UnaryOperator::BitwiseNot, scalar(0xf0f0_f0f0u32), &[0x0f0f_0f0fu32]);
    assert_unary(UnaryOperator::BitwiseNot, vector(&[0i32, -1, i32::MAX]), &[-1, 0, i32::MIN]);
    assert_unary(UnaryOperator::BitwiseNot, scalar(1u64), &[u64::MAX - 1]);
}

#[test]
fn integers_wrap() {
    assert_scalar_binary(O::Add, &[(i32::MAX, 1, i32::MIN), (-5, 3, -2)]);
    assert_scalar_binary(O::Add, &[(u32::MAX, 1, 0u32)]);
    assert_scalar_binary(O::Add, &[(u16::MAX, 2, 1u16)]);
    assert_scalar_binary(O::Subtract, &[(0u32, 1, u32::MAX)]);
    assert_scalar_binary(O::Subtract, &[(i64::MIN, 1, i64::MAX)]);
    assert_scalar_binary(O::Multiply, &[(0x1_0001u32, 0x1_0001, 0x2_0001)]);
    assert_scalar_binary(O::Multiply, &[(i32::MIN, -1, i32::MIN), (-3, 5, -15)]);
    assert_scalar_binary(O::Multiply, &[(u64::MAX, u64::MAX, 1u64)]);
    assert_scalar_binary(O::Multiply, &[(300i16, 300, 24464)]);
}

#[test]
fn integer_division_is_total() {
    assert_scalar_binary(
        O::Divide,
        &[(7i32, 2, 3), (-7, 2, -3), (7, -2, -3), (5, 0, 5), (i32::MIN, -1, i32::MIN)],
    );
    assert_scalar_binary(O::Divide, &[(7u32, 2, 3), (u32::MAX, 0, u32::MAX)]);
    assert_scalar_binary(O::Divide, &[(i64::MIN, -1, i64::MIN), (9, 0, 9)]);
    assert_scalar_binary(
        O::Modulo,
        &[(7i32, 4, 3), (-7, 4, -3), (7, -4, 3), (5, 0, 0), (i32::MIN, -1, 0)],
    );
    assert_scalar_binary(O::Modulo, &[(7u32, 4, 3), (7, 0, 0)]);
    assert_scalar_binary(O::Modulo, &[(-9i16, 4, -1), (9, 0, 0)]);
}

#[test]
fn float_arithmetic_rounds_to_type() {
    assert_scalar_binary(O::Add, &[(16_777_216f32, 1.0, 16_777_216.0), (0.5, 0.25, 0.75)]);
    assert_scalar_binary(O::Add, &[(16_777_216f64, 1.0, 16_777_217.0)]);
    assert_scalar_binary(O::Add, &[(f16::from_f32(2048.0), f16::ONE, f16::from_f32(2048.0))]);
    assert_scalar_binary(O::Divide, &[(1f32, 3.0, 1.0 / 3.0), (-6.0, 1.5, -4.0)]);
    assert_scalar_binary(
        O::Modulo,
        &[(5.5f32, 2.0, 1.5), (-5.5, 2.0, -1.5), (5.5, -2.0, 1.5), (6.0, 2.0, 0.0)],
    );
    assert_scalar_binary(
        O::Modulo,
        &[(f16::from_f32(7.5), f16::from_f32(2.0), f16::from_f32(1.5))],
    );
}

#[test]
fn comparisons_of_every_type() {
    for (op, less, equal, greater) in [
        (O::Equal, false, true, false),
        (O::NotEqual, true, false, true),
        (O::Less, true, false, false),
        (O::LessEqual, true, true, false),
        (O::Greater, false, false, true),
        (O::GreaterEqual, false, true, true),
    ] {
        let expected = [less, equal, greater];
        assert_binary(op, vector(&[-1i32, 2, 3]), vector(&[1, 2, -3]), &expected);
        assert_binary(op, vector(&[1u32, 2, u32::MAX]), vector(&[u32::MAX, 2, 1]), &expected);
        assert_binary(op, vector(&[-1f32, -0.0, 0.5]), vector(&[-0.5f32, 0.0, 0.25]), &expected);
        assert_binary(op, vector(&[i64::MIN, 0, 1]), vector(&[i64::MAX, 0, 0]), &expected);
    }
    assert_binary(O::Equal, vector(&[true, true]), vector(&[true, false]), &[true, false]);
    assert_binary(O::NotEqual, vector(&[true, true]), vector(&[true, false]), &[false, true]);
}

#[test]
fn and_or_xor_of_bools_and_integers() {
    let (x, y) = ([true, true, false, false], [true, false, true, false]);
    for op in [O::And, O::LogicalAnd] {
        assert_binary(op, vector(&x), vector(&y), &[true, false, false, false]);
    }
    for op in [O::InclusiveOr, O::LogicalOr] {
        assert_binary(op, vector(&x), vector(&y), &[true, true, true, false]);
    }
    assert_scalar_binary(O::And, &[(0b1100u32, 0b1010, 0b1000)]);
    assert_scalar_binary(O::InclusiveOr, &[(0b1100i32, 0b1010, 0b1110), (-1, 0, -1)]);
    assert_scalar_binary(O::ExclusiveOr, &[(0b1100u64, 0b1010, 0b0110)]);
    assert_scalar_binary(O::ExclusiveOr, &[(-1i16, 1, -2)]);
}

#[test]
fn shift_amounts_are_modulo_width() {
    for (by, left, right) in [(0u32, 5i32, 5i32), (1, 10, 2), (31, i32::MIN, 0), (33, 10, 2)] {
        assert_binary(O::ShiftLeft, scalar(5i32), scalar(by), &[left]);
        assert_binary(O::ShiftRight, scalar(5i32), scalar(by), &[right]);
    }
    assert_binary(O::ShiftRight, vector(&[-8i32, i32::MIN]), vector(&[1u32, 31]), &[-4i32, -1]);
    assert_binary(O::ShiftRight, vector(&[u32::MAX, 8]), vector(&[31u32, 35]), &[1u32, 1]);
    assert_binary(O::ShiftLeft, scalar(1u64), scalar(40u32), &[1u64 << 40]);
    assert_binary(O::ShiftLeft, scalar(1u64), scalar(65u64), &[2u64]);
    assert_binary(O::ShiftRight, scalar(-4i16), scalar(17u16), &[-2i16]);
}

#[test]
fn scalars_are_splatted() {
    assert_binary(O::Subtract, vector(&[1f32, 2.0, 3.0]), scalar(1f32), &[0f32, 1.0, 2.0]);
    assert_binary(O::Subtract, scalar(1f32), vector(&[1f32, 2.0, 3.0]), &[0f32, -1.0, -2.0]);
    assert_binary(O::Multiply, scalar(3u32), vector(&[1u32, 2]), &[3u32, 6]);
    assert_binary(O::Divide, vector(&[8i32, -9]), scalar(2i32), &[4i32, -4]);
    let (m, half) = (matrix(&[[2f32, 4.0], [6.0, 8.0], [10.0, 12.0]]), scalar(0.5f32));
    assert_binary(O::Multiply, m, half, &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let (m, two) = (matrix(&[[1f64, 2.0]]), scalar(2f64));
    assert_binary(O::Multiply, two, m, &[2f64, 4.0]);
}

#[test]
fn select_with_scalar_and_vector_conditions() {
    let evaluate_select = |condition, if_true, if_false| {
        let operands = [condition, if_true, if_false];
        evaluate(&|b, args| select(b, args[0], args[1], args[2]), &operands)
            .expect("`select` accepts these")
    };
    let (x, y) = ([1f32, 2.0, 3.0], [-1f32, -2.0, -3.0]);
    assert_eq!(evaluate_select(scalar(true), vector(&x), vector(&y)), constants(&x));
    assert_eq!(evaluate_select(scalar(false), vector(&x), vector(&y)), constants(&y));
    let mixed = evaluate_select(vector(&[true, false, true]), vector(&x), vector(&y));
    assert_eq!(mixed, constants(&[1f32, -2.0, 3.0]));
    let bools = evaluate_select(scalar(false), scalar(true), scalar(false));
    assert_eq!(bools, constants(&[false]));
}

#[test]
fn all_any_isnan_and_isinf() {
    let evaluate_relational = |fun, operand| {
        evaluate(&|b, args| relational(b, fun, args[0]), &[operand])
            .expect("the function accepts this")
    };
    for (x, all, any) in [
        (vec![true, true, true, true], true, true),
        (vec![true, true, false], false, true),
        (vec![false, false], false, false),
        (vec![false, true], false, true),
    ] {
        assert_eq!(evaluate_relational(RelationalFunction::All, vector(&x)), constants(&[all]));
        assert_eq!(evaluate_relational(RelationalFunction::Any, vector(&x)), constants(&[any]));
    }
    assert_eq!(evaluate_relational(RelationalFunction::All, scalar(false)), constants(&[false]));
    let x = vector(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX]);
    let is_nan = [true, false, false, false];
    assert_eq!(evaluate_relational(RelationalFunction::IsNan, x), constants(&is_nan));
    let x = vector(&[f16::NAN, f16::INFINITY, f16::NEG_INFINITY, f16::MAX]);
    assert_eq!(
        evaluate_relational(RelationalFunction::IsInf, x),
        constants(&[false, true, true, false])
    );
}

#[test]
fn structure_operands_are_rejected() {
    let structure = || Operand { shape: Shape::Aggregate, parts: constants(&[1u32, 2]) };
    let operands = [structure(), structure()];
    let error = evaluate(&|b, args| binary(b, O::Equal, args[0], args[1]), &operands).unwrap_err();
    assert!(error.message.contains("Equal"), "{}", error.message);
}
