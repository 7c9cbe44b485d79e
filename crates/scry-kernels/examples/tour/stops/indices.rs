//! Elements that move: transposes, permutations, and rows by index.

use super::{Result, Tour, check, check_equal, words};

pub(super) fn visit(tour: &mut Tour) -> Result {
    permutations(tour)?;
    gathers(tour)?;
    scatters(tour)
}

/// Returns an array with axes of `dims`, transposed so that axis i is the axis `axes[i]` of `x`.
fn permuted(x: &[u32], dims: [usize; 3], axes: [usize; 3]) -> Vec<u32> {
    let strides = [dims[1] * dims[2], dims[2], 1];
    let [a, b, c] = axes.map(|axis| (dims[axis], strides[axis]));
    let mut y = Vec::with_capacity(x.len());
    for i in 0..a.0 {
        for j in 0..b.0 {
            y.extend((0..c.0).map(|k| x[i * a.1 + j * b.1 + k * c.1]));
        }
    }
    y
}

fn permutations(tour: &mut Tour) -> Result {
    let dims = [5, 60 * tour.scale, 70];
    let [batch, rows, columns] = dims;
    let count = batch * rows * columns;
    let (x, host_x) = tour.upload(words(1, count))?;
    let y = tour.gpu.alloc::<u32>(count)?;
    let expected = permuted(&host_x, [1, rows * batch, columns], [0, 2, 1]);
    let op = tour.kernels.transpose(&x, &y, rows * batch, columns);
    let sizes = format!("u32 {} x {columns}", rows * batch);
    tour.show("transpose", &sizes, op, 8 * count, || check_equal(&y, &expected))?;

    let expected = permuted(&host_x, dims, [0, 2, 1]);
    let op = tour.kernels.transpose_batch(&x, &y, batch, rows, columns);
    let sizes = format!("u32 {batch} x {rows} x {columns}");
    tour.show("transpose_batch", &sizes, op, 8 * count, || check_equal(&y, &expected))?;

    let expected = permuted(&host_x, dims, [1, 2, 0]);
    let op = tour.kernels.permute(&x, &y, &dims, &[1, 2, 0]);
    tour.show("permute", &format!("{sizes}, 1 2 0"), op, 8 * count, || check_equal(&y, &expected))
}

fn gathers(tour: &mut Tour) -> Result {
    let (rows, columns, count) = (500, 20, 300 * tour.scale);
    let (x, host_x) = tour.upload(words(1, rows * columns))?;
    // Some are out of range, and select zeros.
    let (at, indices) = tour.upload(words(2, count).iter().map(|word| word % 510).collect())?;
    let y = tour.gpu.alloc::<u32>(count * columns)?;
    let row = |index: &u32| match host_x.chunks(columns).nth(*index as usize) {
        Some(row) => row.to_vec(),
        None => vec![0; columns],
    };
    let expected: Vec<u32> = indices.iter().flat_map(row).collect();
    let op = tour.kernels.gather_rows(&x, &at, &y, rows, columns, count);
    let sizes = format!("u32 {count} of {rows} x {columns}");
    let bytes = 8 * count * columns;
    tour.show("gather_rows", &sizes, op, bytes, || check_equal(&y, &expected))?;

    let expected: Vec<u32> = indices.iter().map(|index| host_x[*index as usize]).collect();
    let op = tour.kernels.gather(&x, &at, &y, rows * columns, count);
    let sizes = format!("u32 {count} of {}", rows * columns);
    tour.show("gather", &sizes, op, 12 * count, || check_equal(&y, &expected))
}

fn scatters(tour: &mut Tour) -> Result {
    let (rows, columns, count) = (200, 20, 300 * tour.scale);
    let (x, host_x) = tour.random(1, count * columns)?;
    // Some are out of range, and are dropped; several are equal.
    let (at, indices) = tour.upload(words(2, count).iter().map(|word| word % 210).collect())?;
    let (sizes, bytes) = (format!("f32 {count} to {rows} x {columns}"), 8 * count * columns);
    let (mut last, mut sums) = (vec![0.0; rows * columns], vec![0.0; rows * columns]);
    for (row, index) in host_x.chunks(columns).zip(&indices) {
        let at = *index as usize * columns;
        if (*index as usize) < rows {
            for (column, x) in row.iter().enumerate() {
                last[at + column] = f64::from(*x);
                sums[at + column] += f64::from(*x);
            }
        }
    }
    let y = tour.gpu.alloc::<f32>(rows * columns)?;
    let op = tour.kernels.scatter_rows(&x, &at, &y, rows, columns, count);
    tour.show("scatter_rows", &sizes, op, bytes, || check(&y, &last, 0.0))?;

    let y = tour.gpu.alloc::<f32>(rows * columns)?;
    let op = tour.kernels.scatter_add_rows(&x, &at, &y, rows, columns, count);
    tour.show("scatter_add_rows", &sizes, op, bytes, || check(&y, &sums, 1e-5))
}
