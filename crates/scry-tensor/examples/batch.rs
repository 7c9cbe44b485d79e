//! Operations on handles, which run in one submission: layers of a network, with few kernels.
//!
//!     cargo run --release -p scry-tensor --example batch

use scry_tensor::{Device, Result, TensorBatch, compiled_kernels};

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let gpu = Device::auto()?;
    let (result, doubled) = layers(&gpu)?;
    println!("{:?} …\n{:?} …", &result[..4], &doubled[..4]);
    Ok(())
}

/// Returns the result of 36 layers, and twice the result, which another execution computes.
pub(crate) fn layers(gpu: &Device) -> Result<(Vec<f32>, Vec<f32>)> {
    let mut batch = TensorBatch::new(gpu)?;
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

    // Another execution computes with the result of the first.
    let y = batch.scale(x, 2.0)?;
    batch.execute()?;
    println!("kernels of element-wise operations compiled: {}", compiled_kernels(gpu));
    assert!(compiled_kernels(gpu) <= 3);
    Ok((result, batch.read::<f32>(y)?))
}
