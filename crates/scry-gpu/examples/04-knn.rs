//! Recognises handwritten digits by their nearest neighbours.
//!
//! Leave-one-out: every digit is classified by the labels of its k nearest other digits. One
//! launch of a pairwise kernel from `scry_gpu::shaders` computes all distances.
//!
//!     cargo run --release -p scry-gpu --example 04-knn

use std::error::Error;
use std::time::Instant;

use scry_gpu::Device;

#[path = "shared/knn.rs"]
mod knn;
#[path = "shared/root.rs"]
mod root;

fn main() -> Result<(), Box<dyn Error>> {
    let gpu = Device::auto()?;
    let digits = knn::Digits::read(&root::root().join("examples/data"))?;
    let count = digits.labels.len();

    let start = Instant::now();
    let distances = knn::distances(&gpu, &digits)?;
    let elapsed = start.elapsed();
    println!("{count} × {count} distances on {} in {elapsed:.1?}", gpu.name());

    for k in [1, 3, 5] {
        let predicted = knn::classify(&distances, &digits.labels, k);
        let correct = predicted.iter().zip(&digits.labels).filter(|(a, b)| a == b).count();
        let accuracy = 100.0 * correct as f64 / count as f64;
        println!("k = {k}: {correct} of {count} correct, {accuracy:.2} %");
    }
    Ok(())
}
