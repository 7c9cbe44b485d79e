//! Flash attention on an NVIDIA GPU: the matrix of scores, gigabytes large, is never stored.
//!
//!     cargo run --release -p scry-kernels --example flash_attention_cuda -- [LENGTH]
//!
//! 4 batches of 16 heads of LENGTH (default 4096) rows of 128 columns, in f16: causal and not,
//! timed, and compared with the CPU in some rows. The kernels for Hopper are the fastest; Ampere
//! and Ada run flash attention with `mma.sync`, older GPUs the simple form of
//! `simple_attention_cuda`.

use std::env;
use std::error::Error;
use std::time::Duration;

use scry_gpu::{BackendKind, Buffer, Device, f16};
use scry_kernels::{Attention, Kernels, Op, PtxType};

#[path = "../../scry-gpu/examples/shared/random.rs"]
mod random;
#[path = "shared/reference.rs"]
mod reference;

use random::random_f32;
use reference::attention_row;

const BATCH: u32 = 4;
const HEADS: u32 = 16;
const COLUMNS: usize = 128;

/// Timed runs.
const SAMPLES: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let length: u32 = env::args().nth(1).map_or(Ok(4096), |text| text.parse())?;
    let gpu = match Device::with_backend(BackendKind::Cuda) {
        Ok(gpu) => gpu,
        Err(error) => {
            println!("this example needs an NVIDIA GPU: {error}");
            return Ok(());
        }
    };
    let kernels = Kernels::new(&gpu)?;
    println!("{}, {BATCH} x {HEADS} heads of {length} rows of {COLUMNS}", gpu.name());
    let count = (BATCH * HEADS * length) as usize * COLUMNS;
    let random =
        |seed| -> Vec<f16> { random_f32(seed, count).into_iter().map(f16::from_f32).collect() };
    let data = [random(1), random(2), random(3)];
    let (q, k, v) = (gpu.upload(&data[0])?, gpu.upload(&data[1])?, gpu.upload(&data[2])?);
    let out = gpu.alloc::<f16>(count)?;

    let full = Attention::new([BATCH, HEADS], length, length, COLUMNS as u32, PtxType::F16);
    for (name, attention) in [("all keys", full), ("causal", full.causal())] {
        let op = kernels.attention(&attention, &[&q, &k, &v, &out])?;
        op.run()?;
        let error = max_error(&attention, &data, &out)?;
        let time = time(&gpu, &op)?;
        let pairs =
            f64::from(length) * f64::from(length) / if attention.causal { 2.0 } else { 1.0 };
        let work = 4.0 * f64::from(BATCH * HEADS) * pairs * COLUMNS as f64;
        println!(
            "{name:<9} {:>9.1} µs {:>7.1} TFLOP/s, maximum error {error:.1e}, kernels {}",
            time.as_secs_f64() * 1e6,
            work / time.as_secs_f64() / 1e12,
            op.kernel_names().join(", ")
        );
        if error.is_nan() || error > 1e-2 {
            return Err("the error is too large".into());
        }
    }
    Ok(())
}

/// Measures the median device time.
fn time(gpu: &Device, op: &Op) -> scry_gpu::Result<Duration> {
    let mut times = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let mut batch = gpu.batch();
        op.add_to(&mut batch)?;
        times.push(batch.submit_timed()?.iter().sum());
    }
    times.sort_unstable();
    Ok(times[SAMPLES / 2])
}

/// Returns the larger error; NaN if one of them is.
fn larger(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

/// Returns the maximum error of three rows: the first row of the first head, the last row of the
/// last head, and one between.
fn max_error(
    attention: &Attention,
    data: &[Vec<f16>; 3],
    out: &Buffer<f16>,
) -> scry_gpu::Result<f64> {
    let length = attention.queries as usize;
    let (out, head_len) = (out.download()?, length * COLUMNS);
    let to_f32 = |values: &[f16]| -> Vec<f32> { values.iter().map(|x| x.to_f32()).collect() };
    let mut max = 0.0f64;
    for (head_index, row) in [(0, 0), (7, length / 3), (63, length - 1)] {
        let key_count = if attention.causal { row + 1 } else { length };
        let [q, k, v] =
            data.each_ref().map(|data| to_f32(&data[head_index * head_len..][..head_len]));
        let range = row * COLUMNS..(row + 1) * COLUMNS;
        let expected =
            attention_row(&q[range.clone()], &k[..key_count * COLUMNS], &v[..key_count * COLUMNS]);
        let got = to_f32(&out[head_index * head_len..][range]);
        let errors =
            got.iter().zip(expected).map(|(got, expected)| (f64::from(*got) - expected).abs());
        max = errors.fold(max, larger);
    }
    Ok(max)
}
