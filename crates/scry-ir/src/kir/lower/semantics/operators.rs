//! Operators, `select` and relational functions.

use half::f16;
use naga::{BinaryOperator as O, RelationalFunction, UnaryOperator};

use super::{Operand, Scalar, constants, evaluate, matrix, scalar, vector};
use crate::kir::lower::operators::{binary, relational, select, unary};
use crate::kir::lower::shape::Shape;

#[track_caller]
fn infix<T: Scalar>(op: O, left: Operand, right: Operand, expected: &[T]) {
    let actual = evaluate(&|b, args| binary(b, op, args[0], args[1]), &[left, right])
        .expect("the operator is WGSL's");
    assert_eq!(actual, constants(expected), "{op:?}");
}

#[track_caller]
fn scalars<T: Scalar>(op: O, cases: &[(T, T, T)]) {
    for &(left, right, expected) in cases {
        infix(op, scalar(left), scalar(right), &[expected]);
    }
}

#[track_caller]
fn prefix<T: Scalar>(op: UnaryOperator, operand: Operand, expected: &[T]) {
    let actual = evaluate(&|b, args| unary(b, op, args[0]), &[operand]);
    assert_eq!(actual.expect("the operator is WGSL's"), constants(expected), "{op:?}");
}

#[test]
fn negation_wraps_and_negates_zero() {
    prefix(UnaryOperator::Negate, vector(&[i32::MIN, -1, 0, 7]), &[i32::MIN, 1, 0, -7]);
    prefix(UnaryOperator::Negate, vector(&[i16::MIN, 3]), &[i16::MIN, -3]);
    prefix(UnaryOperator::Negate, scalar(i64::MIN), &[i64::MIN]);
    prefix(UnaryOperator::Negate, vector(&[0f32, 1.5]), &[-0f32, -1.5]);
    prefix(UnaryOperator::Negate, scalar(f16::MAX), &[f16::MIN]);
}

#[test]
fn complement_of_bools_and_bits() {
    prefix(UnaryOperator::LogicalNot, vector(&[true, false]), &[false, true]);
    prefix(UnaryOperator::BitwiseNot, scalar(0xf0f0_f0f0u32), &[0x0f0f_0f0fu32]);
    prefix(UnaryOperator::BitwiseNot, vector(&[0i32, -1, i32::MAX]), &[-1, 0, i32::MIN]);
    prefix(UnaryOperator::BitwiseNot, scalar(1u64), &[u64::MAX - 1]);
}

#[test]
fn integers_wrap() {
    scalars(O::Add, &[(i32::MAX, 1, i32::MIN), (-5, 3, -2)]);
    scalars(O::Add, &[(u32::MAX, 1, 0u32)]);
    scalars(O::Add, &[(u16::MAX, 2, 1u16)]);
    scalars(O::Subtract, &[(0u32, 1, u32::MAX)]);
    scalars(O::Subtract, &[(i64::MIN, 1, i64::MAX)]);
    scalars(O::Multiply, &[(0x1_0001u32, 0x1_0001, 0x2_0001)]);
    scalars(O::Multiply, &[(i32::MIN, -1, i32::MIN), (-3, 5, -15)]);
    scalars(O::Multiply, &[(u64::MAX, u64::MAX, 1u64)]);
    scalars(O::Multiply, &[(300i16, 300, 24464)]);
}

#[test]
fn quotients_exist_for_every_divisor() {
    scalars(
        O::Divide,
        &[(7i32, 2, 3), (-7, 2, -3), (7, -2, -3), (5, 0, 5), (i32::MIN, -1, i32::MIN)],
    );
    scalars(O::Divide, &[(7u32, 2, 3), (u32::MAX, 0, u32::MAX)]);
    scalars(O::Divide, &[(i64::MIN, -1, i64::MIN), (9, 0, 9)]);
    scalars(O::Modulo, &[(7i32, 4, 3), (-7, 4, -3), (7, -4, 3), (5, 0, 0), (i32::MIN, -1, 0)]);
    scalars(O::Modulo, &[(7u32, 4, 3), (7, 0, 0)]);
    scalars(O::Modulo, &[(-9i16, 4, -1), (9, 0, 0)]);
}

#[test]
fn floats_keep_their_precision() {
    scalars(O::Add, &[(16_777_216f32, 1.0, 16_777_216.0), (0.5, 0.25, 0.75)]);
    scalars(O::Add, &[(16_777_216f64, 1.0, 16_777_217.0)]);
    scalars(O::Add, &[(f16::from_f32(2048.0), f16::ONE, f16::from_f32(2048.0))]);
    scalars(O::Divide, &[(1f32, 3.0, 1.0 / 3.0), (-6.0, 1.5, -4.0)]);
    scalars(O::Modulo, &[(5.5f32, 2.0, 1.5), (-5.5, 2.0, -1.5), (5.5, -2.0, 1.5), (6.0, 2.0, 0.0)]);
    scalars(O::Modulo, &[(f16::from_f32(7.5), f16::from_f32(2.0), f16::from_f32(1.5))]);
}

#[test]
fn comparisons_give_truth_values() {
    for (op, below, same, above) in [
        (O::Equal, false, true, false),
        (O::NotEqual, true, false, true),
        (O::Less, true, false, false),
        (O::LessEqual, true, true, false),
        (O::Greater, false, false, true),
        (O::GreaterEqual, false, true, true),
    ] {
        let expected = [below, same, above];
        infix(op, vector(&[-1i32, 2, 3]), vector(&[1, 2, -3]), &expected);
        infix(op, vector(&[1u32, 2, u32::MAX]), vector(&[u32::MAX, 2, 1]), &expected);
        infix(op, vector(&[-1f32, -0.0, 0.5]), vector(&[-0.5f32, 0.0, 0.25]), &expected);
        infix(op, vector(&[i64::MIN, 0, 1]), vector(&[i64::MAX, 0, 0]), &expected);
    }
    infix(O::Equal, vector(&[true, true]), vector(&[true, false]), &[true, false]);
    infix(O::NotEqual, vector(&[true, true]), vector(&[true, false]), &[false, true]);
}

#[test]
fn conjunction_of_bools_and_bits() {
    let (x, y) = ([true, true, false, false], [true, false, true, false]);
    for op in [O::And, O::LogicalAnd] {
        infix(op, vector(&x), vector(&y), &[true, false, false, false]);
    }
    for op in [O::InclusiveOr, O::LogicalOr] {
        infix(op, vector(&x), vector(&y), &[true, true, true, false]);
    }
    scalars(O::And, &[(0b1100u32, 0b1010, 0b1000)]);
    scalars(O::InclusiveOr, &[(0b1100i32, 0b1010, 0b1110), (-1, 0, -1)]);
    scalars(O::ExclusiveOr, &[(0b1100u64, 0b1010, 0b0110)]);
    scalars(O::ExclusiveOr, &[(-1i16, 1, -2)]);
}

#[test]
fn shift_amounts_are_modulo_width() {
    for (by, left, right) in [(0u32, 5i32, 5i32), (1, 10, 2), (31, i32::MIN, 0), (33, 10, 2)] {
        infix(O::ShiftLeft, scalar(5i32), scalar(by), &[left]);
        infix(O::ShiftRight, scalar(5i32), scalar(by), &[right]);
    }
    infix(O::ShiftRight, vector(&[-8i32, i32::MIN]), vector(&[1u32, 31]), &[-4i32, -1]);
    infix(O::ShiftRight, vector(&[u32::MAX, 8]), vector(&[31u32, 35]), &[1u32, 1]);
    infix(O::ShiftLeft, scalar(1u64), scalar(40u32), &[1u64 << 40]);
    infix(O::ShiftLeft, scalar(1u64), scalar(65u64), &[2u64]);
    infix(O::ShiftRight, scalar(-4i16), scalar(17u16), &[-2i16]);
}

#[test]
fn scalars_are_splatted() {
    infix(O::Subtract, vector(&[1f32, 2.0, 3.0]), scalar(1f32), &[0f32, 1.0, 2.0]);
    infix(O::Subtract, scalar(1f32), vector(&[1f32, 2.0, 3.0]), &[0f32, -1.0, -2.0]);
    infix(O::Multiply, scalar(3u32), vector(&[1u32, 2]), &[3u32, 6]);
    infix(O::Divide, vector(&[8i32, -9]), scalar(2i32), &[4i32, -4]);
    let (m, half) = (matrix(&[[2f32, 4.0], [6.0, 8.0], [10.0, 12.0]]), scalar(0.5f32));
    infix(O::Multiply, m, half, &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let (m, two) = (matrix(&[[1f64, 2.0]]), scalar(2f64));
    infix(O::Multiply, two, m, &[2f64, 4.0]);
}

#[test]
fn select_returns_second_if_true() {
    let choose = |condition, if_true, if_false| {
        let operands = [condition, if_true, if_false];
        evaluate(&|b, args| select(b, args[0], args[1], args[2]), &operands)
            .expect("`select` takes these")
    };
    let (x, y) = ([1f32, 2.0, 3.0], [-1f32, -2.0, -3.0]);
    assert_eq!(choose(scalar(true), vector(&x), vector(&y)), constants(&x));
    assert_eq!(choose(scalar(false), vector(&x), vector(&y)), constants(&y));
    let mixed = choose(vector(&[true, false, true]), vector(&x), vector(&y));
    assert_eq!(mixed, constants(&[1f32, -2.0, 3.0]));
    let truths = choose(scalar(false), scalar(true), scalar(false));
    assert_eq!(truths, constants(&[false]));
}

#[test]
fn questions_are_answered() {
    let ask = |fun, operand| {
        evaluate(&|b, args| relational(b, fun, args[0]), &[operand]).expect("WGSL has the function")
    };
    for (x, all, any) in [
        (vec![true, true, true, true], true, true),
        (vec![true, true, false], false, true),
        (vec![false, false], false, false),
        (vec![false, true], false, true),
    ] {
        assert_eq!(ask(RelationalFunction::All, vector(&x)), constants(&[all]));
        assert_eq!(ask(RelationalFunction::Any, vector(&x)), constants(&[any]));
    }
    assert_eq!(ask(RelationalFunction::All, scalar(false)), constants(&[false]));
    let x = vector(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX]);
    let nan = [true, false, false, false];
    assert_eq!(ask(RelationalFunction::IsNan, x), constants(&nan));
    let x = vector(&[f16::NAN, f16::INFINITY, f16::NEG_INFINITY, f16::MAX]);
    assert_eq!(ask(RelationalFunction::IsInf, x), constants(&[false, true, true, false]));
}

#[test]
fn structures_are_no_operands() {
    let both = || Operand { shape: Shape::Aggregate, parts: constants(&[1u32, 2]) };
    let operands = [both(), both()];
    let error = evaluate(&|b, args| binary(b, O::Equal, args[0], args[1]), &operands).unwrap_err();
    assert!(error.message.contains("Equal"), "{}", error.message);
}
