//! Gradients.

use scry_gpu::{Launch, shaders};

use crate::elementwise::check_binary;
use crate::harness::{assert_close_at, on_each_device, run, word};
use crate::support::random_f32;

fn relu_backward(value: f64, gradient: f64) -> f64 {
    if value > 0.0 { gradient } else { 0.0 }
}

fn sigmoid_backward(value: f64, gradient: f64) -> f64 {
    gradient * value * (1.0 - value)
}

fn tanh_backward(value: f64, gradient: f64) -> f64 {
    gradient * (1.0 - value * value)
}

/// The sum of every column.
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
fn gradients_of_activations() {
    use shaders::backward::{self, vec4};
    check_binary([backward::RELU_BACKWARD, vec4::RELU_BACKWARD], relu_backward);
    check_binary([backward::SIGMOID_BACKWARD, vec4::SIGMOID_BACKWARD], sigmoid_backward);
    check_binary([backward::TANH_BACKWARD, vec4::TANH_BACKWARD], tanh_backward);
}

#[test]
fn column_sums() {
    let shapes = [[1, 1], [7, 33], [33, 7], [127, 129], [1023, 1], [1, 1023], [1023, 5], [8, 32]];
    on_each_device(|gpu| {
        for (seed, [rows, columns]) in (1..).zip(shapes) {
            let x = random_f32(seed, rows * columns);
            let want = reduce_cols(&x, columns);
            let width = word(columns).div_ceil(32);
            for groups in [1usize, 3, 20] {
                let source = shaders::backward::REDUCE_COLS;
                let launch = Launch::workgroups([width, word(groups), 1])
                    .immediates(&[word(rows), word(columns)]);
                let partial = run(gpu, source, &[&x], groups * columns, launch);
                let launch =
                    Launch::workgroups([width, 1, 1]).immediates(&[word(groups), word(columns)]);
                let sums = run(gpu, source, &[&partial], columns, launch);
                let what = format!("{rows} × {columns}, {groups} groups of rows");
                assert_close_at(rows as f64, &what, &sums, &want);
            }
        }
    });
}
