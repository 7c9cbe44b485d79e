//! Products of quantised matrices and one to eight columns, compared with the copy bandwidth of our
//! own device: the operation is bound by the read of the weights.

use anyhow::{Result, ensure};
use scry_gpu::Buffer;
use scry_kernels::BlockFormat;

use crate::Bench;
use crate::element::Rng;
use scry_bench::table::{Goal, Row};

/// Rows and columns of the weights.
const SHAPES: [[usize; 2]; 2] = [[4096, 14336], [14336, 4096]];

/// Minimum ratio of each format to the rate of a copy, for one column.
const GOALS: [(BlockFormat, f64); 4] = [
    (BlockFormat::Q4K, 0.75),
    (BlockFormat::Q5K, 0.70),
    (BlockFormat::Q6K, 0.75),
    (BlockFormat::Q8_0, 0.75),
];

/// Columns of activations that are measured.
const COLUMNS: [usize; 3] = [1, 4, 8];

/// Alternating copies of the weights: together more than the caches hold.
const COPIES: usize = 10;

/// Compares all formats. Does nothing if random shapes are asked for.
pub fn run(bench: &mut Bench) -> Result<()> {
    if bench.shape_seed.is_some() {
        return Ok(());
    }
    let copy_rate = measure_copy_rate(bench)?;
    println!("our copy: {:.2} TB/s, read and written", copy_rate / 1e12);
    for shape in SHAPES {
        for (format, min_ratio) in GOALS {
            compare(bench, shape, (format, min_ratio), copy_rate)?;
        }
    }
    Ok(())
}

/// Returns the bytes per second, read and written, of a large copy within the device.
fn measure_copy_rate(bench: &Bench) -> Result<f64> {
    const BYTES: usize = 1 << 30;
    const COPIES: usize = 10;
    let device = bench.kernels.device();
    let (from, to) = (device.alloc::<u8>(BYTES)?, device.alloc::<u8>(BYTES)?);
    let mut batch = device.batch();
    for _ in 0..COPIES {
        batch.copy(&from, &to)?;
    }
    let seconds = bench.median_replay(&batch.record()?)?;
    Ok((2 * BYTES * COPIES) as f64 / seconds)
}

fn compare(
    bench: &mut Bench,
    [rows, k]: [usize; 2],
    (format, min_ratio): (BlockFormat, f64),
    copy_rate: f64,
) -> Result<()> {
    let kernels = bench.kernels.clone();
    let (device, mut rng) = (kernels.device(), Rng(1));
    let bytes = rows * k / format.block_len() * format.block_bytes();
    let numbers = device.upload(&rng.elements::<f32>(rows * k))?;
    let blocks = device.alloc::<u8>(bytes)?;
    kernels.quantize(format, &numbers, &blocks, rows * k)?.run()?;
    let copies = (0..COPIES).map(|_| {
        let copy = device.alloc::<u8>(bytes)?;
        blocks.copy_to(&copy)?;
        Ok(copy)
    });
    let copies: Vec<Buffer<u8>> = copies.collect::<Result<_>>()?;
    for columns in COLUMNS {
        let x = device.upload(&rng.elements::<f32>(k * columns))?;
        let y = device.alloc::<f32>(rows * columns)?;
        let prepare = |weights: &Buffer<u8>| {
            kernels.quantized_matmul(format, weights, &x, &y, [rows, k], columns)
        };
        let prepared = copies.iter().map(prepare).collect::<scry_gpu::Result<Vec<_>>>()?;
        let (recording, count) = bench.record_chain(&prepared)?;
        let seconds = bench.median_replay(&recording)? / count as f64;
        let finite = y.download()?.iter().all(|y| y.is_finite());
        ensure!(finite, "{format:?}: some elements were not written");
        bench.table.row(&Row {
            name: &format!("{format:?} {rows}x{k}, {columns} columns"),
            rate: format!("{:.2} TB/s", bytes as f64 / seconds / 1e12),
            ours: seconds,
            peer: "our copy",
            theirs: bytes as f64 / copy_rate,
            goal: if columns == 1 { Goal::AtLeast(min_ratio) } else { Goal::None },
        });
    }
    Ok(())
}
