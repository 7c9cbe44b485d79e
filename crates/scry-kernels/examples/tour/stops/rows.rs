//! Softmax and norms of rows, and rotary position embedding.

use scry_kernels::Rope;

use super::{Result, Tour, check, wide};

/// Columns of the matrices.
const COLUMNS: usize = 300;

pub(super) fn visit(tour: &mut Tour) -> Result {
    let rows = 60 * tour.scale;
    let count = rows * COLUMNS;
    let ((x, host_x), y) = (tour.random(1, count)?, tour.gpu.alloc::<f32>(count)?);
    let ((weight, host_weight), (bias, host_bias)) =
        (tour.random(2, COLUMNS)?, tour.random(3, COLUMNS)?);
    let [host_x, host_weight, host_bias] = [host_x, host_weight, host_bias].map(|it| wide(&it));
    let by_row = |of_row: &dyn Fn(&[f64]) -> Vec<f64>| -> Vec<f64> {
        host_x.chunks(COLUMNS).flat_map(of_row).collect()
    };
    let (sizes, bytes) = (format!("f32 {rows} x {COLUMNS}"), 8 * count);

    let expected = by_row(&softmax);
    let op = tour.kernels.softmax(&x, &y, rows, COLUMNS);
    tour.show("softmax", &sizes, op, bytes, || check(&y, &expected, 1e-5))?;

    let expected = by_row(&|row| softmax(row).into_iter().map(f64::ln).collect());
    let op = tour.kernels.log_softmax(&x, &y, rows, COLUMNS);
    tour.show("log_softmax", &sizes, op, bytes, || check(&y, &expected, 1e-5))?;

    let expected = by_row(&|row| {
        let normed = normed(row, row.iter().sum::<f64>() / row.len() as f64);
        let scaled = normed.iter().zip(&host_weight).zip(&host_bias);
        scaled.map(|((x, weight), bias)| x * weight + bias).collect()
    });
    let op = tour.kernels.layer_norm(&x, Some(&weight), Some(&bias), &y, rows, COLUMNS, 0.0);
    tour.show("layer_norm", &sizes, op, bytes, || check(&y, &expected, 1e-4))?;

    let expected = by_row(&|row| normed(row, 0.0));
    let op = tour.kernels.rms_norm(&x, None, &y, rows, COLUMNS, 0.0);
    tour.show("rms_norm", &sizes, op, bytes, || check(&y, &expected, 1e-4))?;
    rope(tour)
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let sum: f64 = row.iter().map(|x| x.exp()).sum();
    row.iter().map(|x| x.exp() / sum).collect()
}

/// Returns the differences from `center`, divided by the root of their mean square.
fn normed(row: &[f64], center: f64) -> Vec<f64> {
    let square = row.iter().map(|x| (x - center).powi(2)).sum::<f64>() / row.len() as f64;
    row.iter().map(|x| (x - center) / square.sqrt()).collect()
}

fn rope(tour: &mut Tour) -> Result {
    let (rows, heads, dim) = (50 * tour.scale, 3, 16);
    let count = rows * heads * dim;
    let ((x, host_x), y) = (tour.random(1, count)?, tour.gpu.alloc::<f32>(count)?);
    let positions: Vec<u32> = (0..rows as u32).map(|row| 7 * row).collect();
    let (at, positions) = tour.upload(positions)?;
    let op = tour.kernels.rope(&x, &at, &y, rows, &Rope::new(heads, dim));
    let mut expected = wide(&host_x);
    for (head, x) in expected.chunks_mut(dim).enumerate() {
        let position = f64::from(positions[head / heads]);
        for pair in 0..dim / 2 {
            let angle = position * 10_000f64.powf(-2.0 * pair as f64 / dim as f64);
            let (sin, cos) = angle.sin_cos();
            let (a, b) = (x[pair], x[pair + dim / 2]);
            (x[pair], x[pair + dim / 2]) = (a * cos - b * sin, b * cos + a * sin);
        }
    }
    let sizes = format!("f32 {rows} x {heads} x {dim}");
    tour.show("rope", &sizes, op, 8 * count, || check(&y, &expected, 1e-5))
}
