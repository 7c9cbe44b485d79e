//! Sources of a buffer's bytes.

use std::fmt;
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

/// The text after `NAME=`, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file, or standard input.
    File(Location),
    /// `zeros:TYPE:SHAPE` and the other generators.
    Generated(Generator, Dtype, Shape),
}

/// The content of a source.
#[derive(Debug)]
pub enum Loaded {
    /// Values with type and shape.
    Array(Array),
    /// Zeros with type and shape, which need no host memory.
    Zeros(Dtype, Shape),
    /// An image, to be converted to the kernel's element type.
    Image(Image),
    /// Bytes without type or shape.
    Raw(Bytes),
    /// An unread stream of bytes without type or shape: the kernel's type limits their number.
    Stream(Stream),
}

/// Bytes whose number is unknown: standard input, a pipe or a device.
pub struct Stream(Box<dyn Read>);

impl Stream {
    /// Reads to the end; `None` if there are more than `limit` bytes. Reads at most one byte beyond
    /// the limit.
    ///
    /// # Errors
    /// Returns the system's message, or that host memory is exhausted.
    pub fn read(mut self, limit: u64) -> Result<Option<Bytes>, String> {
        read_to_end(&mut self.0, limit)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

impl Source {
    /// Parses a generator such as `zeros:…`, or a location.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        if let Some((name, rest)) = text.split_once(':')
            && let Some(generator) = Generator::from_name(name)
        {
            let (dtype, shape) = parse_generated(rest, text)?;
            return Ok(Self::Generated(generator, dtype, shape));
        }
        Location::parse(text).map(Self::File)
    }

    /// Returns the file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(location) => location.path.as_deref(),
            Self::Generated(..) => None,
        }
    }

    /// Returns whether it is standard input.
    pub fn is_stdin(&self) -> bool {
        matches!(self, Self::File(Location { path: None, .. }))
    }

    /// Reads or generates the content for the buffer `name`.
    pub fn load(&self, seed: u64, name: &str) -> Result<Loaded, Failure> {
        match self {
            Self::File(location) => load_file(location, name),
            Self::Generated(Generator::Zeros, dtype, shape) => {
                Ok(Loaded::Zeros(*dtype, shape.clone()))
            }
            Self::Generated(generator, dtype, shape) => {
                generate::generate(*generator, *dtype, shape.clone(), seed, name).map(Loaded::Array)
            }
        }
    }
}

fn parse_generated(rest: &str, text: &str) -> Result<(Dtype, Shape), Failure> {
    let Some((dtype, shape)) = rest.split_once(':') else {
        return Err(Failure::Usage(format!(
            "`{text}`: type and shape are missing, as in zeros:u32:1000x10"
        )));
    };
    let dtype = Dtype::buffer_type_from_name(dtype).ok_or_else(|| {
        Failure::Usage(format!("`{text}`: the type is one of {}", Dtype::buffer_names()))
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
        let problem = |problem: String| Failure::Runtime(format!("standard input: {problem}"));
        return load_stream(io::stdin().lock(), location, name).map_err(problem);
    };
    let failure = |problem: String| Failure::file(path, problem);
    let file = File::open(path).map_err(|error| Failure::file(path, error))?;
    let meta = file.metadata().map_err(|error| Failure::file(path, error))?;
    if meta.is_dir() {
        return Err(Failure::file(path, "it is a folder, not a file"));
    }
    if !meta.is_file() {
        return load_stream(file, location, name).map_err(failure);
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
    loaded.map_err(failure)
}

/// Reads a stream: standard input, a pipe or a device.
fn load_stream(
    mut stream: impl Read + 'static,
    location: &Location,
    name: &str,
) -> Result<Loaded, String> {
    let magic: &[u8] = match location.format {
        Format::Npy => return npy::read(BufReader::new(stream), None).map(Loaded::Array),
        Format::Bin => return Ok(Loaded::Stream(Stream(Box::new(stream)))),
        Format::Npz => b"PK",
        Format::Png => b"\x89PNG",
    };
    // The magic number is checked first: a stream in another format may be endless.
    let mut start = Vec::new();
    let mut prefix = stream.by_ref().take(magic.len() as u64);
    prefix.read_to_end(&mut start).map_err(|error| error.to_string())?;
    let rest: &mut dyn Read = if start == magic { &mut stream } else { &mut io::empty() };
    let bytes = read_to_end(&mut start.chain(rest), u64::MAX)?;
    let bytes = bytes.ok_or("it exceeds the address space")?;
    let (size, file) = (bytes.len() as u64, Cursor::new(bytes.as_slice()));
    match location.format {
        Format::Png => png::read(file, size).map(Loaded::Image),
        _ => npz::read(file, location.member.as_deref(), name).map(Loaded::Array),
    }
}

fn read_exactly(mut file: File, size: u64) -> Result<Bytes, String> {
    let len = usize::try_from(size).map_err(|_| "it exceeds the address space".to_owned())?;
    let mut bytes = Bytes::zeroed(len).map_err(Failure::into_text)?;
    file.read_exact(bytes.as_mut_slice()).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Reads to the end, and fails if memory is exhausted; `None` if there are more than `limit` bytes.
fn read_to_end(stream: &mut impl Read, limit: u64) -> Result<Option<Bytes>, String> {
    const FIRST_READ: usize = 1 << 16;
    let capacity = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
    let mut bytes = Bytes::zeroed(0).map_err(Failure::into_text)?;
    let mut len = 0;
    while len < capacity {
        if len == bytes.len() {
            let more = FIRST_READ.max(len.saturating_mul(2)).min(capacity);
            bytes.grow(more).map_err(Failure::into_text)?;
        }
        match stream.read(&mut bytes.as_mut_slice()[len..]) {
            Ok(0) => {
                bytes.truncate(len);
                return Ok(Some(bytes));
            }
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_distinguished() {
        let parse = |text| Source::parse(text).unwrap();
        let shape = Shape(vec![1000, 10]);
        let zeros = Source::Generated(Generator::Zeros, Dtype::U32, shape);
        assert_eq!(parse("zeros:u32:1000x10"), zeros);
        let generated = |generator, dtype| Source::Generated(generator, dtype, Shape(vec![7]));
        assert_eq!(parse("rand:f16:7"), generated(Generator::Random, Dtype::F16));
        assert_eq!(parse("ones:float32:7"), generated(Generator::Ones, Dtype::F32));
        assert_eq!(parse("arange:i64:7"), generated(Generator::Arange, Dtype::I64));
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
    fn streams_are_read_to_their_limit() {
        for len in [0, 1, 1 << 16, (1 << 16) + 1, 1 << 18] {
            let data: Vec<u8> = (0..len).map(|i| i as u8).collect();
            for limit in [len, len + 1, u64::MAX] {
                let read = read_to_end(&mut data.as_slice(), limit).unwrap().unwrap();
                assert_eq!(read.as_slice(), data);
            }
            let mut endless = io::repeat(7).take(u64::MAX);
            assert_eq!(read_to_end(&mut endless, len), Ok(None));
            assert_eq!(u64::MAX - endless.limit(), len + 1, "one byte beyond the limit");
        }
    }

    #[test]
    fn streams_of_other_formats_are_rejected() {
        for (format, problem) in
            [("npz", "not an .npz"), ("png", "PNG signature"), ("npy", "not a .npy")]
        {
            let location = Location::parse(&format!("{format}:-")).unwrap();
            let rejected = load_stream(io::repeat(0), &location, "x").unwrap_err();
            assert!(rejected.contains(problem), "{rejected}");
        }
    }
}
