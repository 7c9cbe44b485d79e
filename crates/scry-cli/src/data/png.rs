//! PNG images, as packed pixels, grey values or RGBA values.

use std::io::{BufRead, Seek, Write};

use png::{BitDepth, ColorType, Decoder, Encoder, Info, Transformations};

use super::array::{Array, Bytes, Shape, available_memory};
use super::dtype::Dtype;
use crate::report::Failure;

/// A decoded image: 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA) samples per pixel.
#[derive(Debug)]
pub struct Image {
    /// Pixels in a row.
    pub width: u32,
    /// Rows, from the top.
    pub height: u32,
    channels: usize,
    /// True if a sample is two bytes, the high one first.
    is_16_bit: bool,
    samples: Bytes,
}

/// The representation of pixels in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pixels {
    /// One u32 per pixel: R in the low byte, then G, B and A.
    Packed,
    /// One f32 per pixel, from 0 (black) to 1 (white).
    Grey,
    /// Four f32 per pixel: R, G, B and A, from 0 to 1.
    Rgba,
}

impl Pixels {
    /// Returns the representation for elements of type `dtype` with the inner dimensions `inner`;
    /// `None` if images cannot have such elements.
    pub fn for_elements(dtype: Option<Dtype>, inner: &[u64]) -> Option<Self> {
        match (dtype?, inner) {
            (Dtype::U32, []) => Some(Self::Packed),
            (Dtype::F32, []) => Some(Self::Grey),
            (Dtype::F32, [4]) => Some(Self::Rgba),
            _ => None,
        }
    }
}

/// Maximum number of pixels of an image: as RGBA values they need 4 GiB.
const MAX_PIXELS: u64 = 1 << 28;

/// The maximum compression ratio of deflate: 258 bytes in two bits.
const MAX_RATIO: u64 = 1032;

/// Reads an image: any colour type and depth, palettes and transparency expanded. `size` is that of
/// the file in bytes.
pub fn read(file: impl BufRead + Seek, size: u64) -> Result<Image, String> {
    let mut decoder = Decoder::new(file);
    decoder.set_transformations(Transformations::EXPAND);
    let header = decoder.read_header_info().map_err(|error| error.to_string())?;
    check_size(header, size, available_memory().unwrap_or(u64::MAX))?;
    let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
    // The expanded size, which may exceed that in the file.
    let size = reader.output_buffer_size().ok_or("the image exceeds the address space")?;
    let mut samples = Bytes::zeroed(size).map_err(Failure::into_text)?;
    let frame = reader.next_frame(samples.as_mut_slice()).map_err(|error| error.to_string())?;
    samples.truncate(frame.buffer_size());
    Ok(Image {
        width: frame.width,
        height: frame.height,
        channels: frame.color_type.samples(),
        is_16_bit: frame.bit_depth == BitDepth::Sixteen,
        samples,
    })
}

/// Checks the size in a header against the size of the file and the available memory, before any
/// allocation.
fn check_size(header: &Info<'_>, size: u64, available: u64) -> Result<(), String> {
    let Info { width, height, color_type, bit_depth, .. } = *header;
    let pixels = u64::from(width) * u64::from(height);
    if pixels > MAX_PIXELS {
        return Err(format!(
            "the image has {width}x{height} pixels, but at most {MAX_PIXELS} are supported; \
             help: cut it into parts, or save its pixels as .npy"
        ));
    }
    let bits = color_type.samples() as u64 * u64::from(bit_depth as u8);
    let bytes = u64::from(height) * (u64::from(width) * bits).div_ceil(8);
    let max_bytes = size.saturating_mul(MAX_RATIO);
    if bytes > max_bytes {
        return Err(format!(
            "its header declares {width}x{height} pixels of {bits} bits, which are {bytes} bytes, \
             but the {size} bytes of the file decompress to at most {max_bytes}; help: the file is \
             damaged or truncated, get it again"
        ));
    }
    let expanded = pixels * expanded_bytes(color_type, bit_depth);
    if expanded > available {
        return Err(format!(
            "its {width}x{height} pixels need {expanded} bytes of memory, and {available} are \
             available; help: cut it into parts"
        ));
    }
    Ok(())
}

/// Returns an upper bound of an expanded pixel's size in bytes. Palettes and transparency become
/// channels, and samples of fewer than 8 bits become bytes, so one bit of a file may become four
/// bytes.
fn expanded_bytes(color_type: ColorType, depth: BitDepth) -> u64 {
    let channels = match color_type {
        ColorType::Grayscale | ColorType::GrayscaleAlpha => 2,
        ColorType::Rgb | ColorType::Rgba | ColorType::Indexed => 4,
    };
    channels * if depth == BitDepth::Sixteen { 2 } else { 1 }
}

impl Image {
    /// Returns the pixels as an array of `height` rows of `width` pixels.
    pub fn array(&self, pixels: Pixels) -> Result<Array, Failure> {
        let shape = Shape(vec![self.height.into(), self.width.into()]);
        let (dtype, shape) = match pixels {
            Pixels::Packed => (Dtype::U32, shape),
            Pixels::Grey => (Dtype::F32, shape),
            Pixels::Rgba => (Dtype::F32, shape.with_inner_dimensions(&[4])),
        };
        let mut bytes = Bytes::zeroed(shape.bytes(4)?)?;
        match pixels {
            Pixels::Packed => self.fill(bytes.values_mut(), |out: &mut [u32; 1], rgba| {
                out[0] = u32::from_le_bytes(rgba.map(to_byte));
            }),
            Pixels::Grey => self.fill(bytes.values_mut(), |out: &mut [f32; 1], [r, g, b, _]| {
                // ITU-R BT.601; grey pixels are kept exactly.
                out[0] = if r == g && g == b { r } else { 0.299 * r + 0.587 * g + 0.114 * b };
            }),
            Pixels::Rgba => self.fill(bytes.values_mut(), |out: &mut [f32; 4], rgba| *out = rgba),
        }
        Ok(Array { dtype, shape, bytes })
    }

    /// Calls `store` for each pixel, with its `N` elements of `out` and its R, G, B and A from 0 to
    /// 1.
    fn fill<T, const N: usize>(&self, out: &mut [T], store: impl Fn(&mut [T; N], [f32; 4])) {
        let width = self.channels * if self.is_16_bit { 2 } else { 1 };
        let pixels = self.samples.as_slice().chunks_exact(width);
        for (elements, pixel) in out.chunks_exact_mut(N).zip(pixels) {
            let sample = |i: usize| {
                if self.is_16_bit {
                    f32::from(u16::from_be_bytes([pixel[2 * i], pixel[2 * i + 1]])) / 65535.0
                } else {
                    f32::from(pixel[i]) / 255.0
                }
            };
            let rgba = match self.channels {
                1 => [sample(0), sample(0), sample(0), 1.0],
                2 => [sample(0), sample(0), sample(0), sample(1)],
                3 => [sample(0), sample(1), sample(2), 1.0],
                _ => [sample(0), sample(1), sample(2), sample(3)],
            };
            store(elements.try_into().expect("chunks have N elements"), rgba);
        }
    }
}

/// Converts 0 … 1 to 0 … 255, rounded and clamped; NaN becomes 0.
fn to_byte(value: f32) -> u8 {
    (value.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// Converts 0 … 1 to 0 … 65535 in the same way.
fn to_16_bit(value: f32) -> [u8; 2] {
    ((f64::from(value).clamp(0.0, 1.0) * 65535.0).round() as u16).to_be_bytes()
}

/// The bit depth of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    Eight,
    /// Not for packed pixels, whose samples are bytes.
    Sixteen,
}

/// Writes pixels as an image: packed and RGBA ones with alpha, grey ones as grey.
pub fn write(
    out: &mut dyn Write,
    (pixels, depth): (Pixels, Depth),
    [width, height]: [u32; 2],
    bytes: &Bytes,
) -> Result<(), png::EncodingError> {
    let mut encoder = Encoder::new(out, width, height);
    encoder.set_color(match pixels {
        Pixels::Grey => ColorType::Grayscale,
        Pixels::Packed | Pixels::Rgba => ColorType::Rgba,
    });
    encoder.set_depth(match depth {
        Depth::Eight => BitDepth::Eight,
        Depth::Sixteen => BitDepth::Sixteen,
    });
    let values = bytes.values::<f32>();
    let samples: Vec<u8> = match (pixels, depth) {
        (Pixels::Packed, _) => bytes.values::<u32>().iter().flat_map(|p| p.to_le_bytes()).collect(),
        (_, Depth::Eight) => values.iter().map(|value| to_byte(*value)).collect(),
        (_, Depth::Sixteen) => values.iter().flat_map(|value| to_16_bit(*value)).collect(),
    };
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&samples)?;
    writer.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn read(file: Vec<u8>) -> Result<Image, String> {
        let size = file.len() as u64;
        super::read(Cursor::new(file), size)
    }

    /// Returns a file whose header declares this size, with only a few bytes of pixel data.
    fn with_false_size(color: ColorType, width: u32, height: u32) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, width, height);
        encoder.set_color(color);
        let mut writer = encoder.write_header().unwrap();
        writer.write_chunk(png::chunk::IDAT, &[0x78, 0x9c, 0x63, 0, 0, 0, 1, 0, 1]).unwrap();
        drop(writer);
        file
    }

    /// Encodes samples, as indices of a palette of two colours if the type is indexed, and decodes
    /// them.
    fn encoded(color: ColorType, depth: BitDepth, width: u32, height: u32, data: &[u8]) -> Image {
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, width, height);
        encoder.set_color(color);
        encoder.set_depth(depth);
        if color == ColorType::Indexed {
            encoder.set_palette(vec![10, 20, 30, 255, 0, 0]);
            encoder.set_trns(vec![255, 128]);
        }
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(data).unwrap();
        writer.finish().unwrap();
        read(file).unwrap()
    }

    fn packed(image: &Image) -> Vec<u32> {
        image.array(Pixels::Packed).unwrap().bytes.values().to_vec()
    }

    #[test]
    fn every_colour_type_becomes_rgba() {
        use BitDepth::{Eight, One, Sixteen};
        let grey = encoded(ColorType::Grayscale, Eight, 2, 1, &[0, 200]);
        assert_eq!(packed(&grey), [0xff00_0000, 0xffc8_c8c8]);
        let bits = encoded(ColorType::Grayscale, One, 2, 1, &[0b0100_0000]);
        assert_eq!(packed(&bits), [0xff00_0000, 0xffff_ffff]);
        let rgb = encoded(ColorType::Rgb, Eight, 1, 1, &[1, 2, 3]);
        assert_eq!(packed(&rgb), [0xff03_0201]);
        let rgba = encoded(ColorType::Rgba, Eight, 1, 1, &[1, 2, 3, 4]);
        assert_eq!(packed(&rgba), [0x0403_0201]);
        let alpha = encoded(ColorType::GrayscaleAlpha, Eight, 1, 1, &[9, 8]);
        assert_eq!(packed(&alpha), [0x0809_0909]);
        let deep = encoded(ColorType::Rgb, Sixteen, 1, 1, &[0x80, 0, 0xff, 0xff, 0, 0]);
        assert_eq!(packed(&deep), [0xff00_ff80]);
        let palette = encoded(ColorType::Indexed, Eight, 2, 1, &[0, 1]);
        assert_eq!(packed(&palette), [0xff1e_140a, 0x8000_00ff]);
    }

    #[test]
    fn all_8_bit_levels_round_trip() {
        let levels: Vec<u8> = (0..=255).collect();
        let image = encoded(ColorType::Grayscale, BitDepth::Eight, 16, 16, &levels);
        for pixels in [Pixels::Packed, Pixels::Grey, Pixels::Rgba] {
            let array = image.array(pixels).unwrap();
            let mut file = Vec::new();
            write(&mut file, (pixels, Depth::Eight), [16, 16], &array.bytes).unwrap();
            let again = read(file).unwrap();
            assert_eq!((again.width, again.height), (16, 16));
            assert_eq!(again.array(pixels).unwrap(), array, "{pixels:?}");
        }
    }

    #[test]
    fn grey_is_weighted() {
        let rgb =
            encoded(ColorType::Rgb, BitDepth::Eight, 3, 1, &[255, 0, 0, 0, 255, 0, 0, 0, 255]);
        let grey = rgb.array(Pixels::Grey).unwrap();
        assert_eq!(grey.shape, Shape(vec![1, 3]));
        assert_eq!(grey.bytes.values::<f32>(), [0.299, 0.587, 0.114]);
        let deep = encoded(ColorType::Grayscale, BitDepth::Sixteen, 1, 1, &[0x12, 0x34]);
        let grey = deep.array(Pixels::Grey).unwrap();
        assert_eq!(grey.bytes.values::<f32>(), [4660.0 / 65535.0]);
    }

    #[test]
    fn values_outside_are_clamped() {
        assert_eq!([-1.0, 0.0, 0.5, 1.0, 9.0, f32::NAN].map(to_byte), [0, 0, 128, 255, 255, 0]);
    }

    #[test]
    fn all_16_bit_levels_round_trip() {
        let levels: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_be_bytes).collect();
        let image = encoded(ColorType::Grayscale, BitDepth::Sixteen, 256, 256, &levels);
        for pixels in [Pixels::Grey, Pixels::Rgba] {
            let array = image.array(pixels).unwrap();
            let mut file = Vec::new();
            write(&mut file, (pixels, Depth::Sixteen), [256, 256], &array.bytes).unwrap();
            assert_eq!(read(file).unwrap().array(pixels).unwrap(), array, "{pixels:?}");
        }
        let odd = [-1.0, 0.5, 9.0, f32::NAN, f32::INFINITY].map(to_16_bit).map(u16::from_be_bytes);
        assert_eq!(odd, [0, 32768, 65535, 0, 65535]);
    }

    /// A palette of 1 bit becomes 4 bytes per pixel.
    #[test]
    fn expanded_samples_are_counted() {
        let checked = |color, depth, available| {
            let mut info = Info::with_size(1 << 14, 1 << 14);
            (info.color_type, info.bit_depth) = (color, depth);
            check_size(&info, 1 << 20, available)
        };
        let palette = |available| checked(ColorType::Indexed, BitDepth::One, available);
        assert_eq!(palette(1 << 30), Ok(()), "a picture of one colour may be so small");
        let problem = palette((1 << 30) - 1).unwrap_err();
        assert!(
            problem.contains("16384x16384 pixels need 1073741824 bytes of memory"),
            "{problem}"
        );
        let grey = |available| checked(ColorType::Grayscale, BitDepth::One, available);
        assert!(grey(1 << 29).is_ok() && grey((1 << 29) - 1).is_err());
        let sixteen = |available| checked(ColorType::Grayscale, BitDepth::Sixteen, available);
        assert!(sixteen(1 << 30).is_ok() && sixteen((1 << 30) - 1).is_err());
    }

    #[test]
    fn damaged_images_are_rejected() {
        assert!(read(b"no image".to_vec()).is_err());
        let mut file = Vec::new();
        let bytes = Bytes::zeroed(64 * 64 * 4).unwrap();
        write(&mut file, (Pixels::Packed, Depth::Eight), [64, 64], &bytes).unwrap();
        file.truncate(file.len() / 2);
        assert!(read(file).is_err());
    }

    #[test]
    fn damaged_images_never_panic() {
        let mut good = Vec::new();
        let bytes = Bytes::zeroed(5 * 3 * 4).unwrap();
        write(&mut good, (Pixels::Packed, Depth::Eight), [5, 3], &bytes).unwrap();
        for at in 0..good.len() {
            assert!(read(good[..at].to_vec()).is_err() || at + 16 > good.len(), "{at} bytes");
            for other in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] = other;
                if let Ok(image) = read(bad) {
                    let pixels = u64::from(image.width) * u64::from(image.height);
                    let array = image.array(Pixels::Rgba).unwrap();
                    assert_eq!(array.bytes.len() as u64, pixels * 16, "byte {at} is {other}");
                }
            }
        }
    }

    #[test]
    fn false_image_sizes_are_rejected() {
        let claims =
            |color, width, height| read(with_false_size(color, width, height)).unwrap_err();
        let problem = claims(ColorType::Rgba, 16384, 16384);
        assert!(
            problem.contains("16384x16384 pixels of 32 bits, which are 1073741824 bytes"),
            "{problem}"
        );
        assert!(problem.contains("bytes of the file decompress to at most"), "{problem}");
        for (width, height) in [(30000, 30000), (u32::MAX >> 1, u32::MAX >> 1), (1 << 28, 2)] {
            let problem = claims(ColorType::Rgba, width, height);
            assert!(
                problem.contains(&format!("{width}x{height} pixels, but at most")),
                "{problem}"
            );
        }
        let problem = claims(ColorType::Rgba, 8, 8);
        assert!(!problem.contains("help"), "the text of the decoder: {problem}");
    }

    /// An image of one colour has about the maximum compression ratio.
    #[test]
    fn maximum_compression_is_accepted() {
        for bits in [BitDepth::One, BitDepth::Eight, BitDepth::Sixteen] {
            let mut file = Vec::new();
            let mut encoder = Encoder::new(&mut file, 2048, 2048);
            encoder.set_depth(bits);
            encoder.set_compression(png::Compression::High);
            let row = 2048 * bits as usize / 8;
            let mut writer = encoder.write_header().unwrap();
            writer.write_image_data(&vec![0; row * 2048]).unwrap();
            drop(writer);
            let image = read(file).unwrap();
            assert_eq!((image.width, image.height), (2048, 2048));
        }
    }
}
