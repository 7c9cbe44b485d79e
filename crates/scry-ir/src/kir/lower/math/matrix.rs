//! Functions of matrices, whose scalars are in column-major order.

use naga::MathFunction as F;

use super::geometry::{cross, unfused_difference_of_products};
use crate::kir::lower::componentwise::sum_of_products;
use crate::kir::lower::shape::{Shape, Shaped};
use crate::kir::{BinaryOp, Builder, Value};

/// Lowers a function of a matrix; returns `None` for other functions and arguments.
pub(super) fn matrix(b: &mut Builder, fun: F, args: &[Shaped<'_>]) -> Option<Vec<Value>> {
    let &[Shaped { shape: Shape::Matrix { rows, .. }, values }] = args else { return None };
    match fun {
        F::Transpose => Some(transpose(values, usize::from(rows))),
        F::Determinant => Some(vec![determinant(b, values)?]),
        _ => None,
    }
}

fn transpose(values: &[Value], rows: usize) -> Vec<Value> {
    let columns = values.len() / rows;
    let mut transposed = Vec::with_capacity(values.len());
    for row in 0..rows {
        for column in 0..columns {
            transposed.push(values[column * rows + row]);
        }
    }
    transposed
}

fn determinant(b: &mut Builder, values: &[Value]) -> Option<Value> {
    match *values {
        [x0, x1, y0, y1] => Some(unfused_difference_of_products(b, [x0, y1], [y0, x1])),
        [x0, x1, x2, y0, y1, y2, z0, z1, z2] => {
            let product = cross(b, [y0, y1, y2], [z0, z1, z2]);
            sum_of_products(b, &mut [x0, x1, x2].iter().zip(&product))
        }
        _ => determinant_4x4(b, values.try_into().ok()?),
    }
}

/// Laplace expansion along two columns: each pair of rows contributes a minor of the first two
/// columns, times the complementary minor of the last two.
fn determinant_4x4(b: &mut Builder, m: &[Value; 16]) -> Option<Value> {
    let first = [(0, 1), (1, 2), (0, 3), (2, 3), (0, 2), (1, 3)];
    let second = [(2, 3), (0, 3), (1, 2), (0, 1), (1, 3), (0, 2)];
    let first = minors(b, m, 0, &first);
    let second = minors(b, m, 8, &second);
    // The last two pairs of rows have a negative sign.
    let positive = sum_of_products(b, &mut first[..4].iter().zip(&second[..4]))?;
    let negative = sum_of_products(b, &mut first[4..].iter().zip(&second[4..]))?;
    Some(b.binary(BinaryOp::Sub, positive, negative))
}

fn minors(b: &mut Builder, m: &[Value; 16], left: usize, rows: &[(usize, usize)]) -> Vec<Value> {
    let mut minors = Vec::with_capacity(rows.len());
    for &rows in rows {
        minors.push(minor(b, m, left, rows));
    }
    minors
}

/// Returns the determinant of rows `i` and `j` of two columns, the first of which begins at `left`.
fn minor(b: &mut Builder, m: &[Value; 16], left: usize, (i, j): (usize, usize)) -> Value {
    let right = left + 4;
    unfused_difference_of_products(b, [m[left + i], m[right + j]], [m[right + i], m[left + j]])
}
