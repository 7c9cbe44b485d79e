//! Tests of quantised weights, against the encoder and decoder on the host.

use scry_gpu::{bf16, f16};
use scry_kernels::{BlockFormat, Kernels};
use scry_ptx::kernels::quant;
use scry_test_support::succeed;

use crate::support::{Float, assert_close, each_variant, poisoned, random, supported, type_name};

/// Returns `count` random weights, quantised on the host.
fn random_blocks(format: BlockFormat, count: usize) -> Vec<u8> {
    quant::quantize(format, &random::<f32>(1, count)).expect("they are whole blocks")
}

#[test]
fn quantised_blocks_match_host() {
    each_variant("quantize", |kernels, what| {
        let gpu = kernels.device();
        for format in BlockFormat::ALL {
            for count in [256, 7 * 256, 103 * 256] {
                let x = succeed(gpu.upload(&random::<f32>(1, count + 1)));
                let mut expected = random_blocks(format, count);
                expected.push(0xee);
                let blocks = succeed(gpu.upload(&vec![0xeeu8; expected.len()]));
                let Some(op) = supported(kernels.quantize(format, &x, &blocks, count)) else {
                    return;
                };
                succeed(op.run());
                assert!(succeed(blocks.download()) == expected, "{what}, {format:?}, {count}");
            }
        }
    });
}

fn check_dequantize<T: Float>(kernels: &Kernels, what: &str) {
    let gpu = kernels.device();
    for format in BlockFormat::ALL {
        for count in [512, 34 * 256, 1026 * 256] {
            let blocks = random_blocks(format, count);
            let weights = quant::dequantize(format, &blocks).expect("they are whole blocks");
            let blocks = succeed(gpu.upload(&blocks));
            let y = poisoned::<T>(gpu, count + 1);
            let Some(op) = supported(kernels.dequantize(format, &blocks, &y, count)) else {
                return;
            };
            succeed(op.run());
            let y = succeed(y.download());
            // Vulkan may contract a product and a difference to an FMA.
            let expected: Vec<f64> =
                weights.into_iter().map(|weight| T::round(weight).wide()).collect();
            let what = format!("{what}, {format:?}, {count} weights, {}", type_name::<T>());
            assert_close(&what, 2.0, 1.0, &y[..count], &expected);
            assert!(y[count].wide().is_nan(), "{what}: wrote beyond the weights");
        }
    }
}

#[test]
fn dequantised_weights_match_host() {
    each_variant("dequantize", |kernels, what| {
        check_dequantize::<f32>(kernels, what);
        check_dequantize::<f16>(kernels, what);
        check_dequantize::<bf16>(kernels, what);
    });
}

/// Multiplies, and compares all results. Kernels may quantise the activations, so the tolerance is
/// relative to the sum of absolute products.
fn check_product<X: Float, Y: Float>(
    kernels: &Kernels,
    what: &str,
    format: BlockFormat,
    [rows, k]: [usize; 2],
    columns: usize,
) {
    let gpu = kernels.device();
    let (blocks, x) = (random_blocks(format, rows * k), random::<X>(2, k * columns));
    let (device_blocks, device_x) = (succeed(gpu.upload(&blocks)), succeed(gpu.upload(&x)));
    let y = poisoned::<Y>(gpu, rows * columns);
    let op = kernels.quantized_matmul(format, &device_blocks, &device_x, &y, [rows, k], columns);
    let Some(op) = supported(op) else { return };
    succeed(op.run());
    let weights = quant::dequantize(format, &blocks).expect("they are whole blocks");
    for (i, result) in succeed(y.download()).into_iter().enumerate() {
        let (column, row) = (i / rows, i % rows);
        let pairs = weights[row * k..][..k].iter().zip(&x[column * k..][..k]);
        let add = |(sum, abs_sum), (w, x): (&f32, &X)| {
            let product = f64::from(*w) * x.wide();
            (sum + product, abs_sum + f64::abs(product))
        };
        let (expected, abs_sum) = pairs.fold((0.0, 0.0), add);
        let result = result.wide();
        let is_close = (result - expected).abs() <= 1e-2 * abs_sum;
        assert!(
            is_close,
            "{what}, {format:?}, {rows} x {k}, column {column} of {columns}, row \
                           {row}: {result}, expected {expected}"
        );
    }
}

#[test]
fn quantised_products_match_reference() {
    each_variant("quantized_matmul", |kernels, what| {
        for format in BlockFormat::ALL {
            for (shape, columns) in
                [([2, 256], 1), ([34, 768], 3), ([126, 1024], 8), ([10, 512], 17)]
            {
                check_product::<f32, f32>(kernels, what, format, shape, columns);
                check_product::<f16, f32>(kernels, what, format, shape, columns);
                check_product::<bf16, bf16>(kernels, what, format, shape, columns);
            }
        }
    });
}

#[test]
fn partial_blocks_are_rejected() {
    let gpu = succeed(scry_gpu::Device::open("cpu"));
    let kernels = succeed(Kernels::new(&gpu));
    let (x, blocks) = (poisoned::<f32>(&gpu, 300), succeed(gpu.alloc::<u8>(300)));
    let error = kernels.quantize(BlockFormat::Q4K, &x, &blocks, 300).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Kernels::quantize: `count` is 300, not a multiple of the 256 weights of a block; help: \
         pass a multiple of 256"
    );
    let product = kernels.quantized_matmul(BlockFormat::Q8_0, &blocks, &x, &x, [2, 33], 1);
    assert_eq!(
        product.unwrap_err().to_string(),
        "Kernels::quantized_matmul: `k` is 33, not a multiple of the 32 weights of a block; help: \
         pass a multiple of 32"
    );
}
