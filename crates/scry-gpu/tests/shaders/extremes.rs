//! Tests of activations far from zero, which must return the limits without overflow, and of a
//! gradient at zero.

use scry_gpu::shaders::{backward, elementwise};
use scry_gpu::{Device, Launch};
use scry_test_support::on_each_device;

use crate::harness::run;

fn apply(gpu: &Device, source: &str, x: &[f32]) -> Vec<f32> {
    run(gpu, source, &[x], x.len(), Launch::invocations(x.len()))
}

#[test]
fn activations_saturate() {
    on_each_device(|gpu| {
        let x = [-1e30, -1000.0, 1000.0, 1e30];
        assert_eq!(apply(gpu, elementwise::SIGMOID, &x), [0.0, 0.0, 1.0, 1.0]);
        assert_eq!(apply(gpu, elementwise::SILU, &x), [0.0, 0.0, 1000.0, 1e30]);
        assert_eq!(apply(gpu, elementwise::RELU, &x), [0.0, 0.0, 1000.0, 1e30]);
        let tanh = apply(gpu, elementwise::TANH, &x);
        assert!(tanh.iter().zip([-1.0, -1.0, 1.0, 1.0]).all(|(y, limit)| (y - limit).abs() < 1e-6));
        let gelu = apply(gpu, elementwise::GELU, &[-1000.0, 1000.0, 1e12]);
        assert!(gelu[0].abs() < 1e-3 && gelu[1] == 1000.0 && gelu[2] == 1e12, "{gelu:?}");
    });
}

#[test]
fn relu_gradient_at_zero_is_zero() {
    on_each_device(|gpu| {
        let (values, gradients) = ([0.0, -0.0, 1.0, -1.0], [5.0, 6.0, 7.0, 8.0]);
        let inputs: [&[f32]; 2] = [&values, &gradients];
        let y = run(gpu, backward::RELU_BACKWARD, &inputs, 4, Launch::invocations(4));
        assert_eq!(y, [0.0, 0.0, 7.0, 0.0]);
    });
}
