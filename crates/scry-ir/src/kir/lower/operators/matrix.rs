//! Products with a matrix operand, which is column-major and contiguous.

use crate::kir::lower::componentwise::sum_of_products;
use crate::kir::{Builder, Value};

/// Multiplies a matrix by columns: each result is a linear combination of the matrix's columns.
pub(super) fn by_columns(
    b: &mut Builder,
    matrix: &[Value],
    rows: usize,
    right: &[Value],
) -> Vec<Value> {
    let inner = matrix.len() / rows;
    let mut product = Vec::with_capacity(rows * right.len() / inner);
    for column in right.chunks_exact(inner) {
        for row in 0..rows {
            let mut pairs = matrix.iter().skip(row).step_by(rows).zip(column);
            product.extend(sum_of_products(b, &mut pairs));
        }
    }
    product
}

/// Multiplies a row by a matrix: its dot product with each column.
pub(super) fn by_rows(b: &mut Builder, row: &[Value], matrix: &[Value]) -> Vec<Value> {
    let columns = matrix.chunks_exact(row.len());
    columns.filter_map(|column| sum_of_products(b, &mut row.iter().zip(column))).collect()
}
