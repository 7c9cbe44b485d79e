//! Caches of compiled kernels by full key: in memory, and on disk for later processes.
//!
//! Both caches compare whole keys. A hash only selects the bucket or file: equal hashes are
//! harmless.

mod disk;
pub mod disk_cache;
mod entries;
mod format;
mod identity;
mod location;
mod memory;
#[cfg(test)]
mod tests;

pub(crate) use disk::DiskCache;
pub(crate) use entries::{Kind, clear, list};
#[cfg(cuda)]
pub(crate) use format::{Reader, Writer};
pub(crate) use identity::DeviceIdentity;
pub(crate) use location::root;
pub(crate) use memory::MemoryCache;

use scry_ir::{GridSource, OverrideValue};

use crate::api::native::NativeSpec;

/// Everything that a compiled kernel depends on, except the device and the driver.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KernelKey {
    /// The source.
    pub source: String,
    /// The named entry point.
    pub entry: Option<String>,
    /// The overrides.
    pub overrides: Vec<(String, ValueBits)>,
    /// Whether bounds and loop checks are enabled.
    pub checked: bool,
    /// Language and interface; `None` for WGSL.
    pub native: Option<NativeSpec>,
}

/// The bits of an override's value: NaN equals itself, and −0 differs from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ValueBits {
    Bool(bool),
    Number(u64),
}

impl From<OverrideValue> for ValueBits {
    fn from(value: OverrideValue) -> Self {
        match value {
            OverrideValue::Bool(value) => Self::Bool(value),
            OverrideValue::Number(value) => Self::Number(value.to_bits()),
        }
    }
}

impl ValueBits {
    pub(crate) fn value(self) -> OverrideValue {
        match self {
            Self::Bool(value) => OverrideValue::Bool(value),
            Self::Number(bits) => OverrideValue::Number(f64::from_bits(bits)),
        }
    }

    /// Returns the kind of value, and its bits.
    fn kind_and_bits(self) -> [u64; 2] {
        match self {
            Self::Bool(value) => [1, value.into()],
            Self::Number(bits) => [0, bits],
        }
    }
}

/// One of the compiled forms of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variant<'a> {
    /// The source of its grid.
    pub grid: GridSource,
    /// The cached part.
    pub part: Part<'a>,
}

/// The cached part of a compiled form of a kernel.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(cuda), expect(dead_code, reason = "only CUDA caches translations"))]
pub(crate) enum Part<'a> {
    /// The driver's binary of this generated code, which is empty if the source itself is compiled.
    /// A hash of the code is part of the key: after a change of the generator, binaries of its
    /// former output are not found, even if the version of this crate is the same.
    Compiled(&'a [u8]),
    /// The driver's binary of code with this digest.
    CompiledFrom(Digest),
    /// The code generator's metadata: the digest of the code, and its launch parameters. A hit
    /// saves the translation. These bytes identify the generator.
    Translation(&'a [u8]),
}

/// Length and hash of generated code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest {
    pub length: u64,
    pub hash: u128,
}

impl Digest {
    pub(crate) fn of(code: &[u8]) -> Self {
        Self { length: code.len() as u64, hash: format::hash(code) }
    }
}

impl Part<'_> {
    /// Returns the digest that is part of the key.
    fn digest(self) -> Digest {
        match self {
            Self::Compiled(code) => Digest::of(code),
            Self::CompiledFrom(digest) => digest,
            // No code has this length.
            Self::Translation(generator) => Digest { length: u64::MAX, ..Digest::of(generator) },
        }
    }

    /// Returns the kind of its file.
    fn kind(self) -> Kind {
        match self {
            Self::Compiled(_) | Self::CompiledFrom(_) => Kind::Entry,
            Self::Translation(_) => Kind::Translation,
        }
    }
}

/// A borrowed [`KernelKey`], which avoids a copy of the source for lookups.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyRef<'a> {
    /// The source.
    pub source: &'a str,
    /// The named entry point.
    pub entry: Option<&'a str>,
    /// The overrides, as given. Their order matters.
    pub overrides: &'a [(String, OverrideValue)],
    /// Whether bounds and loop checks are enabled.
    pub checked: bool,
    /// Language and interface; `None` for WGSL.
    pub native: Option<&'a NativeSpec>,
}

impl KeyRef<'_> {
    /// Returns the owned key.
    pub(crate) fn to_key(self) -> KernelKey {
        KernelKey {
            source: self.source.to_owned(),
            entry: self.entry.map(str::to_owned),
            overrides: self
                .overrides
                .iter()
                .map(|(name, value)| (name.clone(), ValueBits::from(*value)))
                .collect(),
            checked: self.checked,
            native: self.native.cloned(),
        }
    }

    /// Returns whether `key` is equal.
    fn matches(self, key: &KernelKey) -> bool {
        self.checked == key.checked
            && self.entry == key.entry.as_deref()
            && self.overrides.len() == key.overrides.len()
            && self
                .overrides
                .iter()
                .zip(&key.overrides)
                .all(|(a, b)| ValueBits::from(a.1) == b.1 && a.0 == b.0)
            && self.native == key.native.as_ref()
            && self.source == key.source
    }
}
