//! The compiled kernels on disk: where they are, which there are, and how to be rid of them.
//!
//! The cache is in the platform's folder for such files (`$XDG_CACHE_HOME` or `~/.cache`,
//! `~/Library/Caches`, `%LOCALAPPDATA%`), or in `$SCRY_CACHE_DIR`; it is turned off by
//! `SCRY_CACHE_DIR=off`. It looks after itself: at most about 256 MiB are kept, and what was not
//! used for longest goes first.

use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::cache;

/// A compiled kernel on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheEntry {
    /// The file.
    pub path: PathBuf,
    /// Name of the folder it is in: vendor, model, and a hash of the driver's identity.
    pub device_folder: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// When the file was written, or read after it had not been for a day.
    pub modified: SystemTime,
    /// The entry point, if the kernel was compiled with one named.
    pub entry_point: Option<String>,
}

/// The folder that holds a folder for each device and driver. None if the cache is turned off, or
/// if the user has no home folder. The folder need not exist.
#[must_use]
pub fn directory() -> Option<PathBuf> {
    cache::root()
}

/// Every kernel on disk, for all devices, those first that were not used for longest. Files that
/// are not the cache's, and folders that others could write to, are passed over.
#[must_use]
pub fn entries() -> Vec<CacheEntry> {
    let stored = directory().map(|root| cache::list(&root)).unwrap_or_default();
    stored
        .into_iter()
        .filter(|stored| stored.kind == cache::Kind::Entry)
        .map(|stored| CacheEntry {
            device_folder: stored
                .path
                .parent()
                .and_then(|folder| folder.file_name())
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
            bytes: stored.bytes,
            modified: stored.modified,
            entry_point: stored.entry_point(),
            path: stored.path,
        })
        .collect()
}

/// Removes every kernel on disk, for all devices, and gives their number. Only the cache's own
/// files are removed. Processes that use the cache go on without.
///
/// # Errors
///
/// If the folder is not the user's alone, or if a file cannot be removed.
pub fn clear() -> io::Result<usize> {
    directory().map_or(Ok(0), |root| cache::clear(&root))
}
