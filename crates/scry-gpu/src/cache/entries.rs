//! The files of the disk cache: listing, clearing, and eviction.

use std::fs::{self, DirEntry, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::format::{self, MAX_FILE};
use super::location;
use crate::core::logging;

/// Age above which a temporary file counts as abandoned by its writer. No write lasts that long.
const ABANDONED_AGE: Duration = Duration::from_secs(3600);
/// Minimum size charged for an entry, which limits the number of entries too.
const MIN_ENTRY_SIZE: u64 = 16 << 10;

/// The kind of a cache file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A compiled kernel.
    Entry,
    /// The code generator's metadata for a kernel.
    Translation,
    /// A file that is being written, or that was abandoned.
    Temporary,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Entry, Self::Translation, Self::Temporary];

    /// Returns the file name extension.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Entry => "kernel",
            Self::Translation => "translation",
            Self::Temporary => "tmp",
        }
    }
}

/// A file of the cache.
#[derive(Debug, Clone)]
pub(crate) struct CacheFile {
    pub path: PathBuf,
    pub kind: Kind,
    pub bytes: u64,
    pub modified: SystemTime,
}

impl CacheFile {
    /// Returns the named entry point, if there is one.
    pub(crate) fn entry_point(&self) -> Option<String> {
        let mut start = Vec::new();
        let file = File::open(&self.path).ok()?;
        (&file).take(4096).read_to_end(&mut start).ok()?;
        format::entry_point(&start)
    }

    /// Returns the size charged against the limit.
    fn charged_size(&self) -> u64 {
        self.bytes.max(MIN_ENTRY_SIZE)
    }
}

/// Returns all cache files below `root`, oldest first. Other files, links, and folders that could
/// belong to another user are skipped.
pub(crate) fn list(root: &Path) -> Vec<CacheFile> {
    let mut found = Vec::new();
    device_folders(root).iter().for_each(|folder| found.append(&mut files(folder)));
    found.sort_by(|a, b| (a.modified, &a.path).cmp(&(b.modified, &b.path)));
    found
}

/// Removes all cache files below `root`, and then the empty folders. Returns the number of removed
/// entries.
pub(crate) fn clear(root: &Path) -> io::Result<usize> {
    match location::check_private(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        checked => checked?,
    }
    let mut removed = 0;
    for file in list(root) {
        match fs::remove_file(&file.path) {
            Ok(()) => removed += usize::from(file.kind == Kind::Entry),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let problem = format!("{}: {error}", file.path.display());
                return Err(io::Error::new(error.kind(), problem));
            }
        }
    }
    for folder in device_folders(root) {
        // Fails if the folder contains other files, which are kept.
        let _ = fs::remove_dir(folder);
    }
    Ok(removed)
}

/// Removes abandoned temporary files, and files above [`MAX_FILE`]. If the total size exceeds
/// `limit`, evicts the least recently used entries until it is at most three quarters of `limit`.
pub(super) fn sweep(root: &Path, limit: u64) {
    let mut entries = Vec::new();
    for file in list(root) {
        let is_abandoned = || {
            let age = SystemTime::now().duration_since(file.modified);
            age.is_ok_and(|age| age > ABANDONED_AGE)
        };
        match file.kind {
            Kind::Temporary if is_abandoned() => remove(&file.path),
            Kind::Temporary => {}
            _ if file.bytes > MAX_FILE => remove(&file.path),
            Kind::Entry | Kind::Translation => entries.push(file),
        }
    }
    let mut total: u64 = entries.iter().map(CacheFile::charged_size).sum();
    if total <= limit {
        return;
    }
    let (mut evicted, mut bytes) = (0, 0);
    for entry in entries {
        if total <= limit / 4 * 3 {
            break;
        }
        total -= entry.charged_size();
        remove(&entry.path);
        evicted += 1;
        bytes += entry.bytes;
    }
    logging::evicted_from_disk(evicted, bytes);
}

/// Removes a file. Failures are harmless: another process may have removed it.
fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        log::debug!("{}: {error}", path.display());
    }
}

fn device_folders(root: &Path) -> Vec<PathBuf> {
    if location::check_private(root).is_err() {
        return Vec::new();
    }
    let mut folders = Vec::new();
    for_each_item(root, &mut |item| {
        if is_device_folder(&item.file_name().to_string_lossy()) {
            folders.push(item.path());
        }
    });
    folders.retain(|path| location::check_private(path).is_ok());
    folders
}

fn files(folder: &Path) -> Vec<CacheFile> {
    let mut files = Vec::new();
    for_each_item(folder, &mut |item| files.extend(cache_file(item)));
    files
}

/// Visits all readable items of a folder.
fn for_each_item(folder: &Path, visit: &mut dyn FnMut(&DirEntry)) {
    let Ok(items) = fs::read_dir(folder) else { return };
    items.flatten().for_each(|item| visit(&item));
}

/// Returns a description of a file, if it is a cache file.
fn cache_file(item: &DirEntry) -> Option<CacheFile> {
    let kind = kind_of(&item.file_name().to_string_lossy())?;
    // Does not follow a link.
    let metadata = item.metadata().ok().filter(fs::Metadata::is_file)?;
    let (path, bytes) = (item.path(), metadata.len());
    Some(CacheFile { path, kind, bytes, modified: metadata.modified().ok()? })
}

/// Returns whether a name has the form of a [`DeviceIdentity`](super::DeviceIdentity) folder.
fn is_device_folder(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let [vendor, device, driver] = parts[..] else {
        return false;
    };
    is_hex(vendor) && is_hex(device) && is_hex(driver) && driver.len() == 16
}

/// Returns the kind of a file by its name.
fn kind_of(name: &str) -> Option<Kind> {
    let parts: Vec<&str> = name.split('.').collect();
    let (hash, writer, extension) = match parts[..] {
        [hash, extension] => (hash, None, extension),
        [hash, writer, extension] => (hash, Some(writer), extension),
        _ => return None,
    };
    let kind = Kind::ALL.into_iter().find(|kind| kind.extension() == extension)?;
    let has_writer = writer.is_some_and(|writer| writer.split('-').all(is_hex));
    let is_valid = match kind {
        Kind::Temporary => has_writer,
        Kind::Entry | Kind::Translation => writer.is_none(),
    };
    (is_valid && is_hex(hash) && hash.len() == 32).then_some(kind)
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
