//! Tests of softmax and norms.

use scry_gpu::{Buffer, Result, bf16, f16};
use scry_kernels::{Kernels, Op};
use scry_test_support::succeed;

use crate::harness::{TestElement, kernels, poisoned, random};

/// Numbers of rows and row lengths, near the sizes of warps, blocks and clusters.
const SHAPES: [[usize; 2]; 14] = [
    [1, 1],
    [7, 1],
    [3, 7],
    [33, 32],
    [127, 33],
    [65, 127],
    [5, 1023],
    [9, 4097],
    [300, 128],
    [2, 32768],
    [2, 131_072],
    [3, 131_075],
    [1, 1 << 18],
    [1, 1 << 20],
];

/// Computes a row of the result in f64 from a row of the input, the weights and the biases.
type Reference = fn(&[f64], &[f64], &[f64]) -> Vec<f64>;

/// A row-wise operation, and its reference.
struct Function<T> {
    name: &'static str,
    prepare: fn(&Kernels, &Operands<T>) -> Result<Op>,
    reference: Reference,
}

/// Operands of row-wise functions.
struct Operands<T> {
    rows: usize,
    columns: usize,
    x: Buffer<T>,
    weight: Buffer<T>,
    bias: Buffer<T>,
    y: Buffer<T>,
}

const EPSILON: f32 = 1e-5;

fn functions<T: TestElement>() -> [Function<T>; 7] {
    [
        Function {
            name: "softmax",
            prepare: |kernels, it| kernels.softmax(&it.x, &it.y, it.rows, it.columns),
            reference: |row, _, _| softmax(row),
        },
        Function {
            name: "log_softmax",
            prepare: |kernels, it| kernels.log_softmax(&it.x, &it.y, it.rows, it.columns),
            reference: |row, _, _| softmax(row).iter().map(|x| x.ln()).collect(),
        },
        Function {
            name: "layer_norm",
            prepare: |kernels, it| {
                let Operands { rows, columns, x, weight, bias, y } = it;
                kernels.layer_norm(x, Some(weight), Some(bias), y, *rows, *columns, EPSILON)
            },
            reference: |row, weight, bias| {
                let normalised = normalise(row, mean(row)).into_iter().zip(weight).zip(bias);
                normalised.map(|((x, weight), bias)| x * weight + bias).collect()
            },
        },
        Function {
            name: "layer_norm without bias",
            prepare: |kernels, it| {
                let Operands { rows, columns, x, weight, y, .. } = it;
                kernels.layer_norm(x, Some(weight), None, y, *rows, *columns, EPSILON)
            },
            reference: |row, weight, _| {
                let normalised = normalise(row, mean(row)).into_iter().zip(weight);
                normalised.map(|(x, weight)| x * weight).collect()
            },
        },
        Function {
            name: "layer_norm without weight",
            prepare: |kernels, it| {
                kernels.layer_norm(&it.x, None, None, &it.y, it.rows, it.columns, EPSILON)
            },
            reference: |row, _, _| normalise(row, mean(row)),
        },
        Function {
            name: "rms_norm",
            prepare: |kernels, it| {
                let Operands { rows, columns, x, weight, y, .. } = it;
                kernels.rms_norm(x, Some(weight), y, *rows, *columns, EPSILON)
            },
            reference: |row, weight, _| {
                normalise(row, 0.0).into_iter().zip(weight).map(|(x, weight)| x * weight).collect()
            },
        },
        Function {
            name: "rms_norm without weight",
            prepare: |kernels, it| {
                kernels.rms_norm(&it.x, None, &it.y, it.rows, it.columns, EPSILON)
            },
            reference: |row, _, _| normalise(row, 0.0),
        },
    ]
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|x| (x - max).exp()).sum();
    row.iter().map(|x| (x - max).exp() / sum).collect()
}

fn mean(row: &[f64]) -> f64 {
    row.iter().sum::<f64>() / row.len() as f64
}

/// Returns the differences from `center`, divided by their root mean square.
fn normalise(row: &[f64], center: f64) -> Vec<f64> {
    let squares = row.iter().map(|x| (x - center).powi(2)).sum::<f64>() / row.len() as f64;
    row.iter().map(|x| (x - center) / (squares + f64::from(EPSILON)).sqrt()).collect()
}

fn all_to_f64<T: TestElement>(data: &[T]) -> Vec<f64> {
    data.iter().map(|x| x.to_f64()).collect()
}

/// Computes on the device, and compares all rows. Errors are relative to a row's largest result.
fn check<T: TestElement>(kernels: &Kernels, function: &Function<T>, shape: [usize; 2]) {
    let ([rows, columns], gpu) = (shape, kernels.device());
    // Numbers from -2 to 6, whose mean is not zero.
    let x: Vec<T> =
        random::<f32>(1, rows * columns).iter().map(|x| T::round_f32(4.0 * x + 2.0)).collect();
    let (weight, bias) = (random::<T>(2, columns), random::<T>(3, columns));
    let upload = |data: &[T]| succeed(gpu.upload(data));
    let y = poisoned(gpu, rows * columns);
    let (x_buffer, weight_buffer, bias_buffer) = (upload(&x), upload(&weight), upload(&bias));
    let it = Operands { rows, columns, x: x_buffer, weight: weight_buffer, bias: bias_buffer, y };
    succeed(succeed((function.prepare)(kernels, &it)).run());
    let (y, weight, bias) = (succeed(it.y.download()), all_to_f64(&weight), all_to_f64(&bias));
    for (row, (x, y)) in x.chunks(columns).zip(y.chunks(columns)).enumerate() {
        let expected = (function.reference)(&all_to_f64(x), &weight, &bias);
        let scale = expected.iter().fold(1e-30, |scale: f64, x| scale.max(x.abs()));
        for (i, (y, expected)) in y.iter().zip(expected).enumerate() {
            let (y, name, element) = (y.to_f64(), function.name, std::any::type_name::<T>());
            let is_close = (y - expected).abs() <= T::TOLERANCE * scale;
            assert!(
                is_close,
                "{name}, {element}, {shape:?}: row {row}, {i} is {y}, not {expected}"
            );
        }
    }
}

fn check_all<T: TestElement>() {
    for kernels in kernels() {
        for function in functions::<T>() {
            SHAPES.iter().for_each(|shape| check(&kernels, &function, *shape));
        }
    }
}

#[test]
fn f32_rows_match_reference() {
    check_all::<f32>();
}

#[test]
fn f16_rows_match_reference() {
    check_all::<f16>();
}

#[test]
fn bf16_rows_match_reference() {
    check_all::<bf16>();
}
