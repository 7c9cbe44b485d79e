//! Permutations, gathers and scatters.

use anyhow::Result;
use scry_gpu::{Batch, DType, Launch};
use scry_kernels::KernelOptions;

use crate::bench::{Bench, close};

/// Runs all rows.
pub fn run(bench: &mut Bench) -> Result<()> {
    for sizes in [[4, 32, 32], [4, 500, 500], [1, 1024, 1024], [1, 65536, 16]] {
        permutations(bench, sizes)?;
    }
    for sizes in [[500, 8, 500], [10_000, 64, 16_384], [100, 1024, 1000]] {
        gathers(bench, sizes)?;
        scatters(bench, sizes)?;
    }
    Ok(())
}

fn permutations(bench: &mut Bench, dims @ [batch, rows, columns]: [usize; 3]) -> Result<()> {
    let (x, y) = (bench.random(1, batch * rows * columns)?, bench.results(batch * rows * columns)?);
    let source = include_str!("kernels/transpose.wgsl");
    let grid = [columns, batch * rows];
    let op = bench.kernels.transpose(&x, &y[0], batch * rows, columns)?;
    let naive = bench.naive(source, &[&x, &y[1]], grid, &[1, batch * rows, columns])?;
    bench.compare(&format!("transpose {}x{columns}", batch * rows), &op, &naive, close(&y, 0.0))?;

    let op = bench.kernels.transpose_batch(&x, &y[0], batch, rows, columns)?;
    let naive = bench.naive(source, &[&x, &y[1]], [columns, rows, batch], &dims)?;
    let sizes = format!("{batch}x{rows}x{columns}");
    bench.compare(&format!("transpose_batch {sizes}"), &op, &naive, close(&y, 0.0))?;

    let op = bench.kernels.permute(&x, &y[0], &dims, &[1, 2, 0])?;
    let source = include_str!("kernels/permute.wgsl");
    let naive = bench.naive(source, &[&x, &y[1]], batch * rows * columns, &dims)?;
    bench.compare(&format!("permute {sizes}, 1 2 0"), &op, &naive, close(&y, 0.0))
}

fn gathers(bench: &mut Bench, sizes @ [rows, columns, count]: [usize; 3]) -> Result<()> {
    let (x, y) = (bench.random(1, rows * columns)?, bench.results(count * columns)?);
    let indices = bench.words(2, count * columns, rows as u32)?;
    let op = bench.kernels.gather_rows(&x, &indices, &y[0], rows, columns, count)?;
    let source = include_str!("kernels/gather_rows.wgsl");
    let naive = bench.naive(source, &[&x, &indices, &y[1]], count * columns, &sizes)?;
    let name = format!("gather_rows {count} of {rows}x{columns}");
    bench.compare(&name, &op, &naive, close(&y, 0.0))?;

    let (len, count) = (rows * columns, count * columns);
    let op = bench.kernels.gather(&x, &indices, &y[0], len, count)?;
    let source = include_str!("kernels/gather.wgsl");
    let naive = bench.naive(source, &[&x, &indices, &y[1]], count, &[len, count])?;
    bench.compare(&format!("gather {count} of {len}"), &op, &naive, close(&y, 0.0))
}

fn scatters(bench: &mut Bench, sizes @ [rows, columns, count]: [usize; 3]) -> Result<()> {
    let x = bench.random(1, count * columns)?;
    // Indices that differ: the naive kernel writes equal ones in any order.
    let permutation: Vec<u32> = (0..rows as u32).map(|at| at * 7919 % rows as u32).collect();
    let (indices, y) = (bench.device.upload(&permutation)?, bench.results(rows * columns)?);
    let op = bench.kernels.scatter_rows(&x, &indices, &y[0], rows, columns, rows.min(count))?;
    let source = include_str!("kernels/scatter_rows.wgsl");
    let distinct = [rows, columns, rows.min(count)];
    let invocations = rows.min(count) * columns;
    let naive = bench.naive(source, &[&x, &indices, &y[1]], invocations, &distinct)?;
    let name = format!("scatter_rows {} to {rows}x{columns}", rows.min(count));
    bench.compare(&name, &op, &naive, close(&y, 0.0))?;

    let indices = bench.words(2, count, rows as u32)?;
    let serial = include_str!("kernels/scatter_add_serial.wgsl");
    for (title, deterministic, source, invocations) in [
        ("any order", false, include_str!("kernels/scatter_add.wgsl"), count * columns),
        ("in order", true, serial, columns),
    ] {
        let options = KernelOptions { deterministic, ..KernelOptions::default() };
        let kernels = bench.kernels.having(options);
        let op = kernels.scatter_add_rows(&x, &indices, &y[0], rows, columns, count)?;
        let grid = Launch::invocations(invocations);
        let sums = match deterministic {
            true => y[1].untyped(),
            // Atomics of words.
            false => y[1].untyped().view_as(DType::U32)?,
        };
        let naive = [bench.naive(source, &[&x, &indices, &sums], grid, &sizes)?];
        let clear = |nth: usize| {
            let y = &y[nth];
            move |batch: &mut Batch| batch.fill(y, 0.0).map(|_| ())
        };
        let name = format!("scatter_add {count} to {rows}x{columns}, {title}");
        bench.compare_batches(&name, (clear(0), &op), (clear(1), &naive), close(&y, 1e-4))?;
    }
    Ok(())
}
