//! Reductions and prefix sums.

use anyhow::Result;
use scry_kernels::{Reduction, ScanKind};

use crate::bench::{Bench, close, equal};

/// The naive sums of few elements have one invocation, others one workgroup.
const SERIAL: usize = 4096;

/// Runs all rows.
pub fn run(bench: &mut Bench) -> Result<()> {
    for count in [1000, SERIAL, 1 << 16, 1 << 20, 1 << 22] {
        reduce(bench, count)?;
    }
    for sizes in [[16, 256], [1000, 1000], [16, 65536], [65536, 16]] {
        of_matrices(bench, sizes)?;
    }
    for count in [1000, SERIAL, 1 << 16, 1 << 20] {
        scan(bench, count)?;
    }
    [[16, 256], [1000, 1000], [16, 65536], [65536, 16]]
        .into_iter()
        .try_for_each(|sizes| scan_rows(bench, sizes))
}

fn reduce(bench: &mut Bench, count: usize) -> Result<()> {
    let (x, b, out) = (bench.random(1, count)?, bench.random(2, count)?, bench.results(1)?);
    let op = bench.kernels.reduce(Reduction::Sum, &x, &out[0])?;
    let (source, invocations) = match count <= SERIAL {
        true => (include_str!("kernels/sum_serial.wgsl"), 1),
        false => (include_str!("kernels/sum.wgsl"), 256),
    };
    let naive = bench.naive(source, &[&x, &out[1]], invocations, &[count])?;
    bench.compare(&format!("reduce {count}, sum"), &op, &naive, close(&out, 1e-3))?;

    let op = bench.kernels.reduce_dot(&x, &b, &out[0])?;
    let source = include_str!("kernels/dot.wgsl");
    let naive = bench.naive(source, &[&x, &b, &out[1]], 256, &[count])?;
    bench.compare(&format!("reduce_dot {count}"), &op, &naive, close(&out, 1e-3))
}

fn of_matrices(bench: &mut Bench, sizes @ [rows, columns]: [usize; 2]) -> Result<()> {
    let (x, out) = (bench.random(1, rows * columns)?, bench.results(rows.max(columns))?);
    let positions = bench.results(rows)?;
    let op = bench.kernels.reduce_rows(Reduction::Sum, &x, &out[0], rows, columns)?;
    let source = include_str!("kernels/sum_rows.wgsl");
    let naive = bench.naive(source, &[&x, &out[1]], rows, &sizes)?;
    bench.compare(&format!("reduce_rows {rows}x{columns}, sum"), &op, &naive, close(&out, 1e-3))?;

    let op = bench.kernels.reduce_rows(Reduction::ArgMax, &x, &positions[0], rows, columns)?;
    let source = include_str!("kernels/argmax_rows.wgsl");
    let naive = bench.naive(source, &[&x, &positions[1]], rows, &sizes)?;
    bench.compare(
        &format!("reduce_rows {rows}x{columns}, argmax"),
        &op,
        &naive,
        equal(&positions),
    )?;

    let op = bench.kernels.reduce_columns(Reduction::Sum, &x, &out[0], rows, columns)?;
    let source = include_str!("kernels/sum_columns.wgsl");
    let naive = bench.naive(source, &[&x, &out[1]], columns, &sizes)?;
    bench.compare(&format!("reduce_columns {rows}x{columns}, sum"), &op, &naive, close(&out, 1e-3))
}

fn scan(bench: &mut Bench, count: usize) -> Result<()> {
    let (x, y) = (bench.words(1, count, 1000)?, bench.results(count)?);
    let op = bench.kernels.scan(ScanKind::Inclusive, &x, &y[0])?;
    let (source, invocations) = match count <= SERIAL {
        true => (include_str!("kernels/scan_serial.wgsl"), 1),
        false => (include_str!("kernels/scan.wgsl"), 256),
    };
    let naive = bench.naive(source, &[&x, &y[1]], invocations, &[count])?;
    bench.compare(&format!("scan {count}"), &op, &naive, equal(&y))
}

fn scan_rows(bench: &mut Bench, sizes @ [rows, columns]: [usize; 2]) -> Result<()> {
    let (x, y) = (bench.words(1, rows * columns, 1000)?, bench.results(rows * columns)?);
    let op = bench.kernels.scan_rows(ScanKind::Inclusive, &x, &y[0], rows, columns)?;
    let naive = bench.naive(include_str!("kernels/scan_rows.wgsl"), &[&x, &y[1]], rows, &sizes)?;
    bench.compare(&format!("scan_rows {rows}x{columns}"), &op, &naive, equal(&y))
}
