//! Compiled kernels, kept by full key: in memory, and on disk for later processes.
//!
//! Both caches compare whole keys. A hash only says where to look, so that two kernels whose
//! hashes are equal are still two kernels.

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
#[cfg(feature = "cuda")]
pub(crate) use format::{Reader, Writer};
pub(crate) use identity::DeviceIdentity;
pub(crate) use location::root;
pub(crate) use memory::MemoryCache;

use scry_ir::{GridSource, OverrideValue};

use crate::api::native::NativeSpec;

/// What a compiled kernel depends on, apart from the device and the driver.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KernelKey {
    /// The source.
    pub source: String,
    /// The entry point asked for.
    pub entry: Option<String>,
    /// The overrides.
    pub overrides: Vec<(String, ValueBits)>,
    /// Whether accesses and loops are checked.
    pub checked: bool,
    /// Language and interface; absent for WGSL.
    pub native: Option<NativeSpec>,
}

/// The value of an override by its bits, so that NaN equals itself and −0 is not 0.
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

    /// The kind of value, and its bits.
    fn numbers(self) -> [u64; 2] {
        match self {
            Self::Bool(value) => [1, value.into()],
            Self::Number(bits) => [0, bits],
        }
    }
}

/// Which of the compiled forms of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variant<'a> {
    /// Where it reads its grid from.
    pub grid: GridSource,
    /// What is kept of it.
    pub part: Part<'a>,
}

/// What is kept of a compiled form of a kernel.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "CUDA alone keeps translations"))]
pub(crate) enum Part<'a> {
    /// What the driver compiled from this generated code; from nothing, if that is the source
    /// itself. A hash of the code is part of the key: a generator that has changed finds nothing
    /// that was compiled from its former output, whatever the version of this crate.
    Compiled(&'a [u8]),
    /// The same, with the code given by its digest.
    CompiledFrom(Digest),
    /// What the generator said of the code: its digest, and how it is launched. Saves the
    /// translation, if these bytes identify the generator.
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
    /// What stands for it in a key.
    fn digest(self) -> Digest {
        match self {
            Self::Compiled(code) => Digest::of(code),
            Self::CompiledFrom(digest) => digest,
            // No code is of this length.
            Self::Translation(generator) => Digest { length: u64::MAX, ..Digest::of(generator) },
        }
    }

    /// The kind of file that holds it.
    fn kind(self) -> Kind {
        match self {
            Self::Compiled(_) | Self::CompiledFrom(_) => Kind::Entry,
            Self::Translation(_) => Kind::Translation,
        }
    }
}

/// A [`KernelKey`] in borrowed parts, so that a look-up copies no source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyRef<'a> {
    /// The source.
    pub source: &'a str,
    /// The entry point asked for.
    pub entry: Option<&'a str>,
    /// The overrides, as given. Their order counts: another order is another key.
    pub overrides: &'a [(String, OverrideValue)],
    /// Whether accesses and loops are checked.
    pub checked: bool,
    /// Language and interface; absent for WGSL.
    pub native: Option<&'a NativeSpec>,
}

impl KeyRef<'_> {
    /// The key with parts of its own.
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

    /// Whether `key` is the same key.
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
