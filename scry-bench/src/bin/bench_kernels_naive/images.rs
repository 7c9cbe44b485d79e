//! Convolutions and pooling.

use anyhow::Result;
use scry_kernels::{Conv1d, Conv2d, Pool, Pool2d};

use crate::bench::{Bench, close};

const SOURCE: &str = include_str!("kernels/conv2d.wgsl");

/// Runs all rows.
pub fn run(bench: &mut Bench) -> Result<()> {
    for (channels, size, kernel) in [
        ([1, 1], [64, 64], [3, 3]),
        ([1, 1], [1024, 1024], [5, 5]),
        ([3, 8], [256, 256], [5, 3]),
        ([32, 32], [56, 56], [3, 3]),
        ([64, 64], [56, 56], [1, 1]),
    ] {
        conv2d(bench, channels, size, kernel)?;
    }
    [1000, 100_000].into_iter().try_for_each(|length| conv1d(bench, length))?;
    [[3, 32, 32], [3, 1024, 512]].into_iter().try_for_each(|sizes| pool2d(bench, sizes))
}

fn conv2d(
    bench: &mut Bench,
    channels @ [inputs, outputs]: [usize; 2],
    size @ [height, width]: [usize; 2],
    kernel: [usize; 2],
) -> Result<()> {
    let conv = Conv2d::new(channels, size, kernel);
    let [out_height, out_width] = conv.output_size();
    let x = bench.random(1, inputs * height * width)?;
    let weights = bench.random(2, inputs * outputs * kernel[0] * kernel[1])?;
    let y = bench.results(outputs * out_height * out_width)?;
    let op = bench.kernels.conv2d(&x, &weights, None, &y[0], &conv)?;
    let sizes = [inputs, outputs, height, width, kernel[0], kernel[1]];
    let grid = [out_width, out_height, outputs];
    let naive = bench.naive(SOURCE, &[&x, &weights, &y[1]], grid, &sizes)?;
    let name = format!("conv2d {inputs}-{outputs} {height}x{width} {}x{}", kernel[0], kernel[1]);
    bench.compare(&name, &op, &naive, close(&y, 1e-4))
}

fn conv1d(bench: &mut Bench, length: usize) -> Result<()> {
    let conv = Conv1d::new([2, 3], length, 7);
    let (x, weights) = (bench.random(1, 2 * length)?, bench.random(2, 2 * 3 * 7)?);
    let y = bench.results(3 * conv.output_length())?;
    let op = bench.kernels.conv1d(&x, &weights, None, &y[0], &conv)?;
    let grid = [conv.output_length(), 1, 3];
    let naive = bench.naive(SOURCE, &[&x, &weights, &y[1]], grid, &[2, 3, 1, length, 1, 7])?;
    bench.compare(&format!("conv1d 2-3 {length} 7"), &op, &naive, close(&y, 1e-4))
}

fn pool2d(bench: &mut Bench, sizes @ [channels, height, width]: [usize; 3]) -> Result<()> {
    let pool = Pool2d::new(channels, [height, width], [2, 2]);
    let x = bench.random(1, channels * height * width)?;
    let y = bench.results(channels * height * width / 4)?;
    let op = bench.kernels.pool2d(Pool::Max, &x, &y[0], &pool)?;
    let source = include_str!("kernels/pool2d.wgsl");
    let naive = bench.naive(source, &[&x, &y[1]], [width / 2, height / 2, channels], &sizes)?;
    bench.compare(&format!("pool2d {channels}x{height}x{width} 2x2"), &op, &naive, close(&y, 0.0))
}
