//! Greyscale images as PNG files.

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use png::{BitDepth, ColorType, Decoder, Encoder, Transformations};

/// A greyscale image, row-major from the top, from 0 (black) to 1 (white).
pub struct Image {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// The pixels.
    pub pixels: Vec<f32>,
}

/// Reads an image; colour is converted to luma (Rec. 709 weights), transparency is ignored.
pub fn read(path: &Path) -> Result<Image, Box<dyn Error>> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut decoder = Decoder::new(BufReader::new(file));
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info()?;
    let size = reader.output_buffer_size().ok_or("the image does not fit in memory")?;
    let mut bytes = vec![0; size];
    let frame = reader.next_frame(&mut bytes)?;
    let channels = frame.color_type.samples();
    let pixels = bytes[..frame.buffer_size()].chunks_exact(channels).map(grey).collect();
    Ok(Image { width: frame.width, height: frame.height, pixels })
}

fn grey(samples: &[u8]) -> f32 {
    let luma = match samples {
        [r, g, b, ..] => 0.2126 * f32::from(*r) + 0.7152 * f32::from(*g) + 0.0722 * f32::from(*b),
        [grey, ..] => f32::from(*grey),
        [] => 0.0,
    };
    luma / 255.0
}

/// Writes an image with 8 bits per pixel.
pub fn write(path: &Path, image: &Image) -> Result<(), Box<dyn Error>> {
    let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut encoder = Encoder::new(BufWriter::new(file), image.width, image.height);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::Eight);
    let bytes: Vec<u8> = image.pixels.iter().map(|pixel| (pixel * 255.0).round() as u8).collect();
    encoder.write_header()?.write_image_data(&bytes)?;
    Ok(())
}
