//! Quantised weights, in the format Q4_0: a block of 32 weights is a scale `d` and integers `q` of
//! four bits; a weight is `d * (q - 8)`.

use scry_gpu::f16;
use scry_kernels::BlockFormat;

use super::{Result, Tour, check, check_equal, dot, wide};

pub(super) fn visit(tour: &mut Tour) -> Result {
    let (format, rows, k) = (BlockFormat::Q4_0, 64 * tour.scale, 256);
    let (weights, host_weights) = tour.random(1, rows * k)?;
    let encoded: Vec<u8> = host_weights.chunks(32).flat_map(encode).collect();
    let decoded: Vec<f64> = encoded.chunks(18).flat_map(decode).collect();
    let blocks = tour.gpu.alloc::<u8>(encoded.len())?;
    let sizes = format!("Q4_0 {rows} x {k}");
    let bytes = 4 * rows * k + encoded.len();

    let op = tour.kernels.quantize(format, &weights, &blocks, rows * k);
    tour.show("quantize", &sizes, op, bytes, || check_equal(&blocks, &encoded))?;

    let blocks = tour.gpu.upload(&encoded)?;
    let op = tour.kernels.dequantize(format, &blocks, &weights, rows * k);
    tour.show("dequantize", &sizes, op, bytes, || check(&weights, &decoded, 1e-6))?;

    let (indices, count) = ([3u32, 0, rows as u32 - 1], 3);
    let (at, y) = (tour.gpu.upload(&indices)?, tour.gpu.alloc::<f32>(count * k)?);
    let op = tour.kernels.dequantize_rows(format, &blocks, &at, &y, [rows, k], count);
    let row = |index: &u32| &decoded[*index as usize * k..][..k];
    let selected: Vec<f64> = indices.iter().flat_map(row).copied().collect();
    let bytes = count * (4 * k + encoded.len() / rows);
    tour.show("dequantize_rows", &sizes, op, bytes, || check(&y, &selected, 1e-6))?;

    let ((x, host_x), y) = (tour.random(2, k)?, tour.gpu.alloc::<f32>(rows)?);
    let host_x = wide(&host_x);
    let expected: Vec<f64> = decoded.chunks(k).map(|row| dot(row, &host_x)).collect();
    let op = tour.kernels.quantized_matmul(format, &blocks, &x, &y, [rows, k], 1);
    // CUDA quantises the activations too.
    tour.show("quantized_matmul", &format!("{sizes} x 1"), op, encoded.len(), || {
        check(&y, &expected, 1e-2)
    })?;

    let (both, host_both) = tour.random(3, 2 * k)?;
    let (gate, up) = host_both.split_at(k);
    let silu = |x: f32| f64::from(x) / (1.0 + f64::from(-x).exp());
    let gated: Vec<f64> = gate.iter().zip(up).map(|(g, u)| silu(*g) * f64::from(*u)).collect();
    let expected: Vec<f64> = decoded.chunks(k).map(|row| dot(row, &gated)).collect();
    let op = tour.kernels.quantized_matmul_swiglu(format, &blocks, &both, &y, [rows, k], 1);
    tour.show("quantized_matmul_swiglu", &format!("{sizes} x 1"), op, encoded.len(), || {
        check(&y, &expected, 1e-2)
    })
}

fn encode(weights: &[f32]) -> Vec<u8> {
    let largest = |a: f32, b: &f32| if b.abs() > a.abs() { *b } else { a };
    let d = weights.iter().fold(0.0, largest) / -8.0;
    let q: Vec<u8> = weights.iter().map(|x| ((x * (1.0 / d) + 8.5) as u8).min(15)).collect();
    let pairs = (0..16).map(|nth| q[nth] | q[nth + 16] << 4);
    f16::from_f32(d).to_le_bytes().into_iter().chain(pairs).collect()
}

fn decode(block: &[u8]) -> Vec<f64> {
    let d = f16::from_le_bytes([block[0], block[1]]).to_f64();
    let q = |nth: usize| block[2 + nth % 16] >> (4 * (nth / 16)) & 15;
    (0..32).map(|nth| d * (f64::from(q(nth)) - 8.0)).collect()
}
