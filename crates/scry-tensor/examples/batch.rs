//! Operations on handles, which run in one submission: layers of a network, with few kernels.
//!
//!     cargo run --release -p scry-tensor --example batch

use scry_tensor::{Device, TensorBatch, compiled_kernels};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = Device::auto()?;
    let mut batch = TensorBatch::new(&gpu)?;
    let weights: Vec<f32> = (0..32 * 32).map(|n| ((n * 7) % 11) as f32 / 88.0).collect();
    let w = batch.upload(&weights, [32, 32])?;
    let mut x = batch.upload(&[0.5f32; 4 * 32], [4, 32])?;
    for _ in 0..36 {
        let hidden = batch.matmul(x, w)?;
        let hidden = batch.gelu(hidden)?;
        let product = batch.matmul(hidden, w)?;
        x = batch.scale(product, 0.5)?;
    }
    batch.execute()?;
    let result = batch.read::<f32>(x)?;
    println!("{:?} …", &result[..4]);
    println!("kernels of element-wise operations compiled: {}", compiled_kernels(&gpu));
    assert!(compiled_kernels(&gpu) <= 3);

    // The next execution compiles nothing.
    let y = batch.scale(x, 2.0)?;
    batch.execute()?;
    println!("{:?} …", &batch.read::<f32>(y)?[..4]);
    Ok(())
}
