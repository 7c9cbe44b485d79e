//! Operations that move or reduce data, and convolutions, compared with PyTorch's.

use anyhow::{Result, ensure};
use scry_gpu::Buffer;
use scry_kernels::{Conv2d, Metric, Nearest, Reduction, ScanKind};

use crate::Bench;
use crate::clock::median;
use crate::element::{Element, Rng};
use scry_bench::table::{Goal, Row};

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

/// Elements of the prefix sum and of the sort, and the minimum ratios.
const SCAN: (usize, f64) = (1 << 27, 1.4);
const SORT: (usize, f64) = (1 << 27, 1.5);

/// Points of both sets and their dimensions, and the minimum ratio.
const DISTANCES: ([usize; 2], f64) = ([4096, 128], 2.0);

/// Points, dimensions, queries and neighbours, and the minimum ratio.
const NEAREST: ([usize; 4], f64) = ([1_000_000, 128, 1000, 10], 2.0);

/// Compares all shapes.
pub fn run(bench: &mut Bench) -> Result<()> {
    for (shape, min_ratio) in TRANSPOSES {
        transpose(bench, shape, Goal::AtLeast(min_ratio))?;
    }
    SUMS.iter().try_for_each(|count| sum(bench, *count))?;
    CONVOLUTIONS.iter().try_for_each(|convolution| convolve(bench, *convolution))?;
    scan(bench)?;
    sort(bench)?;
    distances(bench)?;
    nearest(bench)
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

fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum()
}

fn distances(bench: &mut Bench) -> Result<()> {
    let ([count, dim], min_ratio) = DISTANCES;
    let device = bench.kernels.device().clone();
    let mut rng = Rng(1);
    let (a, b) = (rng.elements::<f32>(count * dim), rng.elements::<f32>(count * dim));
    let (device_a, device_b) = (device.upload(&a)?, device.upload(&b)?);
    let out = device.alloc::<f32>(count * count)?;
    let (metric, kernels) = (Metric::SquaredEuclidean, bench.kernels.clone());
    let op = kernels.pairwise_distances(metric, &device_a, &device_b, &out, count, count, dim)?;
    op.run()?;
    let result = out.download()?;
    for at in (0..result.len()).step_by(10_007) {
        let (i, j) = (at / count * dim, at % count * dim);
        let expected = squared_distance(&a[i..i + dim], &b[j..j + dim]);
        let error = (f64::from(result[at]) - expected).abs();
        ensure!(error < 1e-4 * expected, "distance {at} is off by {error}");
    }
    let flops = 3.0 * (count * count * dim) as f64;
    let bytes = (2 * count * dim + count * count) * size_of::<f32>();
    let peer = ("cdist f32".to_owned(), vec![count, dim]);
    let title = format!("squared distances f32 {count}x{dim}");
    bench.row(&title, &op, peer, ("TFLOP/s", flops), bytes, Goal::AtLeast(min_ratio))
}

fn nearest(bench: &mut Bench) -> Result<()> {
    let ([points, dim, queries, k], min_ratio) = NEAREST;
    let device = bench.kernels.device().clone();
    let mut rng = Rng(1);
    let (p, q) = (rng.elements::<f32>(points * dim), rng.elements::<f32>(queries * dim));
    let (device_p, device_q) = (device.upload(&p)?, device.upload(&q)?);
    let indices = device.alloc::<u32>(queries * k)?;
    let found = device.alloc::<f32>(queries * k)?;
    let sizes = Nearest { metric: Metric::SquaredEuclidean, points, queries, dim, k };
    let op = bench.kernels.nearest(&device_p, &device_q, &indices, &found, &sizes)?;
    op.run()?;
    let found = indices.download()?;
    for query in [0, queries / 2, queries - 1] {
        let query_point = &q[query * dim..][..dim];
        let mut all: Vec<(f64, usize)> =
            p.chunks(dim).map(|p| squared_distance(p, query_point)).zip(0..).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let farthest = all[k - 1].0;
        let is_near = |index: &u32| {
            squared_distance(&p[*index as usize * dim..][..dim], query_point) <= farthest * 1.00001
        };
        ensure!(found[query * k..][..k].iter().all(is_near), "neighbours of {query} are wrong");
    }
    let flops = 3.0 * (points * queries * dim) as f64;
    let peer = ("knn f32".to_owned(), vec![points, dim, queries, k]);
    let title = format!("{k}-nearest f32 {points}x{dim}, {queries}");
    let bytes = points * dim * size_of::<f32>();
    bench.row(&title, &op, peer, ("TFLOP/s", flops), bytes, Goal::AtLeast(min_ratio))
}

fn scan(bench: &mut Bench) -> Result<()> {
    let (count, min_ratio) = SCAN;
    let device = bench.kernels.device().clone();
    let numbers = Rng(1).elements::<f32>(count);
    let (x, y) = (device.upload(&numbers)?, device.alloc::<f32>(count)?);
    let op = bench.kernels.scan(ScanKind::Inclusive, &x, &y)?;
    op.run()?;
    let (result, mut sum) = (y.download()?, 0.0);
    for (at, (result, x)) in result.iter().zip(&numbers).enumerate() {
        sum += f64::from(*x);
        ensure!((f64::from(*result) - sum).abs() < 0.5, "prefix sum {at} is {result}, not {sum}");
    }
    let bytes = 2 * count * size_of::<f32>();
    let peer = ("cumsum f32".to_owned(), vec![count]);
    let goal = Goal::AtLeast(min_ratio);
    bench.row(&format!("scan f32 {count}"), &op, peer, ("TB/s", bytes as f64), bytes, goal)
}

/// Sorts pairs of keys and values in place: each measurement sorts the same random keys. PyTorch
/// sorts `i32` keys, and its values are 64-bit positions.
fn sort(bench: &mut Bench) -> Result<()> {
    let (count, min_ratio) = SORT;
    let device = bench.kernels.device().clone();
    let mut rng = Rng(1);
    let numbers: Vec<u32> = (0..count).map(|_| rng.next() as u32).collect();
    let positions: Vec<u32> = (0..count as u32).collect();
    let (random, unsorted) = (device.upload(&numbers)?, device.upload(&positions)?);
    let (keys, values) = (device.upload(&numbers)?, device.upload(&positions)?);
    let op = bench.kernels.sort_pairs(&keys, &values)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=bench.samples.min(10) {
        let mut batch = device.batch();
        batch.copy(&random, &keys)?.copy(&unsorted, &values)?;
        op.add_to(&mut batch)?;
        let seconds: f64 = batch.submit_timed()?.iter().map(|time| time.as_secs_f64()).sum();
        let peer = bench.torch.measure("used sort i32", &[count])?;
        if round > 0 {
            ours.push(seconds);
            theirs.push(peer);
        }
    }
    let (sorted, moved) = (keys.download()?, values.download()?);
    ensure!(sorted.is_sorted(), "the keys are not sorted");
    let is_stable = |at: usize| {
        sorted[at] == numbers[moved[at] as usize]
            && (at == 0 || sorted[at - 1] != sorted[at] || moved[at - 1] < moved[at])
    };
    ensure!((0..count).all(is_stable), "the values do not follow their keys");
    let (ours, theirs) = (median(ours)?, median(theirs)?);
    let rate = format!("{:.2} Gkeys/s", count as f64 / ours / 1e9);
    let (name, goal) = (&*format!("sort u32 pairs {count}"), Goal::AtLeast(min_ratio));
    bench.table.row(&Row { name, rate, ours, peer: "PyTorch", theirs, goal });
    Ok(())
}
