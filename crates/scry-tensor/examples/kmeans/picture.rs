//! Clusters as a picture.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use crate::clusters::{Clusters, Digits};

/// Images of a row after the mean.
const COLUMNS: usize = 16;
/// Pixels of the picture for one of an image, along each axis.
const SCALE: usize = 4;
/// Pixels from one image to the next.
pub const STRIDE: usize = 9 * SCALE;

/// Returns the size of the picture of a number of clusters.
pub fn size(clusters: usize) -> [usize; 2] {
    [(COLUMNS + 1) * STRIDE, clusters * STRIDE]
}

/// Writes a picture with a row for each cluster: its mean, and its first images.
pub fn write(path: &Path, digits: &Digits, found: &Clusters) -> Result<(), Box<dyn Error>> {
    let clusters = found.means.len() / 64;
    let [width, height] = size(clusters);
    let mut pixels = vec![255u8; width * height];
    for cluster in 0..clusters {
        draw(&mut pixels, width, [0, cluster], &found.means[cluster * 64..][..64]);
        let own = (0..found.nearest.len()).filter(|n| found.nearest[*n] as usize == cluster);
        for (column, image) in own.take(COLUMNS).enumerate() {
            draw(&mut pixels, width, [column + 1, cluster], &digits.images[image * 64..][..64]);
        }
    }
    let file = BufWriter::new(File::create(path)?);
    let mut encoder = png::Encoder::new(file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    Ok(writer.finish()?)
}

/// Draws an image of 8 × 8 numbers from 0 to 16, dark on white.
fn draw(pixels: &mut [u8], width: usize, [column, row]: [usize; 2], image: &[f32]) {
    for y in 0..8 * SCALE {
        for x in 0..8 * SCALE {
            let number = image[y / SCALE * 8 + x / SCALE];
            let at = (row * STRIDE + y) * width + column * STRIDE + x;
            pixels[at] = 255 - (number * 15.9) as u8;
        }
    }
}
