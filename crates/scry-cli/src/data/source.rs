//! Where the bytes of a buffer come from.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use super::array::{Array, Bytes, Shape};
use super::dtype::Dtype;
use super::png::Image;
use super::{generate, npy, png};
use crate::report::Failure;

/// A file format, told by the extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Npy,
    Png,
    Bin,
}

impl Format {
    /// The format of a file of that name.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        match extension.as_deref() {
            Some("npy") => Ok(Self::Npy),
            Some("png") => Ok(Self::Png),
            Some("bin") => Ok(Self::Bin),
            _ => Err(Failure::Usage(format!(
                "{}: the format is not known; the name must end in .npy, .png or .bin",
                path.display()
            ))),
        }
    }
}

/// What was written after `NAME=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf, Format),
    /// `zeros:TYPE:SHAPE`.
    Zeros(Dtype, Shape),
    /// `rand:TYPE:SHAPE`.
    Random(Dtype, Shape),
}

/// The content of a source.
#[derive(Debug)]
pub enum Loaded {
    /// Values with type and shape.
    Array(Array),
    /// Zeros with type and shape; never laid out in host memory.
    Zeros(Dtype, Shape),
    /// An image, to be converted to what the kernel wants.
    Image(Image),
    /// Bytes without type or shape.
    Raw(Bytes),
}

impl Source {
    /// Reads `zeros:…`, `rand:…` or a file name.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        if let Some(rest) = text.strip_prefix("zeros:") {
            return generated(rest, text).map(|(dtype, shape)| Self::Zeros(dtype, shape));
        }
        if let Some(rest) = text.strip_prefix("rand:") {
            return generated(rest, text).map(|(dtype, shape)| Self::Random(dtype, shape));
        }
        let path = PathBuf::from(text);
        let format = Format::of(&path)?;
        Ok(Self::File(path, format))
    }

    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path, _) => Some(path),
            Self::Zeros(..) | Self::Random(..) => None,
        }
    }

    /// Reads or makes the content for the buffer `name`.
    pub fn load(&self, seed: u64, name: &str) -> Result<Loaded, Failure> {
        match self {
            Self::File(path, format) => load_file(path, *format),
            Self::Zeros(dtype, shape) => Ok(Loaded::Zeros(*dtype, shape.clone())),
            Self::Random(dtype, shape) => {
                generate::random(*dtype, shape.clone(), seed, name).map(Loaded::Array)
            }
        }
    }
}

fn generated(rest: &str, whole: &str) -> Result<(Dtype, Shape), Failure> {
    let Some((dtype, shape)) = rest.split_once(':') else {
        return Err(Failure::Usage(format!(
            "`{whole}`: type and shape are missing, as in zeros:u32:1000x10"
        )));
    };
    let dtype = Dtype::named(dtype).ok_or_else(|| {
        Failure::Usage(format!("`{whole}`: the type is one of {}", Dtype::names()))
    })?;
    Ok((dtype, shape.parse()?))
}

fn load_file(path: &Path, format: Format) -> Result<Loaded, Failure> {
    let failed = |problem: String| Failure::file(path, problem);
    let file = File::open(path).map_err(|error| Failure::file(path, error))?;
    let meta = file.metadata().map_err(|error| Failure::file(path, error))?;
    if meta.is_dir() {
        return Err(Failure::file(path, "it is a folder, not a file"));
    }
    let size = meta.is_file().then_some(meta.len());
    match format {
        Format::Npy => npy::read(BufReader::new(file), size).map(Loaded::Array).map_err(failed),
        Format::Png => read_png(file, size).map(Loaded::Image).map_err(failed),
        Format::Bin => read_raw(file, size).map(Loaded::Raw).map_err(|error| match error {
            Failure::Work(problem) => failed(problem),
            other => other,
        }),
    }
}

/// What is no plain file, and so has no size, is read first.
fn read_png(mut file: File, size: Option<u64>) -> Result<Image, String> {
    if let Some(size) = size {
        return png::read(BufReader::new(file), size);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let size = bytes.len() as u64;
    png::read(Cursor::new(bytes), size)
}

fn read_raw(mut file: File, size: Option<u64>) -> Result<Bytes, Failure> {
    let failed = |error: std::io::Error| Failure::Work(error.to_string());
    let Some(len) = size.and_then(|size| usize::try_from(size).ok()) else {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        return Bytes::copied(&bytes);
    };
    let mut bytes = Bytes::zeroed(len)?;
    file.read_exact(bytes.as_mut_slice()).map_err(failed)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_apart() {
        let parse = |text| Source::parse(text).unwrap();
        let shape = Shape(vec![1000, 10]);
        assert_eq!(parse("zeros:u32:1000x10"), Source::Zeros(Dtype::U32, shape));
        assert_eq!(parse("rand:f16:7"), Source::Random(Dtype::F16, Shape(vec![7])));
        assert_eq!(parse("a/b.PNG"), Source::File("a/b.PNG".into(), Format::Png));
        assert_eq!(parse("./zeros:.npy"), Source::File("./zeros:.npy".into(), Format::Npy));
    }

    #[test]
    fn wrong_sources_are_bad_usage() {
        for wrong in ["zeros:u32", "zeros:u9:3", "rand:f32:", "rand:f32:1x", "photo", "a.jpg"] {
            assert!(matches!(Source::parse(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
