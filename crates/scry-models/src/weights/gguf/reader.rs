//! Reads the parts of a GGUF file one after another. Lengths are compared with the rest of the file
//! before anything is allocated.

use std::borrow::Cow;
use std::path::Path;

use super::super::source::Source;
use crate::error::{Error, ErrorKind, Result};

/// Bytes that are read from the file at once, unless a string is longer.
const WINDOW: usize = 64 << 10;

/// A position in a file.
pub(super) struct Reader<'s> {
    call: &'static str,
    path: &'s Path,
    source: &'s Source,
    window: Cow<'s, [u8]>,
    /// Offset of the window in the file.
    start: u64,
    at: u64,
}

impl<'s> Reader<'s> {
    pub(super) fn new(call: &'static str, path: &'s Path, source: &'s Source) -> Self {
        Self { call, path, source, window: Cow::Borrowed(&[]), start: 0, at: 0 }
    }

    /// Returns the offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.at
    }

    /// Returns the number of bytes that follow.
    pub(super) fn remaining(&self) -> u64 {
        self.source.len() - self.at
    }

    /// Returns an error about the bytes at an offset.
    pub(super) fn error_at(
        &self,
        offset: u64,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Error {
        Error::new(self.call, ErrorKind::Format, problem, help).in_file(self.path).at(offset)
    }

    /// Checks that `count` parts of at least `least` bytes can follow.
    pub(super) fn check_count(
        &self,
        offset: u64,
        count: u64,
        least: u64,
        what: &str,
    ) -> Result<()> {
        let rest = self.remaining();
        if count.checked_mul(least).is_some_and(|bytes| bytes <= rest) {
            return Ok(());
        }
        let problem = format!("{count} {what} do not fit into the {rest} bytes that follow");
        Err(self.error_at(offset, problem, "the file is damaged: download it again"))
    }

    /// Returns the next bytes.
    pub(super) fn bytes(&mut self, len: u64, what: &str) -> Result<&[u8]> {
        let rest = self.remaining();
        if len > rest {
            let problem = format!("the file ends {rest} bytes later, within {what}");
            let help = "the file is truncated: download it again";
            return Err(self.error_at(self.at, problem, help));
        }
        let len = len as usize;
        let mut from = (self.at - self.start) as usize;
        if self.window.len() < from + len {
            let size = (WINDOW as u64).min(rest).max(len as u64) as usize;
            let window = self.source.read(self.at, size);
            self.window = window.map_err(|error| Error::io(self.call, self.path, error))?;
            (self.start, from) = (self.at, 0);
        }
        self.at += len as u64;
        Ok(&self.window[from..from + len])
    }

    /// Returns the next bytes of a fixed number.
    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let bytes = self.bytes(N as u64, what)?;
        Ok(bytes.try_into().expect("as many bytes were requested"))
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// Returns a string: its length in bytes, then UTF-8. Longer ones than `limit` are rejected.
    pub(super) fn string(&mut self, limit: u64, what: &str) -> Result<String> {
        let start = self.at;
        let len = self.u64(what)?;
        if len > limit.min(self.remaining()) {
            let problem = match self.remaining() {
                rest if len > rest => {
                    format!("{what} is {len} bytes long, but {rest} bytes follow")
                }
                _ => format!("{what} is {len} bytes long; the limit is {limit}"),
            };
            return Err(self.error_at(start, problem, "the file is damaged: download it again"));
        }
        let text = std::str::from_utf8(self.bytes(len, what)?).map(str::to_owned);
        text.map_err(|error| {
            let at = start + 8 + error.valid_up_to() as u64;
            let problem = format!("{what} is not UTF-8");
            self.error_at(at, problem, "the file is damaged: download it again")
        })
    }
}
