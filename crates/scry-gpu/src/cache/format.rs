//! The format of a cache file.
//!
//! ```text
//! magic [8] | format version u32 | key length u32 | payload length u64 |
//! key | payload | checksum [16]
//! ```
//!
//! Numbers are little-endian. The whole key is stored and compared. The checksum, 128 bits of
//! SipHash-1-3 over everything before it, detects corruption: torn writes, disk errors, mixed-up
//! files. It does not authenticate, because its key is public; [`location`](super::location) checks
//! who can write to the file.

use std::hash::Hasher as _;
use std::ops::Range;

use scry_ir::GridSource;
use siphasher::sip128::{Hasher128 as _, SipHasher13};

use super::{Digest, KernelKey, Variant};
use crate::api::native::NativeSpec;

/// Maximum size of a file in bytes. A larger payload is not cached.
pub(super) const MAX_FILE: u64 = 64 << 20;

const MAGIC: [u8; 8] = *b"\x89scry\r\n\x1a";
const VERSION: u32 = 1;
const HEADER_SIZE: usize = 24;
const CHECKSUM_SIZE: usize = 16;

/// Serialises fields. Lists of fields of the same types never produce the same bytes unless their
/// values are equal: numbers have a fixed size, and bytes follow their length.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn number(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads the output of [`Writer`]: metadata of code generators, which only CUDA stores. Methods
/// return `None` at the end of the bytes.
#[cfg(cuda)]
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

#[cfg(cuda)]
impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Returns whether all bytes were read.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns a 128-bit hash that is the same on every machine and for every compiler version.
pub(super) fn hash(bytes: &[u8]) -> u128 {
    // The keys are the ASCII codes of `scry-gpu` and `kernels!`.
    let mut hasher = SipHasher13::new_with_keys(0x7363_7279_2d67_7075, 0x6b65_726e_656c_7321);
    hasher.write(bytes);
    hasher.finish128().as_u128()
}

/// Returns the full key of an entry. The entry point comes first, where [`entry_point`] reads it.
/// Generated code contributes its length and hash: it is a function of the source, which is
/// included whole, and of the generator's version.
pub(super) fn full_key(identity: &[u8], key: &KernelKey, variant: Variant<'_>) -> Vec<u8> {
    let mut out = Writer(Vec::with_capacity(identity.len() + key.source.len() + 256));
    out.number(key.entry.is_some().into());
    out.bytes(key.entry.as_deref().unwrap_or_default().as_bytes());
    out.bytes(identity);
    out.number(key.checked.into());
    out.number(match variant.grid {
        GridSource::Native => 0,
        GridSource::Linearised => 1,
        GridSource::Counts => 2,
    });
    let Digest { length, hash } = variant.part.digest();
    out.number(length);
    out.bytes(&hash.to_le_bytes());
    out.number(key.overrides.len() as u64);
    for (name, bits) in &key.overrides {
        out.bytes(name.as_bytes());
        bits.kind_and_bits().into_iter().for_each(|number| out.number(number));
    }
    out.bytes(&key.native.as_ref().map_or_else(Vec::new, NativeSpec::to_bytes));
    out.bytes(key.source.as_bytes());
    out.finish()
}

/// Returns the file for `payload` under `key`, or `None` if it would be larger than [`MAX_FILE`].
pub(super) fn encode(key: &[u8], payload: &[u8]) -> Option<Vec<u8>> {
    let size = HEADER_SIZE + key.len() + CHECKSUM_SIZE;
    let size = size.checked_add(payload.len())?;
    if size as u64 > MAX_FILE {
        return None;
    }
    let mut file = Vec::with_capacity(size);
    file.extend_from_slice(&MAGIC);
    file.extend_from_slice(&VERSION.to_le_bytes());
    file.extend_from_slice(&u32::try_from(key.len()).ok()?.to_le_bytes());
    file.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    file.extend_from_slice(key);
    file.extend_from_slice(payload);
    let checksum = hash(&file).to_le_bytes();
    file.extend_from_slice(&checksum);
    Some(file)
}

/// Returns the range of the payload stored under `key` in `file`. `None` if the file is invalid.
pub(super) fn payload(file: &[u8], key: &[u8]) -> Option<Range<usize>> {
    let (key_length, payload_length) = lengths(file)?;
    let start = HEADER_SIZE.checked_add(key_length)?;
    let end = start.checked_add(payload_length)?;
    if payload_length == 0 || end.checked_add(CHECKSUM_SIZE)? != file.len() {
        return None;
    }
    let (content, checksum) = file.split_at(end);
    let is_valid = hash(content).to_le_bytes() == checksum && content[HEADER_SIZE..start] == *key;
    is_valid.then_some(start..end)
}

/// Returns the lengths of key and payload, if the file has the cache's header.
fn lengths(file: &[u8]) -> Option<(usize, usize)> {
    let (magic, rest) = file.split_first_chunk::<8>()?;
    let (version, rest) = rest.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_first_chunk::<4>()?;
    let (payload, _) = rest.split_first_chunk::<8>()?;
    if *magic != MAGIC || u32::from_le_bytes(*version) != VERSION {
        return None;
    }
    let key = usize::try_from(u32::from_le_bytes(*key)).ok()?;
    let payload = usize::try_from(u64::from_le_bytes(*payload)).ok()?;
    Some((key, payload))
}

/// Returns the named entry point from the first bytes of a file. For display: only verified to be
/// UTF-8. `None` if none was named, or if the file is invalid.
pub(super) fn entry_point(start: &[u8]) -> Option<String> {
    lengths(start)?;
    let key = start.get(HEADER_SIZE..)?;
    let (named, key) = key.split_first_chunk::<8>()?;
    let (length, key) = key.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let name = str::from_utf8(key.get(..length)?).ok()?;
    (u64::from_le_bytes(*named) == 1).then(|| name.to_owned())
}
