//! Distances and nearest points.

use anyhow::Result;
use scry_kernels::{Metric, Nearest};

use crate::bench::{Bench, both, close, equal};

/// Runs all rows.
pub fn run(bench: &mut Bench) -> Result<()> {
    [[30, 100, 24], [500, 2000, 3], [500, 2000, 64]]
        .into_iter()
        .try_for_each(|sizes| points(bench, sizes))
}

fn points(bench: &mut Bench, sizes @ [queries, points, dim]: [usize; 3]) -> Result<()> {
    const K: usize = 5;
    let metric = Metric::SquaredEuclidean;
    let (a, b) = (bench.random(1, queries * dim)?, bench.random(2, points * dim)?);
    let out = bench.results(queries * points)?;
    let op = bench.kernels.pairwise_distances(metric, &a, &b, &out[0], queries, points, dim)?;
    let source = include_str!("kernels/distances.wgsl");
    let naive = bench.naive(source, &[&a, &b, &out[1]], [points, queries], &sizes)?;
    let name = format!("pairwise_distances {queries}x{points}x{dim}");
    bench.compare(&name, &op, &naive, close(&out, 1e-4))?;

    let (indices, distances) = (bench.results(queries * K)?, bench.results(queries * K)?);
    let search = Nearest { metric, points, queries, dim, k: K };
    let op = bench.kernels.nearest(&b, &a, &indices[0], &distances[0], &search)?;
    let source = include_str!("kernels/nearest.wgsl");
    let naive = bench.naive(source, &[&b, &a, &indices[1], &distances[1]], queries, &sizes)?;
    let check = both(close(&distances, 1e-4), equal(&indices));
    bench.compare(&format!("nearest {queries}x{points}x{dim}, k = {K}"), &op, &naive, check)
}
