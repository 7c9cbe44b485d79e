//! Tests of quantised weights, against the encoder and decoder on the host.

use scry_gpu::{Buffer, bf16, f16};
use scry_kernels::{BlockFormat, Kernels};
use scry_ptx::kernels::quant;
use scry_test_support::succeed;

use crate::harness::{TestElement, kernels, poisoned, random};

/// Returns the size of `count` weights in bytes.
fn byte_size(format: BlockFormat, count: usize) -> usize {
    count / format.block_len() * format.block_bytes()
}

/// Returns `count` random weights, quantised on the host.
fn random_blocks(format: BlockFormat, count: usize) -> Vec<u8> {
    quant::quantize(format, &random::<f32>(1, count)).expect("they are whole blocks")
}

/// Dequantises blocks on the host.
fn decode(format: BlockFormat, blocks: &[u8]) -> Vec<f32> {
    quant::dequantize(format, blocks).expect("they are whole blocks")
}

#[test]
fn quantised_blocks_match_host() {
    for kernels in kernels() {
        let gpu = kernels.device();
        for format in BlockFormat::ALL {
            for count in [256, 7 * 256, 1023 * 256] {
                let x = succeed(gpu.upload(&random::<f32>(1, count)));
                let blocks = succeed(gpu.upload(&vec![0xffu8; byte_size(format, count)]));
                succeed(succeed(kernels.quantize(format, &x, &blocks, count)).run());
                let blocks = succeed(blocks.download());
                assert!(blocks == random_blocks(format, count), "{format:?}, {count} weights");
            }
        }
    }
}

fn check_dequantize<T: TestElement>(kernels: &Kernels) {
    let gpu = kernels.device();
    for format in BlockFormat::ALL {
        for count in [256, 33 * 256, 4097 * 256] {
            let blocks = random_blocks(format, count);
            let device_blocks = succeed(gpu.upload(&blocks));
            let y = poisoned::<T>(gpu, count);
            succeed(succeed(kernels.dequantize(format, &device_blocks, &y, count)).run());
            let expected: Vec<f64> =
                decode(format, &blocks).into_iter().map(|x| T::round_f32(x).to_f64()).collect();
            let weights: Vec<f64> = succeed(y.download()).into_iter().map(T::to_f64).collect();
            assert!(
                weights == expected,
                "{format:?}, {count} weights, {}",
                std::any::type_name::<T>()
            );
        }
    }
}

#[test]
fn dequantised_weights_match_host() {
    for kernels in kernels() {
        check_dequantize::<f32>(&kernels);
        check_dequantize::<f16>(&kernels);
        check_dequantize::<bf16>(&kernels);
    }
}

/// Multiplies on the device, and compares all results. The kernels may quantise the activations, so
/// the tolerance is relative to the sum of absolute products.
fn check_product<X: TestElement, Y: TestElement>(
    kernels: &Kernels,
    format: BlockFormat,
    [rows, k]: [usize; 2],
    columns: usize,
) {
    let gpu = kernels.device();
    let (blocks, x) = (random_blocks(format, rows * k), random::<X>(2, k * columns));
    let (device_blocks, device_x) = (succeed(gpu.upload(&blocks)), succeed(gpu.upload(&x)));
    let y: Buffer<Y> = poisoned(gpu, rows * columns);
    let shape = [rows, k];
    let product = kernels.quantized_matmul(format, &device_blocks, &device_x, &y, shape, columns);
    succeed(succeed(product).run());
    let (y, weights) = (succeed(y.download()), decode(format, &blocks));
    let x: Vec<f64> = x.into_iter().map(X::to_f64).collect();
    for (i, result) in y.into_iter().enumerate() {
        let (column, row) = (i / rows, i % rows);
        let pairs = weights[row * k..][..k].iter().zip(&x[column * k..][..k]);
        let add = |(sum, abs_sum), (w, x): (&f32, &f64)| {
            let product = f64::from(*w) * x;
            (sum + product, abs_sum + f64::abs(product))
        };
        let (expected, abs_sum) = pairs.fold((0.0, 0.0), add);
        let (result, shape) = (result.to_f64(), (rows, k, columns));
        let is_close = (result - expected).abs() <= 1e-2 * abs_sum;
        assert!(
            is_close,
            "{format:?}, {shape:?}: {row}, {column} is {result}, expected {expected}"
        );
    }
}

#[test]
fn few_column_products_match_reference() {
    for kernels in kernels() {
        for format in BlockFormat::ALL {
            for (shape, columns) in
                [([1, 256], 1), ([33, 768], 3), ([127, 4096], 1), ([1023, 512], 8)]
            {
                check_product::<f32, f32>(&kernels, format, shape, columns);
                check_product::<f16, f32>(&kernels, format, shape, columns);
                check_product::<bf16, f32>(&kernels, format, shape, columns);
            }
        }
    }
}

#[test]
fn many_column_products_match_reference() {
    for kernels in kernels() {
        for format in BlockFormat::ALL {
            for (shape, columns) in [([1, 256], 9), ([33, 768], 65), ([127, 1024], 33)] {
                check_product::<f16, f16>(&kernels, format, shape, columns);
                check_product::<bf16, f32>(&kernels, format, shape, columns);
            }
        }
    }
}
