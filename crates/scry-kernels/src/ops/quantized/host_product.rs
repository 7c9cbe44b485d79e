//! Products with quantised weights on the CPU device.
//!
//! Few columns are multiplied block by block in registers, so that weights are read once, as they
//! are stored. For more columns, rows of weights are dequantised to memory of the size of an L2
//! cache, and multiplied as other matrices are.

use std::marker::PhantomData;

use scry_gpu::{HostArguments, HostThreads, PreparedLaunch, Result};
use scry_ptx::kernels::quant::{self, BlockFormat, MatMul, Prologue};

use super::QuantizedProduct;
use crate::host::{HostNumbers, Vectorised, vectorised, write_as_f32};
use crate::host_gemm::{HostStrides, host_gemm};
use crate::operation::{Operation, Preparation};
use crate::ptx;

/// Weights of a block of the formats that are multiplied in registers.
const BLOCK: usize = 32;

/// The most columns that are multiplied block by block.
const MAX_COLUMNS: usize = 4;

/// Weights that are dequantised at a time: 1 MiB of them.
const CHUNK: usize = 1 << 18;

/// Products of a weight and an activation for which another thread is worth it.
const MIN_PRODUCTS: usize = 1 << 16;

pub(super) fn prepare(
    it: &QuantizedProduct,
    preparation: &Preparation<'_>,
) -> Result<Vec<PreparedLaunch>> {
    let (product, prologue) = (it.product, it.prologue);
    preparation.host("host_quantized", it.arguments(), move |arguments| {
        multiply(&product, prologue, arguments);
    })
}

fn multiply(product: &MatMul, prologue: Prologue, arguments: &mut HostArguments<'_>) {
    let MatMul { format, rows, k, columns, activations, output } = *product;
    let [rows, k, columns] = [rows, k, columns].map(|size| size as usize);
    let bytes = rows * k / format.block_len() * format.block_bytes();
    let weights = &arguments.read::<u8>(0)[..bytes];
    let x = HostNumbers::read(arguments, 1, ptx::dtype(activations));
    let gated = match prologue {
        Prologue::None => None,
        Prologue::SwiGlu => Some(swiglu(x.as_slice(), [k, columns])),
    };
    let x = gated.as_deref().unwrap_or(&x.as_slice()[..columns * k]);
    let threads = arguments.threads();
    write_as_f32(arguments, 2, ptx::dtype(output), |y| {
        let y = &mut y[..columns * rows];
        if k == 0 {
            return y.fill(0.0);
        }
        match format {
            _ if columns > MAX_COLUMNS => {
                by_gemm((threads, format), weights, x, y, [rows, k, columns]);
            }
            BlockFormat::Q4_0 => by_blocks::<Q4_0, 18>(threads, weights, x, y, k),
            BlockFormat::Q4_1 => by_blocks::<Q4_1, 20>(threads, weights, x, y, k),
            BlockFormat::Q8_0 => by_blocks::<Q8_0, 34>(threads, weights, x, y, k),
            BlockFormat::Q4K | BlockFormat::Q5K | BlockFormat::Q6K => {
                by_rows(threads, (format, weights), x, y, k);
            }
        }
    });
}

/// Returns `silu(gate) * up` of columns with `k` elements of each.
fn swiglu(x: &[f32], [k, columns]: [usize; 2]) -> Vec<f32> {
    let column = |column: usize| {
        let (gate, up) = x[2 * column * k..][..2 * k].split_at(k);
        gate.iter().zip(up).map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up)
    };
    (0..columns).flat_map(column).collect()
}

/// Multiplies all columns with some rows of dequantised weights at a time.
fn by_gemm(
    (threads, format): (HostThreads<'_>, BlockFormat),
    weights: &[u8],
    x: &[f32],
    y: &mut [f32],
    [rows, k, columns]: [usize; 3],
) {
    let row_bytes = k / format.block_len() * format.block_bytes();
    let at_a_time = (CHUNK / k).clamp(1, rows);
    let mut dequantised = vec![0.0; at_a_time * k];
    for first in (0..rows).step_by(at_a_time) {
        let count = at_a_time.min(rows - first);
        let blocks = &weights[first * row_bytes..][..count * row_bytes];
        let dequantised = &mut dequantised[..count * k];
        let rows_of_part = (MIN_PRODUCTS / k).max(1);
        threads.for_each_chunk(dequantised, rows_of_part * k, |start, part| {
            let blocks = &blocks[start / k * row_bytes..][..part.len() / k * row_bytes];
            decode(format, blocks, part);
        });
        // The rows of the result are contiguous: y is column-major.
        let row_major = HostStrides { rows: k, columns: 1 };
        let column_major = |ld: usize| HostStrides { rows: 1, columns: ld };
        host_gemm(
            Some(threads),
            [count, columns, k],
            [1.0, 0.0],
            (dequantised, row_major),
            (x, column_major(k)),
            (&mut y[first..], column_major(rows)),
        );
    }
}

/// Dequantises whole blocks.
fn decode(format: BlockFormat, blocks: &[u8], weights: &mut [f32]) {
    match format {
        BlockFormat::Q4_0 => decode_blocks::<Q4_0, 18>(blocks, weights),
        BlockFormat::Q4_1 => decode_blocks::<Q4_1, 20>(blocks, weights),
        BlockFormat::Q8_0 => decode_blocks::<Q8_0, 34>(blocks, weights),
        BlockFormat::Q4K | BlockFormat::Q5K | BlockFormat::Q6K => {
            let decoded = quant::dequantize(format, blocks).expect("parts are whole blocks");
            weights.copy_from_slice(&decoded);
        }
    }
}

fn decode_blocks<F: Format<BYTES>, const BYTES: usize>(blocks: &[u8], weights: &mut [f32]) {
    let (blocks, weights) = (blocks.as_chunks().0, weights.as_chunks_mut().0);
    vectorised(Decode::<F, BYTES> { blocks, weights, format: PhantomData });
}

/// The dequantisation of blocks.
struct Decode<'d, F, const BYTES: usize> {
    blocks: &'d [[u8; BYTES]],
    weights: &'d mut [[f32; BLOCK]],
    format: PhantomData<F>,
}

impl<F: Format<BYTES>, const BYTES: usize> Vectorised for Decode<'_, F, BYTES> {
    #[inline(always)]
    fn compute(self, _: bool) {
        for (block, weights) in self.blocks.iter().zip(self.weights) {
            let ([d, m], q) = (F::scales(block), F::integers(block));
            for nth in 0..BLOCK {
                weights[nth] = d * q[nth] + m;
            }
        }
    }
}

/// Multiplies few columns with rows that are dequantised one by one.
fn by_rows(
    threads: HostThreads<'_>,
    (format, weights): (BlockFormat, &[u8]),
    x: &[f32],
    y: &mut [f32],
    k: usize,
) {
    let row_bytes = k / format.block_len() * format.block_bytes();
    each_row(threads, (weights, row_bytes), y, [k, x.len() / k], |row, sums| {
        let row = quant::dequantize(format, row).expect("rows are whole blocks");
        vectorised(Products { row: &row, x, sums });
    });
}

/// Products of a row with all columns.
struct Products<'p> {
    row: &'p [f32],
    x: &'p [f32],
    sums: &'p mut [f32],
}

impl Vectorised for Products<'_> {
    #[inline(always)]
    fn compute(self, fused: bool) {
        for (sum, x) in self.sums.iter_mut().zip(self.x.chunks_exact(self.row.len())) {
            let mut lanes = [0.0; LANES];
            let pairs = self.row.as_chunks::<LANES>().0.iter().zip(x.as_chunks::<LANES>().0);
            for (weights, x) in pairs {
                add_products(fused, &mut lanes, weights, x);
            }
            *sum = lanes.iter().sum();
        }
    }
}

/// Multiplies few columns with rows of blocks.
fn by_blocks<F: Format<BYTES>, const BYTES: usize>(
    threads: HostThreads<'_>,
    weights: &[u8],
    x: &[f32],
    y: &mut [f32],
    k: usize,
) {
    let (x, _) = x.as_chunks::<BLOCK>();
    let blocks = k / BLOCK;
    // Offsets are multiplied with the sums of the activations of a block.
    let block_sums: Vec<f32> = x.iter().map(|x| x.iter().sum()).collect();
    let columns = x.len() / blocks;
    each_row(threads, (weights, blocks * BYTES), y, [k, columns], |row, sums| {
        let (row, block_sums) = (row.as_chunks().0, &*block_sums);
        vectorised(BlockProducts::<F, BYTES> { row, x, block_sums, sums, format: PhantomData });
    });
}

/// Products of a row of blocks with all columns.
struct BlockProducts<'p, F, const BYTES: usize> {
    row: &'p [[u8; BYTES]],
    x: &'p [[f32; BLOCK]],
    block_sums: &'p [f32],
    sums: &'p mut [f32],
    format: PhantomData<F>,
}

impl<F: Format<BYTES>, const BYTES: usize> Vectorised for BlockProducts<'_, F, BYTES> {
    #[inline(always)]
    fn compute(self, fused: bool) {
        let blocks = self.row.len();
        for (nth, sum) in self.sums.iter_mut().enumerate() {
            let range = nth * blocks..(nth + 1) * blocks;
            let (x, block_sums) = (&self.x[range.clone()], &self.block_sums[range]);
            *sum = dot::<F, BYTES>(fused, self.row, x, block_sums);
        }
    }
}

/// Calls a function with the blocks of each row and the row's results for all columns, on all
/// threads.
fn each_row(
    threads: HostThreads<'_>,
    (weights, row_bytes): (&[u8], usize),
    y: &mut [f32],
    [k, columns]: [usize; 2],
    row: impl Fn(&[u8], &mut [f32]) + Send + Sync,
) {
    let rows = y.len() / columns;
    let rows_of_part = (MIN_PRODUCTS / (k * columns)).max(1);
    let all_rows = |first: usize, sums: &mut [f32]| {
        let weights = &weights[first * row_bytes..];
        for (blocks, sums) in weights.chunks_exact(row_bytes).zip(sums.chunks_exact_mut(columns)) {
            row(blocks, sums);
        }
    };
    if columns == 1 {
        return threads.for_each_chunk(y, rows_of_part, all_rows);
    }
    let mut sums = vec![0.0; y.len()];
    threads.for_each_chunk(&mut sums, rows_of_part * columns, |first, part| {
        all_rows(first / columns, part);
    });
    for (nth, y) in y.iter_mut().enumerate() {
        *y = sums[nth % rows * columns + nth / rows];
    }
}

/// Sums that are added independently of each other, as vector instructions do.
const LANES: usize = 8;

#[inline(always)]
fn add_products(fused: bool, lanes: &mut [f32; LANES], a: &[f32; LANES], b: &[f32; LANES]) {
    for lane in 0..LANES {
        lanes[lane] = match fused {
            true => a[lane].mul_add(b[lane], lanes[lane]),
            // Without the instruction, a fused operation is a call.
            false => lanes[lane] + a[lane] * b[lane],
        };
    }
}

/// Returns the inner product of a row of blocks with activations, whose sums are those of blocks.
#[inline(always)]
fn dot<F: Format<BYTES>, const BYTES: usize>(
    fused: bool,
    row: &[[u8; BYTES]],
    x: &[[f32; BLOCK]],
    block_sums: &[f32],
) -> f32 {
    let (mut lanes, mut offsets) = ([0.0; LANES], 0.0);
    for ((block, x), sum) in row.iter().zip(x).zip(block_sums) {
        let ([d, m], q) = (F::scales(block), F::integers(block));
        let mut products = [0.0; LANES];
        for (q, x) in q.as_chunks::<LANES>().0.iter().zip(x.as_chunks::<LANES>().0) {
            add_products(fused, &mut products, q, x);
        }
        add_products(fused, &mut lanes, &[d; LANES], &products);
        if F::HAS_OFFSET {
            offsets += m * sum;
        }
    }
    lanes.iter().sum::<f32>() + offsets
}

/// A format of blocks of 32 weights, each `d * q + m`.
trait Format<const BYTES: usize> {
    /// Whether `m` may differ from 0.
    const HAS_OFFSET: bool = true;

    /// Returns `d` and `m`.
    fn scales(block: &[u8; BYTES]) -> [f32; 2];

    /// Returns the integers.
    fn integers(block: &[u8; BYTES]) -> [f32; BLOCK];
}

struct Q4_0;
struct Q4_1;
struct Q8_0;

impl Format<18> for Q4_0 {
    #[inline(always)]
    fn scales(block: &[u8; 18]) -> [f32; 2] {
        let d = float([block[0], block[1]]);
        [d, -8.0 * d]
    }

    #[inline(always)]
    fn integers(block: &[u8; 18]) -> [f32; BLOCK] {
        nibbles(&block[2..])
    }
}

impl Format<20> for Q4_1 {
    #[inline(always)]
    fn scales(block: &[u8; 20]) -> [f32; 2] {
        [float([block[0], block[1]]), float([block[2], block[3]])]
    }

    #[inline(always)]
    fn integers(block: &[u8; 20]) -> [f32; BLOCK] {
        nibbles(&block[4..])
    }
}

impl Format<34> for Q8_0 {
    const HAS_OFFSET: bool = false;

    #[inline(always)]
    fn scales(block: &[u8; 34]) -> [f32; 2] {
        [float([block[0], block[1]]), 0.0]
    }

    #[inline(always)]
    fn integers(block: &[u8; 34]) -> [f32; BLOCK] {
        let mut q = [0.0; BLOCK];
        for (q, byte) in q.iter_mut().zip(&block[2..]) {
            *q = f32::from(*byte as i8);
        }
        q
    }
}

/// Returns the low bits of 16 bytes, and then their high bits.
#[inline(always)]
fn nibbles(bytes: &[u8]) -> [f32; BLOCK] {
    let mut q = [0.0; BLOCK];
    let (low, high) = q.split_at_mut(16);
    for (q, byte) in low.iter_mut().zip(bytes) {
        *q = f32::from(byte & 15);
    }
    for (q, byte) in high.iter_mut().zip(bytes) {
        *q = f32::from(byte >> 4);
    }
    q
}

/// Returns an `f16` as `f32`, without a call, so that loops over blocks stay in registers.
#[inline(always)]
fn float(bytes: [u8; 2]) -> f32 {
    let bits = u32::from(u16::from_le_bytes(bytes));
    let magnitude = (bits & 0x7fff) << 13;
    // 2^112 corrects the bias of the exponent, and normalises subnormal numbers.
    let finite = f32::from_bits(magnitude) * f32::from_bits((112 + 127) << 23);
    let is_special = bits & 0x7c00 == 0x7c00;
    let special = f32::from_bits(magnitude | 0x7f80_0000);
    let absolute = if is_special { special } else { finite };
    f32::from_bits(absolute.to_bits() | (bits & 0x8000) << 16)
}

#[cfg(test)]
mod tests {
    use scry_gpu::f16;

    use super::*;

    #[test]
    fn scales_are_converted_exactly() {
        for bits in 0..=u16::MAX {
            let (found, wanted) = (float(bits.to_le_bytes()), f16::from_bits(bits).to_f32());
            assert!(found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan());
        }
    }
}
