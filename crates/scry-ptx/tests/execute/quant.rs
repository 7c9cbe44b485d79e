//! Executes the kernels that quantise and dequantise weights, and compares them with the host.

use scry_ptx::PtxType;
use scry_ptx::kernels::quant::{
    BlockFormat, MatVec, Prologue, dequantize, dequantize_plan, quantize, quantize_plan,
};

use super::plans::{execute, numbers};

/// Returns the bytes of floats.
fn bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|float| float.to_le_bytes()).collect()
}

/// Returns floats of their bytes.
fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// Blocks of weights: ordinary ones, and those with unusual scales, ties, NaN and infinities.
fn weights(format: BlockFormat) -> Vec<f32> {
    let len = format.block_len();
    let ordinary = numbers(5 * len);
    let one = &ordinary[..len];
    let scaled = |by: f32| one.iter().map(|x| x * by).collect::<Vec<_>>();
    let changed = |changes: &[(usize, f32)]| {
        let mut weights = one.to_vec();
        changes.iter().for_each(|(at, weight)| weights[*at] = *weight);
        weights
    };
    [
        ordinary.clone(),
        vec![0.0; len],
        vec![-0.0; len],
        vec![1.0; len],
        scaled(1e-5),
        scaled(1e-9),
        scaled(1e-42),
        scaled(1e6),
        vec![f32::MAX; len],
        (0..len).map(|nth| if nth % 2 == 0 { f32::MAX } else { f32::MIN }).collect(),
        changed(&[(3, 2.0), (20, -2.0)]),
        changed(&[(3, -2.0), (20, 2.0)]),
        changed(&[(0, f32::NAN), (31, f32::NAN)]),
        changed(&[(9, f32::NEG_INFINITY), (8, f32::INFINITY)]),
        vec![f32::NAN; len],
        vec![f32::INFINITY; len],
        vec![f32::NEG_INFINITY; len],
        (0..len).map(|nth| (nth as f32 - 16.0) / 2.0).collect(),
    ]
    .concat()
}

#[test]
fn quantised_blocks_have_the_bytes_of_the_host() {
    for format in BlockFormat::ALL {
        let weights = weights(format);
        let expected = quantize(format, &weights).unwrap();
        let plan = quantize_plan(format, weights.len() as u64).unwrap();
        let found = execute(&plan, &[bytes(&weights), vec![0xa5; expected.len()]]);
        let blocks = found.chunks(format.block_bytes()).zip(expected.chunks(format.block_bytes()));
        for (nth, (found, expected)) in blocks.enumerate() {
            let weights = &weights[nth * format.block_len()..][..format.block_len()];
            assert_eq!(found, expected, "{format:?}, block {nth}: {weights:?}");
        }
    }
}

#[test]
fn dequantised_weights_have_the_bits_of_the_host() {
    for format in BlockFormat::ALL {
        let blocks = quantize(format, &numbers(9 * format.block_len())).unwrap();
        let expected = dequantize(format, &blocks).unwrap();
        let plan = dequantize_plan(format, PtxType::F32, expected.len() as u64).unwrap();
        let found = execute(&plan, &[blocks, vec![0xa5; 4 * expected.len()]]);
        assert_eq!(floats(&found), expected, "{format:?}");
    }
}

#[test]
fn gated_products_are_those_of_swiglu() {
    let silu = |x: f32| f64::from(x) / (1.0 + f64::from(-x).exp());
    for format in [BlockFormat::Q4_1, BlockFormat::Q6K] {
        // Quantised by each block, and by a kernel before.
        for (spans, launches) in [(2, 1), (9, 2)] {
            let (rows, k) = (5, spans * 256);
            let blocks = quantize(format, &numbers(rows * k)).unwrap();
            let weights = dequantize(format, &blocks).unwrap();
            for columns in [1, 2] {
                let x: Vec<f32> = numbers(2 * columns * k).iter().map(|x| 3.0 * x).collect();
                let product = MatVec {
                    format,
                    rows: rows as u64,
                    k: k as u64,
                    columns: columns as u32,
                    activations: PtxType::F32,
                    prologue: Prologue::SwiGlu,
                };
                let plan = product.portable_plan().unwrap();
                assert_eq!(plan.steps.len(), launches, "{format:?}, {spans} spans");
                let out = vec![0xa5; 4 * rows * columns];
                let found = floats(&execute(&plan, &[blocks.clone(), bytes(&x), out]));
                for (nth, found) in found.into_iter().enumerate() {
                    let (row, column) = (&weights[nth % rows * k..][..k], nth / rows);
                    let (gate, up) = x[2 * column * k..][..2 * k].split_at(k);
                    let gated = gate.iter().zip(up).map(|(g, u)| silu(*g) * f64::from(*u));
                    let products = row.iter().zip(gated).map(|(w, x)| f64::from(*w) * x);
                    let (sum, magnitude) =
                        products.fold((0.0, 0.0), |(sum, all), it| (sum + it, all + it.abs()));
                    let is_close = (f64::from(found) - sum).abs() <= 1e-4 * magnitude;
                    assert!(is_close, "{format:?}, {nth}: {found}, expected {sum}");
                }
            }
        }
    }
}

#[test]
fn portable_products_are_those_of_dequantised_weights() {
    for format in BlockFormat::ALL {
        // Short of a whole span of 256 weights, where blocks allow it. Each block quantises few
        // activations itself.
        for (spans, launches) in [(2, 1), (8, 2)] {
            let (rows, k) = (5, spans * 256 + if format.block_len() < 256 { 96 } else { 256 });
            let blocks = quantize(format, &numbers(rows * k)).unwrap();
            let weights = dequantize(format, &blocks).unwrap();
            for columns in [1, 2, 3] {
                let x = numbers(columns * k + 1)[1..].to_vec();
                let [rows_u64, k_u64] = [rows, k].map(|size| size as u64);
                let activations = PtxType::F32;
                let product = MatVec {
                    format,
                    rows: rows_u64,
                    k: k_u64,
                    columns: columns as u32,
                    activations,
                    prologue: Prologue::None,
                };
                let out = vec![0xa5; 4 * rows * columns];
                let plan = product.portable_plan().unwrap();
                let own = if columns < 3 { launches } else { 2 };
                assert_eq!(plan.steps.len(), own, "{format:?}, {spans} spans, {columns} columns");
                let found = floats(&execute(&plan, &[blocks.clone(), bytes(&x), out]));
                for (nth, found) in found.into_iter().enumerate() {
                    let (row, x) = (&weights[nth % rows * k..][..k], &x[nth / rows * k..][..k]);
                    let products = || row.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x));
                    let sum: f64 = products().sum();
                    let magnitude: f64 = products().map(f64::abs).sum();
                    let is_close = (f64::from(found) - sum).abs() <= 1e-4 * magnitude;
                    assert!(
                        is_close,
                        "{format:?}, {columns} columns, {nth}: {found}, expected {sum}"
                    );
                }
            }
        }
    }
}
