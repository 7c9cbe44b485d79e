//! Attention in its simplest form, on an NVIDIA GPU: softmax(Q·Kᵀ/√d)·V.
//!
//!     cargo run --release -p scry-kernels --example simple_attention_cuda
//!
//! One warp computes one row of the output, and reads all keys for it. `flash_attention_cuda` is
//! faster.

use std::error::Error;

use scry_gpu::{BackendKind, Device};
use scry_kernels::{Attention, KernelOptions, Kernels, PtxType};

#[path = "../../scry-gpu/examples/shared/random.rs"]
mod random;
#[path = "shared/reference.rs"]
mod reference;

use random::random_f32;
use reference::attention_row;

/// Rows of queries, rows of keys and values, and columns of each.
const QUERIES: u32 = 100;
const KEYS: u32 = 300;
const COLUMNS: u32 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let gpu = match Device::with_backend(BackendKind::Cuda) {
        Ok(gpu) => gpu,
        Err(error) => {
            println!("this example needs an NVIDIA GPU: {error}");
            return Ok(());
        }
    };
    // The variant in its simplest form, which the library would not choose.
    let options = KernelOptions { variant: Some("ptx-naive".to_owned()), ..Default::default() };
    let kernels = Kernels::with_options(&gpu, options)?;
    let q = random_f32(1, (QUERIES * COLUMNS) as usize);
    let k = random_f32(2, (KEYS * COLUMNS) as usize);
    let v = random_f32(3, (KEYS * COLUMNS) as usize);
    let (gpu_q, gpu_k, gpu_v) = (gpu.upload(&q)?, gpu.upload(&k)?, gpu.upload(&v)?);
    let out = gpu.alloc::<f32>(q.len())?;

    // One head of one batch.
    let attention = Attention::new([1, 1], QUERIES, KEYS, COLUMNS, PtxType::F32);
    let op = kernels.attention(&attention, &[&gpu_q, &gpu_k, &gpu_v, &out])?;
    op.run()?;
    let out = out.download()?;

    let columns = COLUMNS as usize;
    let mut error = 0.0f64;
    for (q, got) in q.chunks_exact(columns).zip(out.chunks_exact(columns)) {
        for (got, expected) in got.iter().zip(attention_row(q, &k, &v)) {
            let difference = (f64::from(*got) - expected).abs();
            // Unlike `f64::max`, keeps a NaN.
            if difference > error || difference.is_nan() {
                error = difference;
            }
        }
    }
    println!("{} on {}", op.kernel_names().join(", "), gpu.name());
    println!("{QUERIES} queries, {KEYS} keys: maximum error {error:.1e}");
    if error < 1e-5 { Ok(()) } else { Err("the error is too large".into()) }
}
