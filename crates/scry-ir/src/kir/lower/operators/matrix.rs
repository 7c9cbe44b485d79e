//! Products with a matrix operand. Its scalars are in column-major order.

use crate::kir::lower::componentwise::sum_of_products;
use crate::kir::{Builder, Value};

/// Multiplies a matrix by columns: a vector, or the columns of a matrix.
pub(super) fn multiply_by_columns(
    b: &mut Builder,
    matrix: &[Value],
    rows: usize,
    right_columns: &[Value],
) -> Vec<Value> {
    // The columns of the matrix, and the rows of the right operand.
    let inner = matrix.len() / rows;
    let mut product = Vec::with_capacity(rows * right_columns.len() / inner);
    for column in right_columns.chunks_exact(inner) {
        for row in 0..rows {
            let mut pairs = matrix.iter().skip(row).step_by(rows).zip(column);
            product.extend(sum_of_products(b, &mut pairs));
        }
    }
    product
}

/// Multiplies a row by a matrix: its dot product with each column.
pub(super) fn multiply_row(b: &mut Builder, row: &[Value], matrix: &[Value]) -> Vec<Value> {
    let columns = matrix.chunks_exact(row.len());
    columns.filter_map(|column| sum_of_products(b, &mut row.iter().zip(column))).collect()
}
