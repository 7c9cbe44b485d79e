//! Softmax and layer norm, compared with PyTorch's.

use anyhow::{Result, ensure};
use scry_gpu::Buffer;
use scry_kernels::Op;

use crate::Bench;
use crate::element::{Element, Rng};
use scry_bench::table::Goal;

/// `[rows, length]`, and the minimum ratios of softmax and layer norm to PyTorch.
type Case = ([usize; 2], [f64; 2]);

const CASES: [Case; 3] =
    [([16384, 4096], [1.4, 1.3]), ([128, 131_072], [2.0, 4.0]), ([65536, 128], [1.2, 4.0])];

/// Number of random row lengths, their minimum and maximum, and elements of a matrix.
const RANDOM: (usize, [usize; 2], usize) = (20, [32, 1 << 20], 1 << 26);

/// Minimum ratio of random shapes.
const MIN_RATIO: f64 = 0.6;

/// Layer norm's epsilon, which is added to the variance.
const EPSILON: f32 = 1e-5;

/// Compares all shapes.
pub fn run(bench: &mut Bench) -> Result<()> {
    let Some(seed) = bench.shape_seed else {
        return CASES.iter().try_for_each(|(shape, min_ratios)| {
            compare::<f32>(bench, *shape, min_ratios.map(Goal::AtLeast))
        });
    };
    let (mut rng, (count, [min, max], elements)) = (Rng(seed), RANDOM);
    (0..count).try_for_each(|_| {
        let length = (rng.log_uniform(max / min) * min + rng.log_uniform(min) - 1).min(max);
        compare::<f32>(bench, [(elements / length).max(1), length], [Goal::AtLeast(MIN_RATIO); 2])
    })
}

fn compare<T: Element>(bench: &mut Bench, shape: [usize; 2], goals: [Goal; 2]) -> Result<()> {
    let ([count, length], device) = (shape, bench.kernels.device().clone());
    let mut rng = Rng(1);
    let x = device.upload(&rng.elements::<T>(count * length))?;
    let [weight, bias] = [(); 2].map(|()| device.upload(&rng.elements::<T>(length)));
    let (weight, bias) = (weight?, bias?);
    let y = device.alloc::<T>(count * length)?;
    let kernels = bench.kernels.clone();
    let softmax = kernels.softmax(&x, &y, count, length)?;
    let norm = kernels.layer_norm(&x, Some(&weight), Some(&bias), &y, count, length, EPSILON)?;
    // One read and one write.
    let bytes = 2 * count * length * size_of::<T>();
    for ((name, prepared), goal) in [("softmax", softmax), ("layer_norm", norm)].iter().zip(goals) {
        check(name, prepared, [&x, &weight, &bias, &y], length)?;
        let title = format!("{name} {} {count}x{length}", T::NAME);
        let peer = (format!("{name} {}", T::NAME), vec![count, length]);
        bench.row(&title, prepared, peer, ("TB/s", bytes as f64), bytes, goal)?;
    }
    Ok(())
}

/// Runs it once, and compares some rows with f64 arithmetic.
fn check<T: Element>(
    name: &str,
    prepared: &Op,
    [x, weight, bias, y]: [&Buffer<T>; 4],
    length: usize,
) -> Result<()> {
    y.fill(T::round_from(f32::NAN))?;
    prepared.run()?;
    let widen = |data: Vec<T>| data.into_iter().map(T::widen).collect::<Vec<f64>>();
    let (weight, bias) = (widen(weight.download()?), widen(bias.download()?));
    let rows = x.len() / length;
    for row in (0..rows).step_by(rows.div_ceil(20) | 1).chain([rows - 1]) {
        let part = row * length..(row + 1) * length;
        let (x, y) = (widen(x.slice(part.clone())?.download()?), y.slice(part)?.download()?);
        let expected = if name == "softmax" { softmax(&x) } else { norm(&x, &weight, &bias) };
        let scale = expected.iter().fold(0.0, |scale: f64, x| scale.max(x.abs()));
        for (got, expected) in y.into_iter().map(T::widen).zip(expected) {
            let is_close = (got - expected).abs() <= T::MAX_ERROR * scale;
            ensure!(is_close, "{name}, row {row}: {got}, it should be {expected}");
        }
    }
    Ok(())
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|x| (x - max).exp()).sum();
    row.iter().map(|x| (x - max).exp() / sum).collect()
}

fn norm(row: &[f64], weight: &[f64], bias: &[f64]) -> Vec<f64> {
    let mean = row.iter().sum::<f64>() / row.len() as f64;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64;
    let factor = 1.0 / (variance + f64::from(EPSILON)).sqrt();
    let normed = row.iter().zip(weight).zip(bias);
    normed.map(|((x, weight), bias)| (x - mean) * factor * weight + bias).collect()
}
