//! The bytes of a file: read piece by piece, in memory, or mapped.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use memmap2::Mmap;

/// The bytes of a file.
pub(super) enum Source {
    File { file: Mutex<File>, len: u64 },
    Memory(Box<[u8]>),
    Mapped(Mmap),
}

/// Opens a regular file. Opening another, such as a pipe, could block.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    let irregular = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
    if !std::fs::metadata(path)?.is_file() {
        return Err(irregular());
    }
    let file = File::open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
}

impl Source {
    /// Opens a file, of which pieces are read later.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        Ok(Self::File { len: file.metadata()?.len(), file: Mutex::new(file) })
    }

    /// Returns the size in bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::File { len, .. } => *len,
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Mapped(bytes) => bytes.len() as u64,
        }
    }

    /// Returns the bytes from an offset on: without a copy if they are in memory. They are within
    /// the file, or the result is an error.
    pub(super) fn read(&self, offset: u64, len: usize) -> io::Result<Cow<'_, [u8]>> {
        let end = offset.checked_add(len as u64).filter(|end| *end <= self.len());
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let range = offset as usize..end as usize;
        match self {
            Self::Memory(bytes) => Ok(Cow::Borrowed(&bytes[range])),
            Self::Mapped(bytes) => Ok(Cow::Borrowed(&bytes[range])),
            Self::File { file, .. } => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.seek(SeekFrom::Start(offset))?;
                let mut bytes = vec![0; len];
                file.read_exact(&mut bytes)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}
