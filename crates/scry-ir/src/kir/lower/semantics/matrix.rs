//! Tests of matrix operators and functions.

use half::f16;
use naga::{BinaryOperator, MathFunction as F};

use super::{Operand, assert_evaluates, constants, evaluate, matrix, vector};
use crate::kir::Const;
use crate::kir::lower::operators::binary;
use crate::kir::lower::shape::Shape;

fn evaluate_binary(op: BinaryOperator, left: Operand, right: Operand) -> Vec<Const> {
    evaluate(&|b, args| binary(b, op, args[0], args[1]), &[left, right])
        .expect("the operator accepts these operands")
}

fn product(left: Operand, right: Operand) -> Vec<Const> {
    evaluate_binary(BinaryOperator::Multiply, left, right)
}

/// Returns a matrix of consecutive integers from `first`, and the integers.
fn sequential_matrix(columns: usize, rows: usize, first: f32) -> (Operand, Vec<f32>) {
    let numbers: Vec<_> = (0..columns * rows).map(|index| first + index as f32).collect();
    let parts = constants(&numbers);
    let (columns, rows) = (columns as u8, rows as u8);
    (Operand { shape: Shape::Matrix { columns, rows, ty: parts[0].ty }, parts }, numbers)
}

/// Returns the columns and rows of all matrix types.
fn sizes() -> impl Iterator<Item = (usize, usize)> {
    (2..=4).flat_map(|columns| (2..=4).map(move |rows| (columns, rows)))
}

#[test]
fn addition_is_component_wise() {
    let operands = || (matrix(&[[1f32, 2.0], [3.0, 4.0]]), matrix(&[[5f32, 6.0], [7.0, 9.0]]));
    let (x, y) = operands();
    let sum = evaluate_binary(BinaryOperator::Add, x, y);
    assert_eq!(sum, constants(&[6f32, 8.0, 10.0, 13.0]));
    let (x, y) = operands();
    let difference = evaluate_binary(BinaryOperator::Subtract, x, y);
    assert_eq!(difference, constants(&[-4f32, -4.0, -4.0, -5.0]));
}

#[test]
fn matrix_vector_products_match_reference() {
    for (columns, rows) in sizes() {
        let (_, right) = sequential_matrix(columns, 1, 2.0);
        let (m, numbers) = sequential_matrix(columns, rows, -3.0);
        let entry = |row| (0..columns).map(|k| numbers[k * rows + row] * right[k]).sum();
        let expected: Vec<f32> = (0..rows).map(entry).collect();
        assert_eq!(product(m, vector(&right)), constants(&expected), "{columns}x{rows}");
    }
}

#[test]
fn vector_matrix_products_match_reference() {
    for (columns, rows) in sizes() {
        let (_, left) = sequential_matrix(rows, 1, 2.0);
        let (m, numbers) = sequential_matrix(columns, rows, -3.0);
        let entry = |column| (0..rows).map(|k| numbers[column * rows + k] * left[k]).sum();
        let expected: Vec<f32> = (0..columns).map(entry).collect();
        assert_eq!(product(vector(&left), m), constants(&expected), "{columns}x{rows}");
    }
}

#[test]
fn matrix_products_match_reference() {
    for (inner, rows) in sizes() {
        for columns in 2..=4 {
            let (left, x) = sequential_matrix(inner, rows, -3.0);
            let (right, y) = sequential_matrix(columns, inner, 1.0);
            let entry = |column: usize, row: usize| {
                (0..inner).map(|k| x[k * rows + row] * y[column * inner + k]).sum()
            };
            let expected: Vec<f32> = (0..columns)
                .flat_map(|column| (0..rows).map(move |row| (column, row)))
                .map(|(column, row)| entry(column, row))
                .collect();
            assert_eq!(product(left, right), constants(&expected), "{inner}x{rows} by {columns}");
        }
    }
}

#[test]
fn f16_and_f64_products() {
    let [one, two, half] = [1.0, 2.0, 0.5].map(f16::from_f32);
    let m = matrix(&[[one, two], [half, one]]);
    assert_eq!(product(m, vector(&[two, two])), constants(&[3.0, 6.0].map(f16::from_f32)));
    let m = matrix(&[[1f64, 2.0], [0.5, 1.0]]);
    assert_eq!(product(vector(&[1e100f64, 1.0]), m), constants(&[1e100f64, 5e99]));
}

#[test]
fn transpose_swaps_rows_and_columns() {
    let m = matrix(&[[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    assert_evaluates(F::Transpose, &[m], &[1f32, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let m = matrix(&[[1f64, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]);
    assert_evaluates(F::Transpose, &[m], &[1f64, 3.0, 5.0, 7.0, 2.0, 4.0, 6.0, 8.0]);
}

/// Returns the determinant of `m` by Leibniz' formula, the sum over all permutations of rows.
/// `permutation` has the rows for the columns before `column`, whose entries are not multiplied.
fn leibniz<const N: usize>(m: &[[f64; N]; N], column: usize, permutation: &mut Vec<usize>) -> f64 {
    if column == N {
        let inversions = (0..N).flat_map(|i| (0..i).map(move |j| (i, j)));
        let odd = inversions.filter(|&(i, j)| permutation[j] > permutation[i]).count() % 2 == 1;
        return if odd { -1.0 } else { 1.0 };
    }
    let mut sum = 0.0;
    for row in 0..N {
        if !permutation.contains(&row) {
            permutation.push(row);
            sum += m[column][row] * leibniz(m, column + 1, permutation);
            permutation.pop();
        }
    }
    sum
}

#[track_caller]
fn assert_determinant<const N: usize>(m: [[f64; N]; N]) {
    let expected = leibniz(&m, 0, &mut Vec::new());
    assert_evaluates(F::Determinant, &[matrix(&m)], &[expected]);
    let as_f32 = m.map(|column| column.map(|x| x as f32));
    assert_evaluates(F::Determinant, &[matrix(&as_f32)], &[expected as f32]);
}

#[test]
fn determinant_matches_leibniz() {
    assert_determinant([[3.0, 8.0], [4.0, 6.0]]);
    assert_determinant([[6.0, 1.0, 1.0], [4.0, -2.0, 5.0], [2.0, 8.0, 7.0]]);
    assert_determinant([
        [1.0, 2.0, 0.0, -1.0],
        [3.0, 0.0, 5.0, 2.0],
        [4.0, -3.0, 1.0, 7.0],
        [2.0, 9.0, 6.0, 8.0],
    ]);
    // The determinant of a permutation matrix is the sign of the permutation.
    assert_determinant([
        [0.0, 1.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ]);
    assert_determinant([
        [0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
        [0.0, 1.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 0.0],
    ]);
    let as_f16 =
        matrix(&[[0.5, 2.0], [4.0, -1.0]].map(|column: [f32; 2]| column.map(f16::from_f32)));
    assert_evaluates(F::Determinant, &[as_f16], &[f16::from_f32(-8.5)]);
}
