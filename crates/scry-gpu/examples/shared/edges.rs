//! Edge detection on a device.

use scry_gpu::{CompileOptions, Device, Result};

use crate::image::Image;

const KERNEL: &str = include_str!("../../../../examples/kernels/edges.wgsl");

/// Computes the gradient magnitude at every pixel, from 0 to 1; `radius` 1 is the Sobel operator.
pub fn find(gpu: &Device, photo: &Image, radius: u32) -> Result<Image> {
    let Image { width, height, .. } = *photo;
    let options = CompileOptions::new()
        .set("src_width", f64::from(width))
        .set("src_height", f64::from(height))
        .set("RADIUS", f64::from(radius));
    let kernel = gpu.compile_with(KERNEL, &options)?;
    let src = gpu.upload(&photo.pixels)?;
    let dst = gpu.alloc::<f32>(photo.pixels.len())?;
    gpu.run(&kernel, &[&src, &dst], (width, height))?;
    Ok(Image { width, height, pixels: dst.download()? })
}
