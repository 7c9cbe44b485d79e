//! Softmax and norms.

use scry_gpu::Buffer;
use scry_gpu::cuda::kernels::{Kernels, Prepared};
use scry_gpu::{Result, bf16, f16};

use crate::harness::{Number, kernels, poisoned, random, succeed};

/// Rows and their length, around warps, blocks and what a block holds.
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

/// What becomes of a row, with its weights and biases.
type Reference = fn(&[f64], &[f64], &[f64]) -> Vec<f64>;

/// A function of rows: how it is prepared, and what it does to one row in 64 bits.
struct Function<T> {
    name: &'static str,
    prepare: for<'a> fn(&Kernels, &'a Operands<T>) -> Result<Prepared<'a>>,
    reference: Reference,
}

/// What functions of rows take.
struct Operands<T> {
    shape: [usize; 2],
    x: Buffer<T>,
    weight: Buffer<T>,
    bias: Buffer<T>,
    y: Buffer<T>,
}

const EPSILON: f32 = 1e-5;

fn functions<T: Number>() -> [Function<T>; 7] {
    [
        Function {
            name: "softmax",
            prepare: |kernels, it| kernels.softmax(&it.x, &it.y, it.shape),
            reference: |row, _, _| softmax(row),
        },
        Function {
            name: "log_softmax",
            prepare: |kernels, it| kernels.log_softmax(&it.x, &it.y, it.shape),
            reference: |row, _, _| softmax(row).iter().map(|x| x.ln()).collect(),
        },
        Function {
            name: "layer_norm",
            prepare: |kernels, it| {
                let Operands { shape, x, weight, bias, y } = it;
                kernels.layer_norm(x, Some(weight), Some(bias), y, *shape, EPSILON)
            },
            reference: |row, weight, bias| {
                let normed = normed(row, mean(row)).into_iter().zip(weight).zip(bias);
                normed.map(|((x, weight), bias)| x * weight + bias).collect()
            },
        },
        Function {
            name: "layer_norm without bias",
            prepare: |kernels, it| {
                kernels.layer_norm(&it.x, Some(&it.weight), None, &it.y, it.shape, EPSILON)
            },
            reference: |row, weight, _| {
                let normed = normed(row, mean(row)).into_iter().zip(weight);
                normed.map(|(x, weight)| x * weight).collect()
            },
        },
        Function {
            name: "layer_norm without weight",
            prepare: |kernels, it| kernels.layer_norm(&it.x, None, None, &it.y, it.shape, EPSILON),
            reference: |row, _, _| normed(row, mean(row)),
        },
        Function {
            name: "rms_norm",
            prepare: |kernels, it| {
                kernels.rms_norm(&it.x, Some(&it.weight), &it.y, it.shape, EPSILON)
            },
            reference: |row, weight, _| {
                normed(row, 0.0).into_iter().zip(weight).map(|(x, weight)| x * weight).collect()
            },
        },
        Function {
            name: "rms_norm without weight",
            prepare: |kernels, it| kernels.rms_norm(&it.x, None, &it.y, it.shape, EPSILON),
            reference: |row, _, _| normed(row, 0.0),
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

/// Distances from `middle`, over the root of the mean of their squares.
fn normed(row: &[f64], middle: f64) -> Vec<f64> {
    let squares = row.iter().map(|x| (x - middle).powi(2)).sum::<f64>() / row.len() as f64;
    row.iter().map(|x| (x - middle) / (squares + f64::from(EPSILON)).sqrt()).collect()
}

fn wide<T: Number>(data: &[T]) -> Vec<f64> {
    data.iter().map(|x| x.wide()).collect()
}

/// Computes, and compares all rows. Errors are relative to the largest result of a row.
fn check<T: Number>(kernels: &Kernels, function: &Function<T>, shape: [usize; 2]) {
    let ([count, length], gpu) = (shape, kernels.device());
    // Rows of a mean far from zero, and of a spread of 8.
    let x: Vec<T> = random::<f32>(1, count * length).iter().map(|x| T::of(4.0 * x + 2.0)).collect();
    let (weight, bias) = (random::<T>(2, length), random::<T>(3, length));
    let upload = |data: &[T]| succeed(gpu.upload(data));
    let y = poisoned(gpu, count * length);
    let it = Operands { shape, x: upload(&x), weight: upload(&weight), bias: upload(&bias), y };
    succeed(succeed((function.prepare)(kernels, &it)).run());
    let (got, weight, bias) = (succeed(it.y.download()), wide(&weight), wide(&bias));
    for (nth, (row, got)) in x.chunks(length).zip(got.chunks(length)).enumerate() {
        let want = (function.reference)(&wide(row), &weight, &bias);
        let scale = want.iter().fold(1e-30, |scale: f64, x| scale.max(x.abs()));
        for (at, (got, want)) in got.iter().zip(want).enumerate() {
            let (got, name, of) = (got.wide(), function.name, std::any::type_name::<T>());
            let close = (got - want).abs() <= T::BOUND * scale;
            assert!(close, "{name}, {of}, {shape:?}: row {nth}, {at} is {got}, not {want}");
        }
    }
}

fn check_all<T: Number>() {
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
