//! Detects the edges of a photograph and writes them to a PNG file.
//!
//!     cargo run --release -p scry-gpu --example 03-images -- edges.png
//!
//! The kernel is examples/kernels/edges.wgsl; the image is examples/data/camera.png.

use std::env;
use std::error::Error;

use scry_gpu::Device;

#[path = "shared/edges.rs"]
mod edges;
#[path = "shared/image.rs"]
mod image;
#[path = "shared/root.rs"]
mod root;

fn main() -> Result<(), Box<dyn Error>> {
    let out = env::args().nth(1).unwrap_or_else(|| "edges.png".into());
    let gpu = Device::auto()?;
    let photo = image::read(&root::root().join("examples/data/camera.png"))?;
    // The file keeps the last result, that of radius 1.
    for radius in [3, 1] {
        let edges = edges::find(&gpu, &photo, radius)?;
        let strong = edges.pixels.iter().filter(|&&pixel| pixel > 0.25).count();
        println!("radius {radius}: {strong} of {} pixels are edges", edges.pixels.len());
        image::write(out.as_ref(), &edges)?;
    }
    println!("wrote {out} ({} × {}), computed on {}", photo.width, photo.height, gpu.name());
    Ok(())
}
