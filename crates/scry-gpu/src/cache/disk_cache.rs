//! The disk cache of compiled kernels: its location, its entries, and how to clear it.
//!
//! The cache is in the platform's cache folder (`$XDG_CACHE_HOME` or `~/.cache`,
//! `~/Library/Caches`, `%LOCALAPPDATA%`), or in `$SCRY_CACHE_DIR`; `SCRY_CACHE_DIR=off` turns it
//! off. Its size is limited to about 256 MiB: the least recently used entries are evicted, on
//! Windows those that were written first.

use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::cache;

/// A compiled kernel on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheEntry {
    /// Path of the file.
    pub path: PathBuf,
    /// Name of its folder: vendor, model, and a hash of the driver's identity.
    pub device_folder: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Time at which the file was last written or used, accurate to a day.
    pub modified: SystemTime,
    /// The entry point, if one was named at compilation.
    pub entry_point: Option<String>,
}

/// Returns the folder that contains a folder for each device and driver. `None` if the cache is
/// turned off, if the user has no home folder, or if `SCRY_CACHE_DIR` is a relative path and the
/// current folder does not exist. The folder need not exist.
#[must_use]
pub fn directory() -> Option<PathBuf> {
    cache::root()
}

/// Returns all kernels on disk, for all devices, the least recently used first. Other files, and
/// folders that other users can write to, are skipped.
#[must_use]
pub fn entries() -> Vec<CacheEntry> {
    let files = directory().map(|root| cache::list(&root)).unwrap_or_default();
    files
        .into_iter()
        .filter(|file| file.kind == cache::Kind::Entry)
        .map(|file| CacheEntry {
            device_folder: file
                .path
                .parent()
                .and_then(|folder| folder.file_name())
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
            bytes: file.bytes,
            modified: file.modified,
            entry_point: file.entry_point(),
            path: file.path,
        })
        .collect()
}

/// Removes all kernels on disk, for all devices, and returns their number. Only the cache's own
/// files are removed. Other processes may use the cache at the same time.
///
/// # Errors
///
/// If the folder is a link, belongs to another user or can be written to by others, or if a file
/// cannot be removed.
pub fn clear() -> io::Result<usize> {
    directory().map_or(Ok(0), |root| cache::clear(&root))
}
