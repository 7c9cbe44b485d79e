//! Tests of elementwise kernels.

use scry_gpu::shaders::elementwise::{self, vec4};
use scry_gpu::{Element, Launch};
use scry_test_support::{on_each_device, random_f32};

use crate::harness::{LENGTHS, assert_close, run};

fn relu(x: f64) -> f64 {
    x.max(0.0)
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn tanh(x: f64) -> f64 {
    x.tanh()
}

fn silu(x: f64) -> f64 {
    x * sigmoid(x)
}

fn gelu(x: f64) -> f64 {
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
    0.5 * x * (1.0 + inner.tanh())
}

fn scale(x: f64) -> f64 {
    -2.5 * x
}

fn leaky_relu(x: f64) -> f64 {
    if x < 0.0 { 0.125 * x } else { x }
}

fn elu(x: f64) -> f64 {
    if x < 0.0 { 1.5 * x.exp_m1() } else { x }
}

fn clamp(x: f64) -> f64 {
    x.clamp(-2.0, 3.5)
}

/// Tests a kernel, scalar and vec4, on every length, with numbers from -8 to 8.
fn check_unary(sources: [&str; 2], launch: impl Fn(usize) -> Launch, reference: fn(f64) -> f64) {
    on_each_device(|gpu| {
        for n in LENGTHS {
            for (source, width) in sources.into_iter().zip([1, 4]) {
                let x: Vec<f32> = random_f32(n as u64, n * width).iter().map(|x| 8.0 * x).collect();
                let y = run(gpu, source, &[&x], x.len(), launch(n));
                let expected: Vec<f64> = x.iter().map(|x| reference(f64::from(*x))).collect();
                assert_close(&format!("length {}", x.len()), &y, &expected);
            }
        }
    });
}

fn without_parameters(n: usize) -> Launch {
    Launch::invocations(n)
}

fn with_parameters<P: Element>(parameters: P) -> impl Fn(usize) -> Launch {
    move |n| Launch::invocations(n).immediates(&parameters)
}

/// Tests a binary kernel, scalar and vec4, on every length.
pub fn check_binary(sources: [&str; 2], reference: fn(f64, f64) -> f64) {
    on_each_device(|gpu| {
        for n in LENGTHS {
            for (source, width) in sources.into_iter().zip([1, 4]) {
                let (a, b) = (random_f32(1, n * width), random_f32(2, n * width));
                let y = run(gpu, source, &[&a, &b], a.len(), Launch::invocations(n));
                let pairs = a.iter().zip(&b);
                let expected: Vec<f64> =
                    pairs.map(|(a, b)| reference(f64::from(*a), f64::from(*b))).collect();
                assert_close(&format!("length {}", a.len()), &y, &expected);
            }
        }
    });
}

#[test]
fn activations_match_reference() {
    check_unary([elementwise::RELU, vec4::RELU], without_parameters, relu);
    check_unary([elementwise::SIGMOID, vec4::SIGMOID], without_parameters, sigmoid);
    check_unary([elementwise::TANH, vec4::TANH], without_parameters, tanh);
    check_unary([elementwise::SILU, vec4::SILU], without_parameters, silu);
    check_unary([elementwise::GELU, vec4::GELU], without_parameters, gelu);
}

#[test]
fn parametric_activations_match_reference() {
    check_unary([elementwise::SCALE, vec4::SCALE], with_parameters(-2.5f32), scale);
    check_unary([elementwise::LEAKY_RELU, vec4::LEAKY_RELU], with_parameters(0.125f32), leaky_relu);
    check_unary([elementwise::ELU, vec4::ELU], with_parameters(1.5f32), elu);
    check_unary([elementwise::CLAMP, vec4::CLAMP], with_parameters([-2.0f32, 3.5]), clamp);
}

#[test]
fn arithmetic_matches_reference() {
    check_binary([elementwise::ADD, vec4::ADD], |a, b| a + b);
    check_binary([elementwise::SUB, vec4::SUB], |a, b| a - b);
    check_binary([elementwise::MUL, vec4::MUL], |a, b| a * b);
    check_binary([elementwise::DIV, vec4::DIV], |a, b| a / b);
}

/// Returns `x` with the bias added to every row.
fn bias_add(x: &[f32], bias: &[f32]) -> Vec<f64> {
    let bias = bias.iter().cycle();
    x.iter().zip(bias).map(|(x, bias)| f64::from(*x) + f64::from(*bias)).collect()
}

#[test]
fn bias_add_matches_reference() {
    on_each_device(|gpu| {
        for [rows, columns] in [[1, 1], [7, 33], [127, 1], [1, 127], [33, 1023]] {
            let (x, bias) = (random_f32(1, rows * columns), random_f32(2, columns));
            let launch = Launch::invocations(x.len());
            let y = run(gpu, elementwise::BIAS_ADD, &[&x, &bias], x.len(), launch);
            assert_close(&format!("{rows} × {columns}"), &y, &bias_add(&x, &bias));
        }
    });
}
