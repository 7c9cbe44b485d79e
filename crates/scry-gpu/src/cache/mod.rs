//! Compiled kernels, kept by full key: in memory, and on disk for later processes.
//!
//! Both caches compare whole keys. A hash only says where to look, so that two kernels whose
//! hashes are equal are still two kernels.

mod disk;
mod folder;
mod format;
mod identity;
mod memory;
mod shelf;
#[cfg(test)]
mod tests;

pub(crate) use disk::DiskCache;
pub(crate) use folder::root;
pub(crate) use identity::DeviceIdentity;
pub(crate) use memory::MemoryCache;
pub(crate) use shelf::{Kind, clear, list};

use crate::native::NativeSpec;

/// What a compiled kernel depends on, apart from the device and the driver.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KernelKey {
    /// The source.
    pub source: String,
    /// The entry point asked for.
    pub entry: Option<String>,
    /// The overrides, each value by its bits.
    pub overrides: Vec<(String, u64)>,
    /// Whether accesses and loops are checked.
    pub checked: bool,
    /// Language and interface; absent for WGSL.
    pub native: Option<NativeSpec>,
}

/// Which of the compiled forms of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variant<'a> {
    /// Whether it is the one for folded launches.
    pub folded: bool,
    /// What was generated from the source, and compiled by the driver. Nothing, if that is the
    /// source itself. Its hash is part of the key: a generator that has changed finds nothing that
    /// it made before, whatever the version of this crate.
    pub generated: &'a [u8],
}

/// A [`KernelKey`] in borrowed parts, so that a look-up copies no source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyRef<'a> {
    /// The source.
    pub source: &'a str,
    /// The entry point asked for.
    pub entry: Option<&'a str>,
    /// The overrides, as given. Their order counts: another order is another key.
    pub overrides: &'a [(String, f64)],
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
                .map(|(name, value)| (name.clone(), value.to_bits()))
                .collect(),
            checked: self.checked,
            native: self.native.cloned(),
        }
    }

    /// Whether `key` is the same key. Values are compared by their bits, so that NaN equals itself
    /// and −0 is not 0.
    fn matches(self, key: &KernelKey) -> bool {
        self.checked == key.checked
            && self.entry == key.entry.as_deref()
            && self.overrides.len() == key.overrides.len()
            && self
                .overrides
                .iter()
                .zip(&key.overrides)
                .all(|(a, b)| a.1.to_bits() == b.1 && a.0 == b.0)
            && self.native == key.native.as_ref()
            && self.source == key.source
    }
}
