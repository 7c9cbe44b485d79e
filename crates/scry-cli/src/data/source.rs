//! Where the bytes of a buffer come from.

use std::fs::File;
use std::io::{self, BufReader, Cursor, IsTerminal, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::array::{Array, Bytes, Shape};
use super::dtype::Dtype;
use super::generate::{self, Generator};
use super::location::{Format, Location};
use super::png::Image;
use super::{npy, npz, png};
use crate::report::Failure;

/// What was written after `NAME=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file, or standard input.
    File(Location),
    /// `zeros:TYPE:SHAPE` and the like.
    Generated(Generator, Dtype, Shape),
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
    /// Reads `zeros:…` and the like, or where a file is.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        if let Some((name, rest)) = text.split_once(':')
            && let Some(generator) = Generator::named(name)
        {
            let (dtype, shape) = generated(rest, text)?;
            return Ok(Self::Generated(generator, dtype, shape));
        }
        Location::parse(text).map(Self::File)
    }

    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(location) => location.path.as_deref(),
            Self::Generated(..) => None,
        }
    }

    /// True for standard input.
    pub fn is_stdin(&self) -> bool {
        matches!(self, Self::File(Location { path: None, .. }))
    }

    /// Reads or makes the content for the buffer `name`.
    pub fn load(&self, seed: u64, name: &str) -> Result<Loaded, Failure> {
        match self {
            Self::File(location) => load_file(location, name),
            Self::Generated(Generator::Zeros, dtype, shape) => {
                Ok(Loaded::Zeros(*dtype, shape.clone()))
            }
            Self::Generated(generator, dtype, shape) => {
                generate::make(*generator, *dtype, shape.clone(), seed, name).map(Loaded::Array)
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
    let dtype = Dtype::of_buffers_named(dtype).ok_or_else(|| {
        Failure::Usage(format!("`{whole}`: the type is one of {}", Dtype::buffer_names()))
    })?;
    Ok((dtype, shape.parse()?))
}

/// Set once standard input has been read.
static STDIN_IS_READ: AtomicBool = AtomicBool::new(false);

fn load_file(location: &Location, name: &str) -> Result<Loaded, Failure> {
    let Some(path) = &location.path else {
        if io::stdin().is_terminal() {
            return Err(Failure::usage(
                "standard input is a terminal, and the data is binary; redirect a file or a pipe",
            ));
        }
        if STDIN_IS_READ.swap(true, Ordering::Relaxed) {
            return Err(Failure::usage(
                "standard input can be read only once, and more than one kernel needs it; save the \
                 data to a file",
            ));
        }
        let problem = |problem: String| Failure::Work(format!("standard input: {problem}"));
        return decode(io::stdin().lock(), location, name).map_err(problem);
    };
    let failed = |problem: String| Failure::file(path, problem);
    let file = File::open(path).map_err(|error| Failure::file(path, error))?;
    let meta = file.metadata().map_err(|error| Failure::file(path, error))?;
    if meta.is_dir() {
        return Err(Failure::file(path, "it is a folder, not a file"));
    }
    if !meta.is_file() {
        return decode(file, location, name).map_err(failed);
    }
    let size = meta.len();
    let loaded = match location.format {
        Format::Npy => npy::read(BufReader::new(file), Some(size)).map(Loaded::Array),
        Format::Npz => {
            let member = location.member.as_deref();
            npz::read(BufReader::new(file), member, name).map(Loaded::Array)
        }
        Format::Png => png::read(BufReader::new(file), size).map(Loaded::Image),
        Format::Bin => read_exactly(file, size).map(Loaded::Raw),
    };
    loaded.map_err(failed)
}

/// Reads what has no size that is known before: standard input, a pipe, a device.
fn decode(mut stream: impl Read, location: &Location, name: &str) -> Result<Loaded, String> {
    if location.format == Format::Npy {
        return npy::read(BufReader::new(stream), None).map(Loaded::Array);
    }
    let bytes = read_to_end(&mut stream)?;
    let (size, whole) = (bytes.len() as u64, Cursor::new(bytes.as_slice()));
    match location.format {
        Format::Npz => npz::read(whole, location.member.as_deref(), name).map(Loaded::Array),
        Format::Png => png::read(whole, size).map(Loaded::Image),
        Format::Npy | Format::Bin => Ok(Loaded::Raw(bytes)),
    }
}

fn read_exactly(mut file: File, size: u64) -> Result<Bytes, String> {
    let len = usize::try_from(size).map_err(|_| "it is larger than memory can be".to_owned())?;
    let mut bytes = Bytes::zeroed(len).map_err(Failure::into_text)?;
    file.read_exact(bytes.as_mut_slice()).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Reads all, as long as there is memory.
fn read_to_end(stream: &mut impl Read) -> Result<Bytes, String> {
    const FIRST_PART: usize = 1 << 16;
    let mut bytes = Bytes::zeroed(0).map_err(Failure::into_text)?;
    let mut len = 0;
    loop {
        if len == bytes.len() {
            bytes.grow(FIRST_PART.max(2 * len)).map_err(Failure::into_text)?;
        }
        match stream.read(&mut bytes.as_mut_slice()[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    bytes.truncate(len);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_apart() {
        let parse = |text| Source::parse(text).unwrap();
        let shape = Shape(vec![1000, 10]);
        let zeros = Source::Generated(Generator::Zeros, Dtype::U32, shape);
        assert_eq!(parse("zeros:u32:1000x10"), zeros);
        let made = |generator, dtype| Source::Generated(generator, dtype, Shape(vec![7]));
        assert_eq!(parse("rand:f16:7"), made(Generator::Random, Dtype::F16));
        assert_eq!(parse("ones:float32:7"), made(Generator::Ones, Dtype::F32));
        assert_eq!(parse("arange:i64:7"), made(Generator::Arange, Dtype::I64));
        assert_eq!(parse("./zeros:.npy").path(), Some(Path::new("./zeros:.npy")));
        assert!(parse("-").is_stdin() && !parse("./-.npy").is_stdin());
    }

    #[test]
    fn wrong_sources_are_bad_usage() {
        for wrong in ["zeros:u32", "zeros:u9:3", "ones:u8:3", "rand:f32:", "rand:f32:1x", "photo"] {
            assert!(matches!(Source::parse(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn streams_are_read_whole() {
        for len in [0, 1, 1 << 16, (1 << 16) + 1, 1 << 18] {
            let data: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let read = read_to_end(&mut data.as_slice()).unwrap();
            assert_eq!(read.as_slice(), data);
        }
    }
}
