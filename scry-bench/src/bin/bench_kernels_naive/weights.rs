//! Quantised weights.

use anyhow::{Result, ensure};
use scry_gpu::{Buffer, DType};
use scry_kernels::BlockFormat;

use crate::bench::{Bench, Check, close};

const FORMAT: BlockFormat = BlockFormat::Q8_0;

const WEIGHTS: &str = include_str!("kernels/q8_0.wgsl");

/// Runs all rows.
pub fn run(bench: &mut Bench) -> Result<()> {
    [[16, 256], [1024, 1024]].into_iter().try_for_each(|sizes| weights(bench, sizes))
}

fn weights(bench: &mut Bench, [rows, k]: [usize; 2]) -> Result<()> {
    let count = rows * k;
    let x = bench.random(1, count)?;
    let blocks: [Buffer<u8>; 2] = bench.results(count / 32 * 34)?;
    let as_words = |nth: usize| blocks[nth].untyped().view_as(DType::U32);
    let words = [as_words(0)?, as_words(1)?];
    let sizes = format!("Q8_0 {rows}x{k}");

    let op = bench.kernels.quantize(FORMAT, &x, &blocks[0], count)?;
    let source = include_str!("kernels/quantize.wgsl");
    let naive = bench.naive(source, &[&x, &words[1]], count / 64, &[count / 32])?;
    bench.compare(&format!("quantize {sizes}"), &op, &naive, almost_equal(&blocks))?;
    op.run()?;

    let y = bench.results(count)?;
    let op = bench.kernels.dequantize(FORMAT, &blocks[0], &y[0], count)?;
    let source = [WEIGHTS, include_str!("kernels/dequantize.wgsl")].concat();
    let naive = bench.naive(&source, &[&words[0], &y[1]], count, &[count])?;
    bench.compare(&format!("dequantize {sizes}"), &op, &naive, close(&y, 1e-6))?;

    for n in [1, 16] {
        let (x, y) = (bench.random(2, k * n)?, bench.results(rows * n)?);
        let op = bench.kernels.quantized_matmul(FORMAT, &blocks[0], &x, &y[0], [rows, k], n)?;
        let source = [WEIGHTS, include_str!("kernels/quantized_matmul.wgsl")].concat();
        let naive = bench.naive(&source, &[&words[0], &x, &y[1]], [rows, n], &[rows, k, n])?;
        let name = format!("quantized_matmul {sizes}, {n}");
        bench.compare(&name, &op, &naive, close(&y, 1e-3))?;
    }
    Ok(())
}

/// Checks blocks: divisions in WGSL may be off by a unit in the last place, which changes few
/// integers.
fn almost_equal(blocks: &[Buffer<u8>; 2]) -> Check<'_> {
    Box::new(move || {
        let [ours, naive] = [blocks[0].download()?, blocks[1].download()?];
        let differing = ours.iter().zip(&naive).filter(|(ours, naive)| ours != naive).count();
        ensure!(differing * 100 < naive.len(), "{differing} bytes of {} differ", naive.len());
        Ok(())
    })
}
