//! Kernels that earlier processes compiled, one file each.
//!
//! A file is written beside its final place and renamed, so that a reader finds the old entry, the
//! new one or none, whenever the writer stops. Whatever is odd about a file makes it a miss, and no
//! failure here is ever a failure of the job.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::format::{self, MAX_FILE};
use super::location::{self, Place};
use super::{DeviceIdentity, KernelKey, Kind, Variant, entries};
use crate::core::logging;

/// All files together are kept below this many bytes, give or take what was stored since the last
/// look.
const LIMIT: u64 = 256 << 20;
/// An entry in use is marked as such at most this often.
const USED_MARK: Duration = Duration::from_secs(24 * 3600);

/// The kernels that earlier processes compiled for one device and driver.
#[derive(Debug)]
pub(crate) struct DiskCache {
    base: PathBuf,
    device: String,
    folder: PathBuf,
    identity: Vec<u8>,
    limit: u64,
    /// Bytes stored since all files were last looked at.
    unswept: AtomicU64,
}

impl DiskCache {
    /// Opens the cache for a device, where the environment says. None if there is to be none, or
    /// if it cannot be trusted or made; the latter is logged.
    pub(crate) fn open(identity: &DeviceIdentity) -> Option<Self> {
        match location::place_of_process() {
            Place::Off => None,
            Place::In(base) => Self::open_in(&base, identity, LIMIT),
            Place::Nowhere => {
                let problem = io::Error::other("the user has no home folder");
                location::warn_once(Path::new("the user's cache folder"), &problem);
                None
            }
        }
    }

    /// Opens the cache for a device in a folder, where it is to keep so many bytes at most.
    pub(crate) fn open_in(base: &Path, identity: &DeviceIdentity, limit: u64) -> Option<Self> {
        let device = identity.folder_name();
        match location::prepare(base, &device) {
            Ok(folder) => Some(Self {
                base: base.to_owned(),
                device,
                folder,
                identity: identity.key_part(),
                limit,
                // The first store of a process looks.
                unswept: AtomicU64::new(limit),
            }),
            Err(problem) => {
                location::warn_once(&location::root_in(base).join(device), &problem);
                None
            }
        }
    }

    /// The payload kept for a variant of a kernel, if there is a sound one.
    pub(crate) fn load(&self, key: &KernelKey, variant: Variant<'_>) -> Option<Vec<u8>> {
        let key = format::full_key(&self.identity, key, variant);
        let path = self.path(&key, variant.part.kind());
        let payload = read(&path, &key);
        logging::read_from_disk(&self.device, variant.part.kind().extension(), payload.as_deref());
        payload
    }

    /// Keeps a payload. Failure is never an error: the first one is logged, and that is all.
    pub(crate) fn store(&self, key: &KernelKey, variant: Variant<'_>, payload: &[u8]) {
        let key = format::full_key(&self.identity, key, variant);
        let file = match format::encode(&key, payload) {
            Some(file) if !payload.is_empty() => file,
            _ => {
                let size = payload.len();
                log::debug!("a payload of {size} bytes is not kept: it is empty or too large");
                return;
            }
        };
        let path = self.path(&key, variant.part.kind());
        let written = match replace(&path, &file) {
            // Somebody cleared the cache while it was in use.
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

    /// The file of an entry.
    pub(super) fn path(&self, key: &[u8], kind: Kind) -> PathBuf {
        let hash = format::hash(key);
        self.folder.join(format!("{hash:032x}.{}", kind.extension()))
    }

    /// Reads the whole folder only once in a while: other processes store too, and a sum that is
    /// an eighth off is good enough.
    fn sweep_if_due(&self, stored: u64) {
        let unswept = self.unswept.fetch_add(stored, Ordering::Relaxed);
        if unswept.saturating_add(stored) > self.limit / 8 {
            self.unswept.store(0, Ordering::Relaxed);
            entries::sweep(&location::root_in(&self.base), self.limit);
        }
    }
}

/// The payload of a file, if it is a sound entry under this key.
fn read(path: &Path, key: &[u8]) -> Option<Vec<u8>> {
    let (file, mut bytes) = location::read_private(path, MAX_FILE)?;
    let Some(payload) = format::payload(&bytes, key) else {
        log::debug!("{}: not a sound entry, passed over", path.display());
        return None;
    };
    bytes.truncate(payload.end);
    bytes.drain(..payload.start);
    mark_used(&file);
    Some(bytes)
}

/// Notes the use of an entry, so that it is not among the first to go. May fail.
fn mark_used(file: &File) {
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    let Ok(age) = modified.map(|at| SystemTime::now().duration_since(at).unwrap_or_default())
    else {
        return;
    };
    if age > USED_MARK
        && let Err(error) = file.set_modified(SystemTime::now())
    {
        log::debug!("the use of a cache entry cannot be noted: {error}");
    }
}

/// Puts a file in place at once, whole or not at all.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = Temporary::create(path)?;
    (&temporary.file).write_all(content)?;
    // Before the rename: else a power failure could leave the new name with nothing behind it.
    temporary.file.sync_data()?;
    fs::rename(&temporary.path, path)
}

/// A file beside its final place, removed again unless it was renamed.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Temporary {
    fn create(path: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // Process numbers repeat: containers that share a folder each have their own.
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

impl Drop for Temporary {
    fn drop(&mut self) {
        // After the rename there is nothing under this name.
        let _ = fs::remove_file(&self.path);
    }
}
