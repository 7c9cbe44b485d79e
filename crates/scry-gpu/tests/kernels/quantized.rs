//! Quantised weights, against the encoder and decoder on the host.

use scry_gpu::cuda::kernels::{BlockFormat, Kernels};
use scry_gpu::{Buffer, bf16, f16};
use scry_ptx::kernels::quant;

use crate::harness::{TestElement, kernels, poisoned, random, succeed};

/// Returns the bytes of `count` weights.
fn bytes(format: BlockFormat, count: usize) -> usize {
    count / format.block_len() * format.block_bytes()
}

/// Returns blocks of random weights.
fn blocks(format: BlockFormat, count: usize) -> Vec<u8> {
    quant::quantize(format, &random::<f32>(1, count)).expect("they are whole blocks")
}

/// Decodes the weights of blocks.
fn weights(format: BlockFormat, blocks: &[u8]) -> Vec<f32> {
    quant::dequantize(format, blocks).expect("they are whole blocks")
}

#[test]
fn quantised_blocks_match_host() {
    for kernels in kernels() {
        let gpu = kernels.device();
        for format in BlockFormat::ALL {
            for count in [256, 7 * 256, 1023 * 256] {
                let x = succeed(gpu.upload(&random::<f32>(1, count)));
                let blocks_there = succeed(gpu.upload(&vec![0xffu8; bytes(format, count)]));
                succeed(succeed(kernels.quantize(format, &x, &blocks_there, count)).run());
                let got = succeed(blocks_there.download());
                assert!(got == blocks(format, count), "{format:?}, {count} weights");
            }
        }
    }
}

fn check_numbers<T: TestElement>(kernels: &Kernels) {
    let gpu = kernels.device();
    for format in BlockFormat::ALL {
        for count in [256, 33 * 256, 4097 * 256] {
            let blocks = blocks(format, count);
            let there = succeed(gpu.upload(&blocks));
            let y = poisoned::<T>(gpu, count);
            succeed(succeed(kernels.dequantize(format, &there, &y, count)).run());
            let want: Vec<f64> =
                weights(format, &blocks).into_iter().map(|x| T::of(x).to_f64()).collect();
            let got: Vec<f64> = succeed(y.download()).into_iter().map(T::to_f64).collect();
            assert!(got == want, "{format:?}, {count} weights, {}", std::any::type_name::<T>());
        }
    }
}

#[test]
fn dequantised_weights_match_host() {
    for kernels in kernels() {
        check_numbers::<f32>(&kernels);
        check_numbers::<f16>(&kernels);
        check_numbers::<bf16>(&kernels);
    }
}

/// Multiplies on the device, and compares all results. Activations may be quantised, too: errors
/// are relative to the sum of absolute products.
fn check<X: TestElement, Y: TestElement>(
    kernels: &Kernels,
    format: BlockFormat,
    [rows, k]: [usize; 2],
    columns: usize,
) {
    let gpu = kernels.device();
    let (blocks, x) = (blocks(format, rows * k), random::<X>(2, k * columns));
    let (there, x_there) = (succeed(gpu.upload(&blocks)), succeed(gpu.upload(&x)));
    let y: Buffer<Y> = poisoned(gpu, rows * columns);
    let sides = [rows, k];
    let product = kernels.quantized_matmul(format, &there, &x_there, &y, sides, columns);
    succeed(succeed(product).run());
    let (got, weights) = (succeed(y.download()), weights(format, &blocks));
    let x: Vec<f64> = x.into_iter().map(X::to_f64).collect();
    for (at, got) in got.into_iter().enumerate() {
        let (column, row) = (at / rows, at % rows);
        let pairs = weights[row * k..][..k].iter().zip(&x[column * k..][..k]);
        let add = |(sum, size), (w, x): (&f32, &f64)| {
            let product = f64::from(*w) * x;
            (sum + product, size + f64::abs(product))
        };
        let (want, size) = pairs.fold((0.0, 0.0), add);
        let (got, shape) = (got.to_f64(), (rows, k, columns));
        let close = (got - want).abs() <= 1e-2 * size;
        assert!(close, "{format:?}, {shape:?}: {row}, {column} is {got}, expected {want}");
    }
}

#[test]
fn few_column_products_match_reference() {
    for kernels in kernels() {
        for format in BlockFormat::ALL {
            for (sides, columns) in
                [([1, 256], 1), ([33, 768], 3), ([127, 4096], 1), ([1023, 512], 8)]
            {
                check::<f32, f32>(&kernels, format, sides, columns);
                check::<f16, f32>(&kernels, format, sides, columns);
                check::<bf16, f32>(&kernels, format, sides, columns);
            }
        }
    }
}

#[test]
fn many_column_products_match_reference() {
    for kernels in kernels() {
        for format in BlockFormat::ALL {
            for (sides, columns) in [([1, 256], 9), ([33, 768], 65), ([127, 1024], 33)] {
                check::<f16, f16>(&kernels, format, sides, columns);
                check::<bf16, f32>(&kernels, format, sides, columns);
            }
        }
    }
}
