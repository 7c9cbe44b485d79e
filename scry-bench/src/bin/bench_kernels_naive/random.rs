//! Random numbers.

use anyhow::Result;

use crate::bench::{Bench, close, equal};

const SEED: u64 = 0x0123_4567_89ab_cdef;

const PHILOX: &str = include_str!("kernels/philox.wgsl");

/// Runs all rows.
pub fn run(bench: &mut Bench) -> Result<()> {
    [4096, 1 << 20].into_iter().try_for_each(|count| random(bench, count))
}

fn random(bench: &mut Bench, count: usize) -> Result<()> {
    let words = [count as u32, SEED as u32, (SEED >> 32) as u32];
    let y = bench.results::<u32>(count)?;
    let op = bench.kernels.random_bits(&y[0], SEED)?;
    let source = [PHILOX, include_str!("kernels/random_bits.wgsl")].concat();
    let naive = bench.naive_with_words(&source, &[&y[1]], count / 4, &words)?;
    bench.compare(&format!("random_bits {count}"), &op, &naive, equal(&y))?;

    let y = bench.results::<f32>(count)?;
    let op = bench.kernels.random_uniform(&y[0], SEED)?;
    let source = [PHILOX, include_str!("kernels/random_uniform.wgsl")].concat();
    let naive = bench.naive_with_words(&source, &[&y[1]], count / 4, &words)?;
    bench.compare(&format!("random_uniform {count}"), &op, &naive, close(&y, 0.0))?;

    let op = bench.kernels.random_normal(&y[0], SEED)?;
    let source = [PHILOX, include_str!("kernels/random_normal.wgsl")].concat();
    let naive = bench.naive_with_words(&source, &[&y[1]], count / 4, &words)?;
    // Single-precision sines of large angles differ.
    bench.compare(&format!("random_normal {count}"), &op, &naive, close(&y, 1e-3))
}
