//! Softmax and norms of rows, and rotary position embedding.

use anyhow::Result;
use scry_kernels::Rope;

use crate::bench::{Bench, close};

/// Runs all rows.
pub fn run(bench: &mut Bench) -> Result<()> {
    for sizes in [[16, 256], [1000, 1000], [16, 65536], [65536, 16]] {
        softmax(bench, sizes)?;
        norms(bench, sizes)?;
    }
    [32, 4096].into_iter().try_for_each(|rows| rope(bench, rows))
}

fn softmax(bench: &mut Bench, sizes @ [rows, columns]: [usize; 2]) -> Result<()> {
    let (x, y) = (bench.random(1, rows * columns)?, bench.results(rows * columns)?);
    let op = bench.kernels.softmax(&x, &y[0], rows, columns)?;
    let naive = bench.naive(include_str!("kernels/softmax.wgsl"), &[&x, &y[1]], rows, &sizes)?;
    bench.compare(&format!("softmax {rows}x{columns}"), &op, &naive, close(&y, 1e-5))?;

    let op = bench.kernels.log_softmax(&x, &y[0], rows, columns)?;
    let source = include_str!("kernels/log_softmax.wgsl");
    let naive = bench.naive(source, &[&x, &y[1]], rows, &sizes)?;
    bench.compare(&format!("log_softmax {rows}x{columns}"), &op, &naive, close(&y, 1e-4))
}

fn norms(bench: &mut Bench, sizes @ [rows, columns]: [usize; 2]) -> Result<()> {
    let (x, y) = (bench.random(1, rows * columns)?, bench.results(rows * columns)?);
    let op = bench.kernels.layer_norm(&x, None, None, &y[0], rows, columns, 1e-5)?;
    let source = include_str!("kernels/layer_norm.wgsl");
    let naive = bench.naive(source, &[&x, &y[1]], rows, &sizes)?;
    bench.compare(&format!("layer_norm {rows}x{columns}"), &op, &naive, close(&y, 1e-4))?;

    let op = bench.kernels.rms_norm(&x, None, &y[0], rows, columns, 1e-5)?;
    let naive = bench.naive(include_str!("kernels/rms_norm.wgsl"), &[&x, &y[1]], rows, &sizes)?;
    bench.compare(&format!("rms_norm {rows}x{columns}"), &op, &naive, close(&y, 1e-4))
}

fn rope(bench: &mut Bench, rows: usize) -> Result<()> {
    let (heads, dim) = (4, 64);
    let count = rows * heads * dim;
    let (x, y) = (bench.random(1, count)?, bench.results(count)?);
    let positions = bench.device.upload(&(0..rows as u32).collect::<Vec<_>>())?;
    let op = bench.kernels.rope(&x, &positions, &y[0], rows, &Rope::new(heads, dim))?;
    let source = include_str!("kernels/rope.wgsl");
    let bindings: [&dyn scry_gpu::Binding; 3] = [&x, &positions, &y[1]];
    let naive = bench.naive(source, &bindings, count / 2, &[rows, heads, dim])?;
    // Angles of the naive kernel are off by the rounding of its powers.
    bench.compare(&format!("rope {rows}x{heads}x{dim}"), &op, &naive, close(&y, 5e-3))
}
