//! Products of matrices and vectors, and attention.

use scry_gpu::f16;
use scry_kernels::{Attention, Gemm, Gemv, Layout, PtxType};

use super::{Result, Tour, check, dot, wide};

pub(super) fn visit(tour: &mut Tour) -> Result {
    matmul(tour)?;
    gemm(tour)?;
    gemv(tour)?;
    attention(tour)
}

/// Returns the columns of a row-major matrix.
fn columns(matrix: &[f64], width: usize) -> Vec<Vec<f64>> {
    (0..width).map(|at| matrix.iter().skip(at).step_by(width).copied().collect()).collect()
}

/// Returns the products of all pairs of vectors, by the first ones.
fn all_products<'v>(a: impl Iterator<Item = &'v [f64]>, b: &[Vec<f64>]) -> Vec<f64> {
    a.flat_map(|a| b.iter().map(move |b| dot(a, b))).collect()
}

fn matmul(tour: &mut Tour) -> Result {
    let n = 64 * tour.scale.isqrt();
    let ((a, host_a), (b, host_b)) = (tour.random(1, n * n)?, tour.random(2, n * n)?);
    let out = tour.gpu.alloc::<f32>(n * n)?;
    let expected = all_products(wide(&host_a).chunks(n), &columns(&wide(&host_b), n));
    let op = tour.kernels.matmul(&a, &b, &out, n, n, n);
    let sizes = format!("f32 {n} x {n} x {n}");
    tour.show("matmul", &sizes, op, 12 * n * n, || check(&out, &expected, 1e-4))
}

/// The product of `f16` matrices with results in `f32`, the second one column-major.
fn gemm(tour: &mut Tour) -> Result {
    let n = 64 * tour.scale.isqrt();
    let halves = |numbers: Vec<f32>| numbers.into_iter().map(f16::from_f32).collect::<Vec<_>>();
    let (a, host_a) = tour.upload(halves(super::numbers(1, n * n)))?;
    let (b, host_b) = tour.upload(halves(super::numbers(2, n * n)))?;
    let out = tour.gpu.alloc::<f32>(n * n)?;
    let wide = |x: &[f16]| x.iter().map(|x| x.to_f64()).collect::<Vec<_>>();
    let b_columns: Vec<_> = wide(&host_b).chunks(n).map(<[f64]>::to_vec).collect();
    let expected = all_products(wide(&host_a).chunks(n), &b_columns);
    let gemm = Gemm::new(n as u64, n as u64, n as u64, PtxType::F16);
    let gemm =
        Gemm { output: PtxType::F32, ..gemm }.with_layouts(Layout::RowMajor, Layout::ColMajor);
    let op = tour.kernels.gemm(&gemm, &[&a, &b, &out]);
    let sizes = format!("f16 to f32, {n} x {n} x {n}");
    tour.show("gemm", &sizes, op, 8 * n * n, || check(&out, &expected, 1e-3))
}

fn gemv(tour: &mut Tour) -> Result {
    let (rows, width, batch) = (96 * tour.scale, 200, 6);
    let (a, host_a) = tour.random(1, batch * rows * width)?;
    let (x, host_x) = tour.random(2, rows.max(width))?;
    let y = tour.gpu.alloc::<f32>(batch * rows.max(width))?;
    let (host_a, host_x) = (wide(&host_a), wide(&host_x));
    let bytes = 4 * rows * width;
    let expected: Vec<f64> = host_a.chunks(width).map(|row| dot(row, &host_x[..width])).collect();
    let op = tour.kernels.gemv(&a, &x, &y, rows, width);
    let sizes = format!("f32 {rows} x {width}");
    tour.show("gemv", &sizes, op, bytes, || check(&y, &expected[..rows], 1e-4))?;

    let transposed: Vec<f64> =
        columns(&host_a[..rows * width], width).iter().map(|it| dot(it, &host_x)).collect();
    let op = tour.kernels.gemv_transposed(&a, &x, &y, rows, width);
    tour.show("gemv_transposed", &sizes, op, bytes, || check(&y, &transposed, 1e-4))?;

    // All matrices with the same vector.
    let gemv = Gemv::new(rows as u64, width as u64).batched(batch as u64);
    let op = tour.kernels.gemv_batch(&Gemv { x_stride: 0, ..gemv }, &a, &x, &y);
    let sizes = format!("f32 {batch} x {rows} x {width}");
    tour.show("gemv_batch", &sizes, op, batch * bytes, || check(&y, &expected, 1e-4))
}

fn attention(tour: &mut Tour) -> Result {
    let (heads, length, dim) = (2, 48 * tour.scale, 32);
    let count = heads * length * dim;
    let [(q, host_q), (k, host_k), (v, host_v)] =
        [tour.random(1, count)?, tour.random(2, count)?, tour.random(3, count)?];
    let out = tour.gpu.alloc::<f32>(count)?;
    let sizes = [length, length, dim].map(|size| size as u32);
    let shape = Attention::new([1, heads as u32], sizes[0], sizes[1], sizes[2], PtxType::F32);
    let op = tour.kernels.attention(&Attention { causal: true, ..shape }, &[&q, &k, &v, &out]);
    let [q, k, v] = [host_q, host_k, host_v].map(|it| wide(&it));
    let mut expected = Vec::with_capacity(count);
    for (row, q) in q.chunks(dim).enumerate() {
        let (head, seen) = (row / length, row % length + 1);
        let of_head = |it: &[f64]| it[head * length * dim..][..seen * dim].to_vec();
        expected.extend(attention_row(q, &of_head(&k), &of_head(&v)));
    }
    let sizes = format!("f32 {heads} x {length} x {dim}, causal");
    tour.show("attention", &sizes, op, 16 * count, || check(&out, &expected, 1e-4))
}

/// Returns one row of `softmax(q kᵀ / √columns) v`.
fn attention_row(q: &[f64], k: &[f64], v: &[f64]) -> Vec<f64> {
    let scores: Vec<f64> =
        k.chunks(q.len()).map(|k| (dot(q, k) / (q.len() as f64).sqrt()).exp()).collect();
    let sum: f64 = scores.iter().sum();
    let mut out = vec![0.0; q.len()];
    for (score, v) in scores.iter().zip(v.chunks(q.len())) {
        out.iter_mut().zip(v).for_each(|(out, v)| *out += score / sum * v);
    }
    out
}
