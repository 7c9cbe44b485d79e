//! Tests of the matrix transpose.

use scry_gpu::{Launch, shaders};
use scry_test_support::{on_each_device, random_f32};

use crate::harness::{run, to_u32};

fn transpose(x: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|column| (0..rows).map(move |row| x[row * columns + column])).collect()
}

#[test]
fn transpose_matches_reference() {
    on_each_device(|gpu| {
        let shapes = [[1, 1], [1, 1023], [1023, 1], [7, 33], [33, 7], [32, 64], [127, 129]];
        for (seed, [rows, columns]) in (1..).zip(shapes) {
            let x = random_f32(seed, rows * columns);
            // Each invocation transposes four rows of a column.
            let launch = Launch::invocations([columns, rows.div_ceil(4)])
                .immediates(&[to_u32(rows), to_u32(columns)]);
            let y = run(gpu, shaders::transpose::TRANSPOSE, &[&x], x.len(), launch);
            assert_eq!(y, transpose(&x, rows, columns), "{rows} × {columns}");
        }
    });
}
