//! Clusters images of handwritten digits by k-means, and draws the clusters: each row has the mean
//! of a cluster and its first images. An iteration is one submission of a plan.
//!
//!     cargo run --release -p scry-tensor --example kmeans -- clusters.png

mod clusters;
mod picture;

use std::error::Error;
use std::path::Path;

use scry_tensor::Device;

fn main() -> Result<(), Box<dyn Error>> {
    let out = std::env::args().nth(1).unwrap_or_else(|| "clusters.png".into());
    let gpu = Device::auto()?;
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
    let digits = clusters::Digits::read(&data)?;
    let found = clusters::find(&gpu, &digits, 10)?;
    for (cluster, digit) in found.digits(&digits).iter().enumerate() {
        let count = found.nearest.iter().filter(|it| **it as usize == cluster).count();
        println!("cluster {cluster}: {count} images, most of {digit}");
    }
    let (iterations, device) = (found.iterations, gpu.name());
    println!("{iterations} iterations on {device}, {:.1} % in the cluster of their digit", {
        100.0 * found.purity(&digits)
    });
    picture::write(out.as_ref(), &digits, &found)?;
    println!("wrote {out}");
    Ok(())
}
