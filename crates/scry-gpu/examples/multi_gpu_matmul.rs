//! A matrix product on several devices: each multiplies some rows.
//!
//! Rank 0 has both matrices. The ranks receive all of B and their rows of A, multiply, and gather
//! the rows of the product. Every element is computed by one device, as on a single one: rank 0
//! checks that the bits are the same.
//!
//! As processes, one for each rank, on CUDA each with the GPU of its local rank:
//!
//!     cargo build --release -p scry-gpu --example multi_gpu_matmul
//!     scry launch --ranks 2 -- target/release/examples/multi_gpu_matmul
//!
//! On its own, the program is a group of all GPUs present, or of two CPU devices.

#[path = "shared/ranks.rs"]
mod ranks;

use scry_gpu::shaders::matmul;
use scry_gpu::{Buffer, DeviceGroup, Kernel, Launch, Result};

/// Rows of A per rank.
const ROWS: usize = 96;
/// Columns of A, rows of B.
const K: usize = 128;
/// Columns of B.
const COLUMNS: usize = 80;

fn main() -> Result<()> {
    ranks::run(multiply)
}

/// Multiplies with all ranks of a group.
fn multiply(group: &DeviceGroup) -> Result<()> {
    let (gpu, rank, world) = (group.device(), group.rank(), group.world_size());
    let kernel = gpu.compile(matmul::TILED_16X16)?;
    let (a, b) = match rank {
        0 => (gpu.upload(&numbers(1, world * ROWS * K))?, gpu.upload(&numbers(2, K * COLUMNS))?),
        _ => (gpu.alloc(world * ROWS * K)?, gpu.alloc(K * COLUMNS)?),
    };
    group.broadcast(&b, &b, 0)?;
    let rows = distribute(group, &a)?;
    let c = gpu.alloc::<f32>(world * ROWS * COLUMNS)?;
    let part = c.owned_slice(rank * ROWS * COLUMNS..(rank + 1) * ROWS * COLUMNS)?;
    let product = gpu.alloc::<f32>(ROWS * COLUMNS)?;
    run(&kernel, (&rows, &b, &product), ROWS)?;
    product.copy_to(&part)?;
    group.all_gather(&part, &c)?;
    if rank == 0 {
        let whole = gpu.alloc::<f32>(c.len())?;
        run(&kernel, (&a, &b, &whole), world * ROWS)?;
        assert_eq!(c.download()?, whole.download()?, "the product depends on the number of ranks");
        println!(
            "{} × {K} × {COLUMNS} on {world} ranks, through {}: the same bits as on {}",
            world * ROWS,
            group.transport(),
            gpu.name()
        );
    }
    Ok(())
}

/// Sends each rank its rows of rank 0's matrix, and returns those of this rank.
fn distribute(group: &DeviceGroup, a: &Buffer<f32>) -> Result<Buffer<f32>> {
    let rows = group.device().alloc::<f32>(ROWS * K)?;
    if group.rank() > 0 {
        group.recv(&rows, 0)?;
        return Ok(rows);
    }
    for rank in 1..group.world_size() {
        group.send(a.slice(rank * ROWS * K..(rank + 1) * ROWS * K)?, rank)?;
    }
    a.slice(..ROWS * K)?.copy_to(&rows)?;
    Ok(rows)
}

/// Launches the product of `rows` rows.
fn run(
    kernel: &Kernel,
    (a, b, c): (&Buffer<f32>, &Buffer<f32>, &Buffer<f32>),
    rows: usize,
) -> Result<()> {
    let shape = [rows, COLUMNS, K].map(|size| size as u32);
    let launch = Launch::invocations([COLUMNS, rows]).immediates(&shape);
    a.device().run(kernel, &[a, b, c], launch)
}

/// Returns numbers between -1 and 1.
fn numbers(seed: u32, len: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}
