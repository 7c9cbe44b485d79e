//! Sorts, histograms, compaction and the largest elements.

use anyhow::Result;
use scry_gpu::{Batch, Buffer, PreparedLaunch};

use crate::bench::{Bench, both, close, equal};

/// The naive sort of few keys is quadratic, of many keys bitonic.
const QUADRATIC: usize = 4096;

/// Runs all rows.
pub fn run(bench: &mut Bench) -> Result<()> {
    [1000, QUADRATIC, 1 << 17, 1 << 20].into_iter().try_for_each(|count| sorts(bench, count))?;
    for (count, bins) in [(4096, 16), (4096, 256), (1 << 20, 16), (1 << 20, 256), (1 << 20, 65536)]
    {
        histogram(bench, count, bins)?;
    }
    [1000, 4096, 1 << 20].into_iter().try_for_each(|count| compact(bench, count))?;
    [[4, 1000], [1000, 1000], [1, 65000]].into_iter().try_for_each(|sizes| top_k(bench, sizes))
}

fn sorts(bench: &mut Bench, count: usize) -> Result<()> {
    // Keys that repeat, so that the order of their values counts.
    let keys = bench.words(1, count, 1 << 18)?;
    let values = bench.device.upload(&(0..count as u32).collect::<Vec<_>>())?;
    let sorted: [Buffer<u32>; 2] = bench.results(count)?;
    let moved: [Buffer<u32>; 2] = bench.results(count)?;
    let copy = |nth: usize, has_values: bool| {
        let (keys, values, sorted, moved) = (&keys, &values, &sorted[nth], &moved[nth]);
        move |batch: &mut Batch| {
            batch.copy(keys, sorted)?;
            if has_values {
                batch.copy(values, moved)?;
            }
            Ok(())
        }
    };
    let is_quadratic = count <= QUADRATIC;
    let naive = match is_quadratic {
        true => {
            let source = include_str!("kernels/rank.wgsl");
            vec![bench.naive(source, &[&keys, &sorted[1], &moved[1]], count, &[count])?]
        }
        false => bitonic(bench, &sorted[1], &moved[1])?,
    };
    let copy_naive = |batch: &mut Batch| match is_quadratic {
        true => Ok(()),
        false => copy(1, true)(batch),
    };

    let op = bench.kernels.sort(&sorted[0])?;
    let name = format!("sort {count}");
    bench.compare_batches(&name, (copy(0, false), &op), (copy_naive, &naive), equal(&sorted))?;

    let op = bench.kernels.sort_pairs(&sorted[0], &moved[0])?;
    let check = both(equal(&sorted), equal(&moved));
    let name = format!("sort_pairs {count}");
    bench.compare_batches(&name, (copy(0, true), &op), (copy_naive, &naive), check)?;

    let op = bench.kernels.argsort(&keys, &moved[0])?;
    let name = format!("argsort {count}");
    bench.compare_batches(&name, (|_: &mut Batch| Ok(()), &op), (copy_naive, &naive), equal(&moved))
}

/// Returns the steps of a bitonic sort of a power of two.
fn bitonic(bench: &Bench, keys: &Buffer<u32>, values: &Buffer<u32>) -> Result<Vec<PreparedLaunch>> {
    let count = keys.len();
    let steps = (1..=count.ilog2()).flat_map(|block| (0..block).rev().map(move |at| (block, at)));
    let source = include_str!("kernels/bitonic.wgsl");
    let launch = |(block, at)| {
        bench.naive(source, &[keys, values], count / 2, &[count, 1usize << block, 1usize << at])
    };
    steps.map(launch).collect()
}

fn histogram(bench: &mut Bench, count: usize, bins: usize) -> Result<()> {
    let (x, counts) = (bench.words(1, count, bins as u32)?, bench.results(bins)?);
    let op = bench.kernels.histogram(&x, &counts[0])?;
    let source = include_str!("kernels/histogram.wgsl");
    let naive = [bench.naive(source, &[&x, &counts[1]], count, &[count])?];
    let clear = |batch: &mut Batch| batch.fill(&counts[1], 0).map(|_| ());
    let name = format!("histogram {count}, {bins} bins");
    bench.compare_batches(&name, (|_: &mut Batch| Ok(()), &op), (clear, &naive), equal(&counts))
}

fn compact(bench: &mut Bench, len: usize) -> Result<()> {
    let (x, flags) = (bench.words(1, len, 1 << 30)?, bench.words(2, len, 2)?);
    let (y, count) = (bench.results(len)?, bench.results(1)?);
    let op = bench.kernels.compact(&x, &flags, &y[0], &count[0])?;
    let source = include_str!("kernels/compact.wgsl");
    let naive = bench.naive(source, &[&x, &flags, &y[1], &count[1]], 256, &[len])?;
    bench.compare(&format!("compact {len}"), &op, &naive, both(equal(&y), equal(&count)))
}

fn top_k(bench: &mut Bench, sizes @ [rows, columns]: [usize; 2]) -> Result<()> {
    const K: usize = 10;
    let x = bench.random(1, rows * columns)?;
    let (values, indices) = (bench.results(rows * K)?, bench.results(rows * K)?);
    let op = bench.kernels.top_k(&x, &values[0], &indices[0], rows, columns, K)?;
    let source = include_str!("kernels/top_k.wgsl");
    let naive = bench.naive(source, &[&x, &values[1], &indices[1]], rows, &sizes)?;
    let check = both(close(&values, 0.0), equal(&indices));
    bench.compare(&format!("top_k {rows}x{columns}, k = {K}"), &op, &naive, check)
}
