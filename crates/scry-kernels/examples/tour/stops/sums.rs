//! Reductions and prefix sums.

use scry_kernels::{Reduction, ScanKind};

use super::{Result, Tour, check, check_equal, dot, wide};

/// Columns of the matrices.
const COLUMNS: usize = 300;

pub(super) fn visit(tour: &mut Tour) -> Result {
    reductions(tour)?;
    scans(tour)
}

fn reductions(tour: &mut Tour) -> Result {
    let rows = 100 * tour.scale;
    let count = rows * COLUMNS;
    let ((x, host_x), (b, host_b)) = (tour.random(1, count)?, tour.random(2, count)?);
    let (out, out_index) = (tour.gpu.alloc::<f32>(count)?, tour.gpu.alloc::<u32>(rows)?);
    let (host_x, host_b) = (wide(&host_x), wide(&host_b));
    let sizes = format!("f32 {count}");
    let single = tour.gpu.alloc::<f32>(1)?;

    let expected = [host_x.iter().sum()];
    let op = tour.kernels.reduce(Reduction::Sum, &x, &single);
    tour.show("reduce", &format!("{sizes}, sum"), op, 4 * count, || {
        check(&single, &expected, 1e-3)
    })?;

    let position = |row: &[f64]| {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter().position(|x| *x == largest).unwrap_or(0) as u32
    };
    let expected: Vec<u32> = host_x.chunks(COLUMNS).map(position).collect();
    let op = tour.kernels.reduce_rows(Reduction::ArgMax, &x, &out_index, rows, COLUMNS);
    tour.show("reduce_rows", &format!("f32 {rows} x {COLUMNS}, argmax"), op, 4 * count, || {
        check_equal(&out_index, &expected)
    })?;

    let least = |column: usize| {
        host_x.iter().skip(column).step_by(COLUMNS).copied().fold(f64::INFINITY, f64::min)
    };
    let expected: Vec<f64> = (0..COLUMNS).map(least).collect();
    let op = tour.kernels.reduce_columns(Reduction::Min, &x, &out, rows, COLUMNS);
    tour.show("reduce_columns", &format!("f32 {rows} x {COLUMNS}, min"), op, 4 * count, || {
        check(&out, &expected, 0.0)
    })?;

    let expected = [dot(&host_x, &host_b)];
    let op = tour.kernels.reduce_dot(&x, &b, &single);
    tour.show("reduce_dot", &sizes, op, 8 * count, || check(&single, &expected, 1e-3))
}

fn scans(tour: &mut Tour) -> Result {
    let rows = 100 * tour.scale;
    let count = rows * COLUMNS;
    let (x, host_x) = tour.upload(super::words(1, count))?;
    let y = tour.gpu.alloc::<u32>(count)?;
    let mut sum = 0u32;
    let mut add = |x: &u32| {
        sum = sum.wrapping_add(*x);
        sum
    };
    let expected: Vec<u32> = host_x.iter().map(&mut add).collect();
    let op = tour.kernels.scan(ScanKind::Inclusive, &x, &y);
    tour.show("scan", &format!("u32 {count}, inclusive"), op, 8 * count, || {
        check_equal(&y, &expected)
    })?;

    // Before each element, from the start of its row: differences of the sums of all.
    let before = |at: usize| if at == 0 { 0 } else { expected[at - 1] };
    let expected: Vec<u32> =
        (0..count).map(|at| before(at).wrapping_sub(before(at / COLUMNS * COLUMNS))).collect();
    let op = tour.kernels.scan_rows(ScanKind::Exclusive, &x, &y, rows, COLUMNS);
    let sizes = format!("u32 {rows} x {COLUMNS}, exclusive");
    tour.show("scan_rows", &sizes, op, 8 * count, || check_equal(&y, &expected))
}
