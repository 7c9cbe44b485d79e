//! Tests of the gradient kernels (`shaders::backward`). Column sums are the gradient of a bias.

use scry_gpu::{Launch, shaders};
use scry_test_support::{on_each_device, random_f32};

use crate::elementwise::check_binary;
use crate::harness::{assert_close_scaled, run, to_u32};

// The kernels for sigmoid and tanh need the activation's output, not its input.

fn relu_backward(value: f64, gradient: f64) -> f64 {
    if value > 0.0 { gradient } else { 0.0 }
}

fn sigmoid_backward(output: f64, gradient: f64) -> f64 {
    gradient * output * (1.0 - output)
}

fn tanh_backward(output: f64, gradient: f64) -> f64 {
    gradient * (1.0 - output * output)
}

/// Returns the sum of every column.
fn reduce_cols(x: &[f32], columns: usize) -> Vec<f64> {
    let mut sums = vec![0.0; columns];
    for row in x.chunks(columns) {
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += f64::from(*value);
        }
    }
    sums
}

#[test]
fn activation_gradients_match_reference() {
    use shaders::backward::{self, vec4};
    check_binary([backward::RELU_BACKWARD, vec4::RELU_BACKWARD], relu_backward);
    check_binary([backward::SIGMOID_BACKWARD, vec4::SIGMOID_BACKWARD], sigmoid_backward);
    check_binary([backward::TANH_BACKWARD, vec4::TANH_BACKWARD], tanh_backward);
}

#[test]
fn column_sums_match_reference() {
    let shapes = [[1, 1], [7, 33], [33, 7], [127, 129], [1023, 1], [1, 1023], [1023, 5], [8, 32]];
    on_each_device(|gpu| {
        for (seed, [rows, columns]) in (1..).zip(shapes) {
            let x = random_f32(seed, rows * columns);
            let expected = reduce_cols(&x, columns);
            let column_groups = to_u32(columns).div_ceil(32);
            for row_groups in [1usize, 3, 20] {
                let source = shaders::backward::REDUCE_COLS;
                let launch = Launch::workgroups([column_groups, to_u32(row_groups), 1])
                    .immediates(&[to_u32(rows), to_u32(columns)]);
                let partial = run(gpu, source, &[&x], row_groups * columns, launch);
                let launch = Launch::workgroups([column_groups, 1, 1])
                    .immediates(&[to_u32(row_groups), to_u32(columns)]);
                let sums = run(gpu, source, &[&partial], columns, launch);
                let what = format!("{rows} × {columns}, {row_groups} groups of rows");
                assert_close_scaled(rows as f64, &what, &sums, &expected);
            }
        }
    });
}
