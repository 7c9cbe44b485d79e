//! Tests of quantised weights, against the encoder and decoder on the host.

use scry_gpu::{bf16, f16};
use scry_kernels::{BlockFormat, KernelOptions, Kernels};
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
            for blocks in [1, 2, 3, 31, 257] {
                let count = blocks * format.block_len();
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

/// Blocks of weights that exercise the rounding of scales and the search for them.
fn unusual_weights(format: BlockFormat) -> Vec<f32> {
    let len = format.block_len();
    let numbers = random::<f32>(7, len);
    let changed = |changes: &[(usize, f32)]| {
        let mut weights = numbers.clone();
        changes.iter().for_each(|(at, weight)| weights[*at] = *weight);
        weights
    };
    let scaled = |by: f32| numbers.iter().map(|x| x * by).collect::<Vec<_>>();
    let blocks = [
        vec![0.0; len],
        vec![-0.0; len],
        vec![1.0; len],
        vec![-1.0; len],
        // Scales that are subnormal, round to zero, or exceed the range of f16.
        scaled(1e-5),
        scaled(3e-7),
        scaled(1e-9),
        scaled(1e-38),
        scaled(1e-42),
        scaled(1e6),
        scaled(1e30),
        vec![f32::MAX; len],
        (0..len).map(|nth| if nth % 2 == 0 { f32::MAX } else { f32::MIN }).collect(),
        // Of two largest ones the first counts, or the positive one.
        changed(&[(3, 2.0), (20, -2.0)]),
        changed(&[(3, -2.0), (20, 2.0)]),
        changed(&[(0, f32::NAN)]),
        changed(&[(31, f32::NAN), (5, -f32::NAN)]),
        changed(&[(0, f32::INFINITY)]),
        changed(&[(9, f32::NEG_INFINITY), (8, f32::INFINITY)]),
        vec![f32::NAN; len],
        vec![f32::INFINITY; len],
        vec![f32::NEG_INFINITY; len],
        // Halves of steps, and groups of very different scales.
        (0..len).map(|nth| (nth as f32 - 16.0) / 2.0).collect(),
        (0..len).map(|nth| numbers[nth] * 10f32.powi(nth as i32 / 32 - 4)).collect(),
        (0..len).map(|nth| numbers[nth].abs() + 3.0).collect(),
        (0..len).map(|nth| -numbers[nth].abs() - 3.0).collect(),
    ];
    blocks.concat()
}

#[test]
fn unusual_blocks_match_host() {
    each_variant("quantize", |kernels, what| {
        let gpu = kernels.device();
        for format in BlockFormat::ALL {
            let weights = unusual_weights(format);
            let expected = quant::quantize(format, &weights).expect("they are whole blocks");
            let x = succeed(gpu.upload(&weights));
            let blocks = succeed(gpu.upload(&vec![0xeeu8; expected.len()]));
            let Some(op) = supported(kernels.quantize(format, &x, &blocks, weights.len())) else {
                return;
            };
            succeed(op.run());
            let bytes = format.block_bytes();
            let blocks = succeed(blocks.download());
            for (nth, expected) in expected.chunks(bytes).enumerate() {
                let mut block = blocks[nth * bytes..][..bytes].to_vec();
                let weights = &weights[nth * format.block_len()..][..format.block_len()];
                // A device may flush subnormal weights; then a zero loses its sign.
                if weights.iter().all(|weight| weight.abs() < f32::MIN_POSITIVE) {
                    let sign = if format == BlockFormat::Q6K { 209 } else { 1 };
                    block[sign] = block[sign] & 0x7f | expected[sign] & 0x80;
                }
                assert!(block == expected, "{what}, {format:?}, block {nth}, {weights:?}");
            }
        }
    });
}

fn check_dequantize<T: Float>(kernels: &Kernels, what: &str) {
    let gpu = kernels.device();
    for format in BlockFormat::ALL {
        for blocks in [1, 2, 33, 1009] {
            let count = blocks * format.block_len();
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

#[test]
fn unusual_scales_are_dequantised() {
    // Subnormal, the largest, infinite and NaN.
    let scales = [0x0001u16, 0x8155, 0x03ff, 0x0400, 0x7bff, 0xfc00, 0x7e00, 0x8000];
    each_variant("dequantize", |kernels, what| {
        let gpu = kernels.device();
        for format in BlockFormat::ALL {
            let mut blocks = random_blocks(format, scales.len() * format.block_len());
            let bytes = format.block_bytes();
            for (block, scale) in blocks.chunks_mut(bytes).zip(scales) {
                let at = if format == BlockFormat::Q6K { 208 } else { 0 };
                block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
            }
            let expected = quant::dequantize(format, &blocks).expect("they are whole blocks");
            let (count, blocks) = (expected.len(), succeed(gpu.upload(&blocks)));
            let y = poisoned::<f32>(gpu, count);
            let Some(op) = supported(kernels.dequantize(format, &blocks, &y, count)) else {
                return;
            };
            succeed(op.run());
            for (nth, (y, expected)) in succeed(y.download()).iter().zip(&expected).enumerate() {
                let is_close = match expected.is_nan() {
                    true => y.is_nan(),
                    false => {
                        y == expected || (y - expected).abs() <= 2e-7 * expected.abs().max(1.0)
                    }
                };
                assert!(is_close, "{what}, {format:?}, weight {nth}: {y}, expected {expected}");
            }
        }
    });
}

/// Dequantises all rows by the variant of the same name, and compares the bits of those that are
/// selected.
fn check_rows<T: Float>(kernels: &Kernels, what: &str) {
    let gpu = kernels.device();
    let variant = if what.contains("`cpu`") { "cpu" } else { "wgsl" };
    let options = KernelOptions { variant: Some(variant.to_owned()), ..Default::default() };
    let whole = kernels.having(options);
    for format in BlockFormat::ALL {
        for [rows, blocks] in [[1, 1], [2, 3], [57, 2], [6, 5]] {
            let columns = blocks * format.block_len();
            let blocks = succeed(gpu.upload(&random_blocks(format, rows * columns)));
            let all = poisoned::<T>(gpu, rows * columns);
            // Devices without 16-bit types access whole words, and the whole table has some.
            let Some(op) = supported(whole.dequantize(format, &blocks, &all, rows * columns))
            else {
                continue;
            };
            succeed(op.run());
            let all = succeed(all.download());
            let indices: Vec<i32> = (0..70).map(|n| n * 31 % (rows as i32 + 2) - 1).collect();
            let y = poisoned::<T>(gpu, indices.len() * columns + 1);
            let at = succeed(gpu.upload(&indices));
            let (sizes, count) = ([rows, columns], indices.len());
            let op = succeed(kernels.dequantize_rows(format, &blocks, &at, &y, sizes, count));
            succeed(op.run());
            let y = succeed(y.download());
            for (nth, index) in indices.iter().enumerate() {
                let is_row = (0..rows as i32).contains(index);
                for column in 0..columns {
                    let found = y[nth * columns + column].wide();
                    let wanted = match is_row {
                        true => all[*index as usize * columns + column].wide(),
                        false => 0.0,
                    };
                    let is_same = found.to_bits() == wanted.to_bits();
                    assert!(is_same, "{what}, {format:?}, row {index}: {found}, not {wanted}");
                }
            }
            assert!(y[count * columns].wide().is_nan(), "{what}: wrote beyond the rows");
        }
    }
}

#[test]
fn selected_rows_are_dequantised() {
    each_variant("dequantize_rows", |kernels, what| {
        let (format, rows) = (BlockFormat::Q8_0, [4, 32]);
        let blocks = succeed(kernels.device().upload(&random_blocks(format, 4 * 32)));
        let at = succeed(kernels.device().upload(&[0u32]));
        let y = poisoned::<f32>(kernels.device(), 32);
        if supported(kernels.dequantize_rows(format, &blocks, &at, &y, rows, 1)).is_none() {
            return;
        }
        check_rows::<f32>(kernels, what);
        check_rows::<f16>(kernels, what);
        check_rows::<bf16>(kernels, what);
        // No table: rows of zeros.
        let none = succeed(kernels.device().alloc::<u8>(0));
        let op = succeed(kernels.dequantize_rows(format, &none, &at, &y, [0, 32], 1));
        succeed(op.run());
        assert_eq!(succeed(y.download()), [0.0; 32], "{what}");
    });
}

/// What a product computes of its activations first.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    Nothing,
    SwiGlu,
}

/// Multiplies, and compares all results with the host's. Kernels may quantise the activations, so
/// the tolerance is relative to the sum of absolute products.
fn check_product<X: Float, Y: Float>(
    (kernels, before, what): (&Kernels, Before, &str),
    format: BlockFormat,
    [rows, k]: [usize; 2],
    columns: usize,
) {
    let gpu = kernels.device();
    let inputs = if before == Before::SwiGlu { 2 * k } else { k };
    let (blocks, x) = (random_blocks(format, rows * k), random::<X>(2, inputs * columns));
    let (weights, device_x) = (succeed(gpu.upload(&blocks)), succeed(gpu.upload(&x)));
    let y = poisoned::<Y>(gpu, rows * columns + 1);
    let multiply = match before {
        Before::Nothing => Kernels::quantized_matmul,
        Before::SwiGlu => Kernels::quantized_matmul_swiglu,
    };
    let op = multiply(kernels, format, &weights, &device_x, &y, [rows, k], columns);
    let Some(op) = supported(op) else { return };
    succeed(op.run());
    let weights = quant::dequantize(format, &blocks).expect("they are whole blocks");
    let results = succeed(y.download());
    assert!(results[rows * columns].wide().is_nan(), "{what}: wrote beyond the results");
    for (column, results) in results[..rows * columns].chunks_exact(rows).enumerate() {
        let x: Vec<f64> = x[column * inputs..][..inputs].iter().map(|x| x.wide()).collect();
        let (first, second) = x.split_at(k);
        let gated = first.iter().zip(second).map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up);
        let gated: Vec<f64> = gated.collect();
        let x = if before == Before::SwiGlu { &gated } else { &x };
        for (row, result) in results.iter().enumerate() {
            let products = weights[row * k..][..k].iter().zip(x).map(|(w, x)| f64::from(*w) * x);
            let add = |(sum, abs_sum), it| (sum + it, abs_sum + f64::abs(it));
            let (expected, abs_sum) = products.fold((0.0, 0.0), add);
            let result = result.wide();
            assert!(
                (result - expected).abs() <= 1e-2 * abs_sum,
                "{what}, {format:?}, {rows} x {k}, column {column} of {columns}, row {row}: \
                 {result}, expected {expected}"
            );
        }
    }
}

#[test]
fn quantised_products_match_reference() {
    each_variant("quantized_matmul", |kernels, what| {
        let call = (kernels, Before::Nothing, what);
        for format in BlockFormat::ALL {
            for (shape, columns) in
                [([1, 256], 1), ([33, 768], 3), ([127, 1024], 8), ([11, 512], 17)]
            {
                check_product::<f32, f32>(call, format, shape, columns);
                check_product::<f16, f32>(call, format, shape, columns);
                check_product::<bf16, bf16>(call, format, shape, columns);
            }
        }
    });
}

#[test]
fn swiglu_is_computed_before_products() {
    each_variant("quantized_matmul_swiglu", |kernels, what| {
        let call = (kernels, Before::SwiGlu, what);
        for format in [BlockFormat::Q4_1, BlockFormat::Q8_0, BlockFormat::Q4K] {
            for (shape, columns) in [([1, 256], 1), ([33, 768], 3), ([11, 512], 17)] {
                check_product::<f32, f32>(call, format, shape, columns);
                check_product::<bf16, bf16>(call, format, shape, columns);
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
    let at = succeed(gpu.upload(&[0u32]));
    let rows = kernels.dequantize_rows(BlockFormat::Q6K, &blocks, &at, &x, [1, 64], 1);
    assert_eq!(
        rows.unwrap_err().to_string(),
        "Kernels::dequantize_rows: `columns` is 64, not a multiple of the 256 weights of a block; \
         help: pass a multiple of 256"
    );
}

/// The CPU device does not round activations.
#[test]
fn products_on_cpu_are_exact() {
    let kernels = succeed(Kernels::new(&succeed(scry_gpu::Device::open("cpu"))));
    let gpu = kernels.device();
    for format in BlockFormat::ALL {
        for columns in [1, 2, 4, 5, 30] {
            let (rows, k) = (70, 512);
            let (blocks, x) = (random_blocks(format, rows * k), random::<f32>(2, k * columns));
            let (device_blocks, device_x) = (succeed(gpu.upload(&blocks)), succeed(gpu.upload(&x)));
            let y = poisoned::<f32>(gpu, rows * columns + 1);
            let sizes = [rows, k];
            let op =
                kernels.quantized_matmul(format, &device_blocks, &device_x, &y, sizes, columns);
            let op = succeed(op);
            assert_eq!(op.explain().variant(), "cpu");
            succeed(op.run());
            let weights = quant::dequantize(format, &blocks).expect("they are whole blocks");
            let found = succeed(y.download());
            assert_eq!(
                found[rows * columns].to_bits(),
                f32::POISON.to_bits(),
                "written beyond the end"
            );
            for (i, found) in found[..rows * columns].iter().enumerate() {
                let (column, row) = (i / rows, i % rows);
                let pairs = weights[row * k..][..k].iter().zip(&x[column * k..][..k]);
                let products = pairs.map(|(w, x)| f64::from(*w) * f64::from(*x));
                let (sum, scale) = products.fold((0.0, 0.0), |it, p| (it.0 + p, it.1 + p.abs()));
                let error = (f64::from(*found) - sum).abs();
                assert!(error <= 2e-6 * scale, "{format:?}, {columns} columns: {error} of {scale}");
            }
        }
    }
}
