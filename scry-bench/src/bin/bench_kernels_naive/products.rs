//! Products of matrices and vectors, and attention.

use std::cell::RefCell;

use anyhow::Result;
use scry_bench::table::Goal;
use scry_gpu::{BackendKind, Buffer};
use scry_kernels::{Attention, Gemm, Gemv, KernelOptions, Layout, PtxType};

use crate::bench::{Bench, Run, close};

/// Operations of a measurement of small products.
const GEMM_FLOPS: usize = 1 << 28;

/// Runs all rows.
pub fn run(bench: &mut Bench) -> Result<()> {
    [[64, 64, 64], [256, 256, 256], [1000, 37, 513]]
        .into_iter()
        .try_for_each(|sizes| matmul(bench, sizes))?;
    [64, 256].into_iter().try_for_each(|n| gemm(bench, n))?;
    if bench.device.backend_kind() == BackendKind::Cpu {
        [[64, 64, 64], [256, 256, 256], [1024, 1024, 1024], [1000, 37, 513]]
            .into_iter()
            .try_for_each(|sizes| host_gemm(bench, sizes))?;
    }
    [[64, 64], [1000, 1000], [16, 65536], [65536, 16]]
        .into_iter()
        .try_for_each(|sizes| gemv(bench, sizes))?;
    [[2, 64], [8, 512]].into_iter().try_for_each(|sizes| attention(bench, sizes))
}

fn matmul(bench: &mut Bench, [m, n, k]: [usize; 3]) -> Result<()> {
    let (a, b, out) = (bench.random(1, m * k)?, bench.random(2, k * n)?, bench.results(m * n)?);
    let op = bench.kernels.matmul(&a, &b, &out[0], m, n, k)?;
    let source = include_str!("kernels/matmul.wgsl");
    let naive = bench.naive(source, &[&a, &b, &out[1]], [n, m], &[m, n, k])?;
    bench.compare(&format!("matmul {m}x{n}x{k}"), &op, &naive, close(&out, 1e-4))
}

/// The second matrix is column-major.
fn gemm(bench: &mut Bench, n: usize) -> Result<()> {
    let (a, b, out) = (bench.random(1, n * n)?, bench.random(2, n * n)?, bench.results(n * n)?);
    let gemm = Gemm::new(n as u64, n as u64, n as u64, PtxType::F32)
        .with_layouts(Layout::RowMajor, Layout::ColMajor);
    let op = bench.kernels.gemm(&gemm, &[&a, &b, &out[0]])?;
    let source = include_str!("kernels/gemm.wgsl");
    let naive = bench.naive(source, &[&a, &b, &out[1]], [n, n], &[n; 3])?;
    bench.compare(&format!("gemm {n}x{n}x{n}, b col-major"), &op, &naive, close(&out, 1e-4))
}

/// The library's choice and its portable variants, beside the crate `gemm` with the same threads.
fn host_gemm(bench: &mut Bench, sizes @ [m, n, k]: [usize; 3]) -> Result<()> {
    let (a, b) = (bench.random(1, m * k)?, bench.random(2, k * n)?);
    let out: [Buffer<f32>; 2] = bench.results(m * n)?;
    let operands = [a.download()?, b.download()?];
    let product = RefCell::new(vec![0f32; m * n]);
    // In one submission: its latency is no part of the product.
    let times = (GEMM_FLOPS / (2 * m * n * k)).max(1);
    for (variant, goal) in
        [(None, Goal::AtLeast(0.95)), (Some("wgsl-packed"), Goal::None), (Some("wgsl"), Goal::None)]
    {
        let options =
            KernelOptions { variant: variant.map(str::to_owned), ..KernelOptions::default() };
        let op = bench.kernels.having(options).matmul(&a, &b, &out[0], m, n, k)?;
        let device = bench.device.clone();
        let ours: Run<'_> = Box::new(|| {
            let mut batch = device.batch();
            (0..times).try_for_each(|_| op.add_to(&mut batch))?;
            Ok(batch.submit()?)
        });
        let peer: Run<'_> = Box::new(|| {
            (0..times).for_each(|_| call_gemm(sizes, &operands, &mut product.borrow_mut()));
            Ok(())
        });
        let check = || {
            out[1].write(&product.borrow())?;
            close(&out, 1e-4)()
        };
        let name = format!("matmul {m}x{n}x{k}, {times} times");
        let variant = op.explain().variant();
        bench.row(&name, (variant, ours), ("crate gemm", peer, goal), Box::new(check))?;
    }
    Ok(())
}

/// Multiplies row-major matrices.
fn call_gemm([m, n, k]: [usize; 3], [a, b]: &[Vec<f32>; 2], out: &mut [f32]) {
    assert!(a.len() >= m * k && b.len() >= k * n && out.len() >= m * n);
    // SAFETY: the matrices lie within their slices, as asserted, and `out` is exclusive.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            false,
            a.as_ptr(),
            1,
            k as isize,
            b.as_ptr(),
            1,
            n as isize,
            0.0f32,
            1.0f32,
            false,
            false,
            false,
            gemm::Parallelism::Rayon(0),
        );
    }
}

fn gemv(bench: &mut Bench, [rows, columns]: [usize; 2]) -> Result<()> {
    const BATCH: usize = 4;
    let a = bench.random(1, BATCH * rows * columns)?;
    let x = bench.random(2, rows.max(columns))?;
    let y = bench.results(BATCH * rows.max(columns))?;
    let sizes = format!("{rows}x{columns}");
    let source = include_str!("kernels/gemv.wgsl");

    let op = bench.kernels.gemv(&a, &x, &y[0], rows, columns)?;
    let naive = bench.naive(source, &[&a, &x, &y[1]], rows, &[rows, columns])?;
    bench.compare(&format!("gemv {sizes}"), &op, &naive, close(&y, 1e-4))?;

    let op = bench.kernels.gemv_transposed(&a, &x, &y[0], rows, columns)?;
    let transposed = include_str!("kernels/gemv_transposed.wgsl");
    let naive = bench.naive(transposed, &[&a, &x, &y[1]], columns, &[rows, columns])?;
    bench.compare(&format!("gemv_transposed {sizes}"), &op, &naive, close(&y, 1e-4))?;

    let gemv = Gemv::new(rows as u64, columns as u64).batched(BATCH as u64);
    let op = bench.kernels.gemv_batch(&Gemv { x_stride: 0, ..gemv }, &a, &x, &y[0])?;
    let naive = bench.naive(source, &[&a, &x, &y[1]], BATCH * rows, &[BATCH * rows, columns])?;
    bench.compare(&format!("gemv_batch {BATCH}x{sizes}"), &op, &naive, close(&y, 1e-4))
}

fn attention(bench: &mut Bench, [heads, length]: [usize; 2]) -> Result<()> {
    const DIM: usize = 32;
    let count = heads * length * DIM;
    let (q, k, v) = (bench.random(1, count)?, bench.random(2, count)?, bench.random(3, count)?);
    let out = bench.results(count)?;
    let [len, dim] = [length, DIM].map(|size| size as u32);
    let shape = Attention::new([1, heads as u32], len, len, dim, PtxType::F32);
    let attention = Attention { causal: true, ..shape };
    let op = bench.kernels.attention(&attention, &[&q, &k, &v, &out[0]])?;
    let words = [heads as u32, len, (1.0 / (DIM as f32).sqrt()).to_bits()];
    let source = include_str!("kernels/attention.wgsl");
    let naive = bench.naive_with_words(source, &[&q, &k, &v, &out[1]], heads * length, &words)?;
    bench.compare(
        &format!("attention {heads}x{length}x{DIM}, causal"),
        &op,
        &naive,
        close(&out, 1e-4),
    )
}
