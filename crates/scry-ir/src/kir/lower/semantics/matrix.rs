//! Operators and functions of matrices.

use half::f16;
use naga::{BinaryOperator, MathFunction as F};

use super::{Operand, constants, evaluate, gives, matrix, vector};
use crate::kir::Const;
use crate::kir::lower::operators::binary;
use crate::kir::lower::shape::Shape;

fn infix(op: BinaryOperator, left: Operand, right: Operand) -> Vec<Const> {
    evaluate(&|b, args| binary(b, op, args[0], args[1]), &[left, right])
        .expect("WGSL has the operator")
}

fn product(left: Operand, right: Operand) -> Vec<Const> {
    infix(BinaryOperator::Multiply, left, right)
}

/// Returns a matrix of distinct small integers, and the integers.
fn numbered(columns: usize, rows: usize, first: f32) -> (Operand, Vec<f32>) {
    let numbers: Vec<_> = (0..columns * rows).map(|nth| first + nth as f32).collect();
    let parts = constants(&numbers);
    let (columns, rows) = (columns as u8, rows as u8);
    (Operand { shape: Shape::Matrix { columns, rows, ty: parts[0].ty }, parts }, numbers)
}

/// All sizes of matrices.
fn sizes() -> impl Iterator<Item = (usize, usize)> {
    (2..=4).flat_map(|columns| (2..=4).map(move |rows| (columns, rows)))
}

#[test]
fn sums_are_entry_by_entry() {
    let pair = || (matrix(&[[1f32, 2.0], [3.0, 4.0]]), matrix(&[[5f32, 6.0], [7.0, 9.0]]));
    let (x, y) = pair();
    let sum = infix(BinaryOperator::Add, x, y);
    assert_eq!(sum, constants(&[6f32, 8.0, 10.0, 13.0]));
    let (x, y) = pair();
    let difference = infix(BinaryOperator::Subtract, x, y);
    assert_eq!(difference, constants(&[-4f32, -4.0, -4.0, -5.0]));
}

#[test]
fn matrices_times_vectors() {
    for (columns, rows) in sizes() {
        let (_, right) = numbered(columns, 1, 2.0);
        let (m, numbers) = numbered(columns, rows, -3.0);
        let entry = |row| (0..columns).map(|k| numbers[k * rows + row] * right[k]).sum();
        let expected: Vec<f32> = (0..rows).map(entry).collect();
        assert_eq!(product(m, vector(&right)), constants(&expected), "{columns}x{rows}");
    }
}

#[test]
fn vectors_times_matrices() {
    for (columns, rows) in sizes() {
        let (_, left) = numbered(rows, 1, 2.0);
        let (m, numbers) = numbered(columns, rows, -3.0);
        let entry = |column| (0..rows).map(|k| numbers[column * rows + k] * left[k]).sum();
        let expected: Vec<f32> = (0..columns).map(entry).collect();
        assert_eq!(product(vector(&left), m), constants(&expected), "{columns}x{rows}");
    }
}

#[test]
fn matrices_times_matrices() {
    for (inner, rows) in sizes() {
        for columns in 2..=4 {
            let (left, x) = numbered(inner, rows, -3.0);
            let (right, y) = numbered(columns, inner, 1.0);
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
fn other_floats_are_multiplied_too() {
    let [one, two, half] = [1.0, 2.0, 0.5].map(f16::from_f32);
    let m = matrix(&[[one, two], [half, one]]);
    assert_eq!(product(m, vector(&[two, two])), constants(&[3.0, 6.0].map(f16::from_f32)));
    let m = matrix(&[[1f64, 2.0], [0.5, 1.0]]);
    assert_eq!(product(vector(&[1e100f64, 1.0]), m), constants(&[1e100f64, 5e99]));
}

#[test]
fn transposition() {
    let m = matrix(&[[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    gives(F::Transpose, &[m], &[1f32, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let m = matrix(&[[1f64, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]);
    gives(F::Transpose, &[m], &[1f64, 3.0, 5.0, 7.0, 2.0, 4.0, 6.0, 8.0]);
}

/// Leibniz' formula: the sum over all permutations.
fn leibniz<const N: usize>(m: &[[f64; N]; N], column: usize, taken: &mut Vec<usize>) -> f64 {
    if column == N {
        let inversions = (0..N).flat_map(|i| (0..i).map(move |j| (i, j)));
        let odd = inversions.filter(|&(i, j)| taken[j] > taken[i]).count() % 2 == 1;
        return if odd { -1.0 } else { 1.0 };
    }
    let mut sum = 0.0;
    for row in 0..N {
        if !taken.contains(&row) {
            taken.push(row);
            sum += m[column][row] * leibniz(m, column + 1, taken);
            taken.pop();
        }
    }
    sum
}

#[track_caller]
fn determinant<const N: usize>(m: [[f64; N]; N]) {
    let expected = leibniz(&m, 0, &mut Vec::new());
    gives(F::Determinant, &[matrix(&m)], &[expected]);
    let single = m.map(|column| column.map(|x| x as f32));
    gives(F::Determinant, &[matrix(&single)], &[expected as f32]);
}

#[test]
fn determinants() {
    determinant([[3.0, 8.0], [4.0, 6.0]]);
    determinant([[6.0, 1.0, 1.0], [4.0, -2.0, 5.0], [2.0, 8.0, 7.0]]);
    determinant([
        [1.0, 2.0, 0.0, -1.0],
        [3.0, 0.0, 5.0, 2.0],
        [4.0, -3.0, 1.0, 7.0],
        [2.0, 9.0, 6.0, 8.0],
    ]);
    // The determinant of a permutation matrix is the sign of the permutation.
    determinant([
        [0.0, 1.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ]);
    determinant([
        [0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
        [0.0, 1.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 0.0],
    ]);
    let halves =
        matrix(&[[0.5, 2.0], [4.0, -1.0]].map(|column: [f32; 2]| column.map(f16::from_f32)));
    gives(F::Determinant, &[halves], &[f16::from_f32(-8.5)]);
}
