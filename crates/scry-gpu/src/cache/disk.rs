//! The disk cache of compiled kernels, one file each.
//!
//! A file is written under a temporary name and renamed: a reader finds the old entry, the new one
//! or none, even if the writer is killed. An invalid file is a miss, and failures are logged but
//! not returned.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::format::{self, MAX_FILE};
use super::location::{self, Location};
use super::{DeviceIdentity, KernelKey, Kind, Variant, entries};
use crate::core::logging;

/// Maximum total size of the files in bytes. Between two sweeps it may be exceeded.
const MAX_TOTAL_SIZE: u64 = 256 << 20;
/// Minimum interval between updates of an entry's time of use.
const MARK_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// The disk cache for one device and driver.
#[derive(Debug)]
pub(crate) struct DiskCache {
    base: PathBuf,
    device: String,
    folder: PathBuf,
    identity: Vec<u8>,
    limit: u64,
    /// Bytes stored since the last sweep.
    unswept: AtomicU64,
}

impl DiskCache {
    /// Opens the cache for a device in the configured folder. `None` if the cache is turned off, or
    /// if the folder cannot be trusted or created; the latter is logged.
    pub(crate) fn open(identity: &DeviceIdentity) -> Option<Self> {
        match location::process_location() {
            Location::Off => None,
            Location::In(base) => Self::open_in(&base, identity, MAX_TOTAL_SIZE),
            Location::NoHome => {
                let problem = io::Error::other("the user has no home folder");
                location::warn_once(Path::new("the user's cache folder"), &problem);
                None
            }
            Location::NoCurrentFolder(relative) => {
                let problem = io::Error::other(
                    "the path in SCRY_CACHE_DIR is relative, and the current folder does not exist",
                );
                location::warn_once(&relative, &problem);
                None
            }
        }
    }

    /// Opens the cache for a device in a folder, with a size limit in bytes.
    pub(crate) fn open_in(base: &Path, identity: &DeviceIdentity, limit: u64) -> Option<Self> {
        let device = identity.folder_name();
        match location::prepare(base, &device) {
            Ok(folder) => Some(Self {
                base: base.to_owned(),
                device,
                folder,
                identity: identity.key_part(),
                limit,
                // Makes the first store sweep.
                unswept: AtomicU64::new(limit),
            }),
            Err(problem) => {
                location::warn_once(&location::root_in(base).join(device), &problem);
                None
            }
        }
    }

    /// Returns the payload of a kernel variant, if there is a valid one.
    pub(crate) fn load(&self, key: &KernelKey, variant: Variant<'_>) -> Option<Vec<u8>> {
        let key = format::full_key(&self.identity, key, variant);
        let path = self.path(&key, variant.part.kind());
        let payload = read(&path, &key);
        logging::read_from_disk(&self.device, variant.part.kind().extension(), payload.as_deref());
        payload
    }

    /// Stores a payload. Failures are not errors: the first one for the folder is logged.
    pub(crate) fn store(&self, key: &KernelKey, variant: Variant<'_>, payload: &[u8]) {
        let key = format::full_key(&self.identity, key, variant);
        let file = match format::encode(&key, payload) {
            Some(file) if !payload.is_empty() => file,
            _ => {
                let size = payload.len();
                log::debug!("a payload of {size} bytes is not stored: it is empty or too large");
                return;
            }
        };
        let path = self.path(&key, variant.part.kind());
        let written = match replace(&path, &file) {
            // Another process cleared the cache while it was in use.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                location::prepare(&self.base, &self.device).and_then(|_| replace(&path, &file))
            }
            written => written,
        };
        match written {
            Ok(()) => {
                let kind = variant.part.kind().extension();
                logging::stored_on_disk(&self.device, kind, payload.len());
                self.sweep_if_due(file.len() as u64);
            }
            Err(problem) => location::warn_once(&self.folder, &problem),
        }
    }

    /// Returns the path of an entry.
    pub(super) fn path(&self, key: &[u8], kind: Kind) -> PathBuf {
        let hash = format::hash(key);
        self.folder.join(format!("{hash:032x}.{}", kind.extension()))
    }

    /// Sweeps each time this process has stored an eighth of the limit. What other processes store
    /// meanwhile is not counted.
    fn sweep_if_due(&self, stored: u64) {
        let unswept = self.unswept.fetch_add(stored, Ordering::Relaxed);
        if unswept.saturating_add(stored) > self.limit / 8 {
            self.unswept.store(0, Ordering::Relaxed);
            entries::sweep(&location::root_in(&self.base), self.limit);
        }
    }
}

/// Returns the payload of a file, if it is a valid entry under this key.
fn read(path: &Path, key: &[u8]) -> Option<Vec<u8>> {
    let (file, mut bytes) = location::read_private(path, MAX_FILE)?;
    let Some(payload) = format::payload(&bytes, key) else {
        log::debug!("{}: not a valid entry, skipped", path.display());
        return None;
    };
    bytes.truncate(payload.end);
    bytes.drain(..payload.start);
    mark_used(&file);
    Some(bytes)
}

/// Updates an entry's time of use, for the LRU order. Failures are not errors. Windows does not
/// allow it for files opened for reading: there the entries written first are evicted.
fn mark_used(file: &File) {
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    let Ok(age) = modified.map(|at| SystemTime::now().duration_since(at).unwrap_or_default())
    else {
        return;
    };
    if age > MARK_INTERVAL
        && let Err(error) = file.set_modified(SystemTime::now())
    {
        log::debug!("the use of a cache entry cannot be recorded: {error}");
    }
}

/// Replaces a file atomically.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = TemporaryFile::create(path)?;
    (&temporary.file).write_all(content)?;
    // Before the rename: otherwise a power failure could leave the new name without content.
    temporary.file.sync_data()?;
    fs::rename(&temporary.path, path)
}

/// A temporary file, removed on drop unless it was renamed.
struct TemporaryFile {
    path: PathBuf,
    file: File,
}

impl TemporaryFile {
    fn create(path: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // Process ids are not unique: containers that share a folder have separate id spaces.
        static PROCESS: OnceLock<u64> = OnceLock::new();
        let process = PROCESS.get_or_init(|| RandomState::new().hash_one(0));
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let writer = format!("{:x}-{process:x}-{count:x}", std::process::id());
        let path = path.with_extension(format!("{writer}.{}", Kind::Temporary.extension()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        Ok(Self { path, file })
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // After the rename no file has this name.
        let _ = fs::remove_file(&self.path);
    }
}
