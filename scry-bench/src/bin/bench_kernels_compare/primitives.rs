//! Operations that move or reduce data, and convolutions, compared with PyTorch's.

use anyhow::{Result, ensure};
use scry_gpu::Buffer;
use scry_kernels::{Conv2d, Reduction};

use crate::Bench;
use crate::element::{Element, Rng};
use scry_bench::table::Goal;

/// Rows and columns of the transposed matrix, and the minimum ratio.
const TRANSPOSES: [([usize; 2], f64); 2] = [([16384, 4096], 3.0), ([8191, 4097], 1.0)];

/// Elements that are summed.
const SUMS: [usize; 2] = [1 << 27, (1 << 24) + 1];

/// A convolution: in and out channels, height and width, side of the kernel, minimum ratio.
type Convolution = ([usize; 2], [usize; 2], usize, f64);

const CONVOLUTIONS: [Convolution; 3] = [
    ([1, 1], [4096, 4096], 7, 50.0),
    ([3, 8], [1080, 1920], 5, 3.0),
    ([64, 64], [112, 112], 3, 0.0),
];

/// Compares all shapes.
pub fn run(bench: &mut Bench) -> Result<()> {
    for (shape, min_ratio) in TRANSPOSES {
        transpose(bench, shape, Goal::AtLeast(min_ratio))?;
    }
    SUMS.iter().try_for_each(|count| sum(bench, *count))?;
    CONVOLUTIONS.iter().try_for_each(|convolution| convolve(bench, *convolution))
}

fn transpose(bench: &mut Bench, [rows, columns]: [usize; 2], goal: Goal) -> Result<()> {
    let device = bench.kernels.device().clone();
    let numbers = Rng(1).elements::<f32>(rows * columns);
    let (x, y) = (device.upload(&numbers)?, device.alloc::<f32>(numbers.len())?);
    let op = bench.kernels.transpose(&x, &y, rows, columns)?;
    op.run()?;
    let transposed = y.download()?;
    let is_right = |at: usize| transposed[at] == numbers[at % rows * columns + at / rows];
    ensure!((0..numbers.len()).all(is_right), "the transpose is wrong");
    let bytes = 2 * numbers.len() * size_of::<f32>();
    let peer = ("transpose f32".to_owned(), vec![rows, columns]);
    let title = format!("transpose f32 {rows}x{columns}");
    bench.row(&title, &op, peer, ("TB/s", bytes as f64), bytes, goal)
}

fn sum(bench: &mut Bench, count: usize) -> Result<()> {
    let device = bench.kernels.device().clone();
    let numbers = Rng(1).elements::<f32>(count);
    let (x, out) = (device.upload(&numbers)?, device.alloc::<f32>(1)?);
    let op = bench.kernels.reduce(Reduction::Sum, &x, &out)?;
    op.run()?;
    let expected: f64 = numbers.iter().map(|x| f64::from(*x)).sum();
    let error = (f64::from(out.get(0)?) - expected).abs();
    ensure!(error < 1e-7 * count as f64, "the sum is off by {error}");
    let bytes = count * size_of::<f32>();
    let peer = ("sum f32".to_owned(), vec![count]);
    bench.row(&format!("sum f32 {count}"), &op, peer, ("TB/s", bytes as f64), bytes, Goal::None)
}

fn convolve(bench: &mut Bench, (channels, size, side, min_ratio): Convolution) -> Result<()> {
    let device = bench.kernels.device().clone();
    let ([inputs, outputs], [height, width]) = (channels, size);
    let conv = Conv2d { padding: [side / 2; 2], ..Conv2d::new(channels, size, [side; 2]) };
    let mut rng = Rng(1);
    let x = rng.elements::<f32>(inputs * height * width);
    let weights = rng.elements::<f32>(outputs * inputs * side * side);
    let (device_x, device_weights) = (device.upload(&x)?, device.upload(&weights)?);
    let y: Buffer<f32> = device.alloc(outputs * height * width)?;
    let op = bench.kernels.conv2d(&device_x, &device_weights, None, &y, &conv)?;
    op.run()?;
    let result = y.download()?;
    let reference = |at: usize| {
        let (channel, row, column) = (at / (height * width), at / width % height, at % width);
        let mut sum = 0.0;
        for (nth, weight) in
            weights[channel * inputs * side * side..][..inputs * side * side].iter().enumerate()
        {
            let input = nth / (side * side);
            let (i, j) = (row + nth / side % side, column + nth % side);
            let inside = (side / 2..height + side / 2).contains(&i)
                && (side / 2..width + side / 2).contains(&j);
            if inside {
                let at = (input * height + i - side / 2) * width + j - side / 2;
                sum += f64::from(*weight) * f64::from(x[at]);
            }
        }
        sum
    };
    for at in (0..result.len()).step_by(result.len().div_ceil(3000) | 1) {
        let error = (f64::from(result[at]) - reference(at)).abs();
        ensure!(error < f32::MAX_ERROR * 10.0, "result {at} of a convolution is off by {error}");
    }
    let flops = 2.0 * (result.len() * inputs * side * side) as f64;
    let bytes = (x.len() + result.len()) * size_of::<f32>();
    let peer = ("conv2d f32".to_owned(), vec![inputs, outputs, height, width, side]);
    let title = format!("conv2d f32 {inputs}-{outputs} {height}x{width} {side}x{side}");
    let goal = if min_ratio > 0.0 { Goal::AtLeast(min_ratio) } else { Goal::None };
    bench.row(&title, &op, peer, ("TFLOP/s", flops), bytes, goal)
}
