//! Location of the cache, and checks that no other user can write to it.
//!
//! Drivers execute cached code, so a user who can write to a cache can run code as its readers. A
//! folder is used only if it belongs to the user and others cannot write to it; the same is
//! required of each file, checked on the open handle. On Windows neither is checked: the default
//! folder is in the user's profile, whose access control list excludes others.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The configured location of the cache.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// The cache is turned off.
    Off,
    /// There is no home folder.
    NoHome,
    /// `SCRY_CACHE_DIR` is this relative path, and the current folder does not exist.
    NoCurrentFolder(PathBuf),
    /// In this folder, which may contain other files too.
    In(PathBuf),
}

/// Reads the location from environment variables.
pub(super) fn configured_location(variable: impl Fn(&str) -> Option<OsString>) -> Location {
    if let Some(given) = variable("SCRY_CACHE_DIR") {
        return if given.is_empty() || given.eq_ignore_ascii_case("off") {
            Location::Off
        } else {
            let path = PathBuf::from(given);
            std::path::absolute(&path).map_or(Location::NoCurrentFolder(path), Location::In)
        };
    }
    let folder = |name: &str| {
        let path = PathBuf::from(variable(name)?);
        path.is_absolute().then_some(path)
    };
    let found = if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else if cfg!(target_vendor = "apple") {
        folder("HOME").map(|home| home.join("Library/Caches"))
    } else {
        folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))
    };
    found.map_or(Location::NoHome, Location::In)
}

/// Returns the location from the environment of the process.
pub(super) fn process_location() -> Location {
    configured_location(|name| std::env::var_os(name))
}

/// Returns the folder that contains a folder for each device, unless the cache is turned off. It
/// need not exist.
pub(crate) fn root() -> Option<PathBuf> {
    match process_location() {
        Location::In(base) => Some(root_in(&base)),
        Location::Off | Location::NoHome | Location::NoCurrentFolder(_) => None,
    }
}

/// Returns the [`root`] in a given folder.
pub(super) fn root_in(base: &Path) -> PathBuf {
    base.join("scry-gpu")
}

/// Creates the folder of a device, or verifies that the existing one can be trusted.
pub(super) fn prepare(base: &Path, device: &str) -> io::Result<PathBuf> {
    check_base(base)?;
    private_builder().recursive(true).create(base)?;
    let root = root_in(base);
    make_private(&root)?;
    let folder = root.join(device);
    make_private(&folder)?;
    Ok(folder)
}

/// Returns an error unless `path` is a folder, not a link to one, that belongs to the user and that
/// only the user can write to.
pub(super) fn check_private(path: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    let problem = if metadata.is_symlink() {
        Some("is a symbolic link".to_owned())
    } else if !metadata.is_dir() {
        Some("is not a folder".to_owned())
    } else {
        exposure(&metadata)
    };
    match problem {
        Some(problem) => Err(io::Error::other(format!("{} {problem}", path.display()))),
        None => Ok(()),
    }
}

fn make_private(path: &Path) -> io::Result<()> {
    match private_builder().create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => check_private(path),
    }
}

fn private_builder() -> DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has file modes"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Returns an error if another user could replace the cache folder: if `base`, or its nearest
/// existing parent, belongs to a user other than this one and root, or is writable by others. Also
/// prevents a process run as root from using another user's home.
///
/// A group with the id of the owner is taken for the owner's private group: systems that give users
/// such groups create folders that are writable by it.
#[cfg(unix)]
fn check_base(base: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let Some((path, metadata)) =
        base.ancestors().find_map(|path| Some((path, fs::metadata(path).ok()?)))
    else {
        return Ok(());
    };
    let (owner, group, mode) = (metadata.uid(), metadata.gid(), metadata.mode());
    // In a folder with the sticky bit, such as /tmp, only owners can rename.
    let is_sticky = mode & 0o1000 != 0;
    let problem = if owner != 0 && owner != effective_user_id() {
        format!("belongs to user {owner} rather than to user {}", effective_user_id())
    } else if mode & 0o002 != 0 && !is_sticky {
        format!("is writable by everyone (mode {:o})", mode & 0o7777)
    } else if mode & 0o020 != 0 && !is_sticky && group != owner {
        format!("is writable by group {group} (mode {:o})", mode & 0o7777)
    } else {
        return Ok(());
    };
    Err(io::Error::other(format!("{} {problem}", path.display())))
}

#[cfg(not(unix))]
fn check_base(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns how another user could have written to a file or folder.
#[cfg(unix)]
fn exposure(metadata: &Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let (owner, mode) = (metadata.uid(), metadata.mode());
    if owner != effective_user_id() {
        Some(format!("belongs to user {owner} rather than to user {}", effective_user_id()))
    } else if mode & 0o022 != 0 {
        Some(format!("is writable by other users (mode {:o})", mode & 0o7777))
    } else {
        None
    }
}

#[cfg(not(unix))]
fn exposure(_: &Metadata) -> Option<String> {
    None
}

/// Returns the effective user id of this process.
#[cfg(unix)]
pub(super) fn effective_user_id() -> u32 {
    // SAFETY: the declaration matches POSIX: no argument, no failure, and `uid_t` has 32 bits on
    // every Unix that Rust's standard library supports.
    unsafe extern "C" {
        safe fn geteuid() -> u32;
    }
    geteuid()
}

/// Reads a file of at most `limit` bytes. `None` if it does not exist, or if it is not a regular
/// file that only the user can have written.
pub(super) fn read_private(path: &Path, limit: u64) -> Option<(File, Vec<u8>)> {
    // Checked before opening: opening a named pipe would block.
    let fits = |metadata: &Metadata| metadata.is_file() && metadata.len() <= limit;
    if !fits(&fs::symlink_metadata(path).ok()?) {
        return None;
    }
    let file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !fits(&metadata) || exposure(&metadata).is_some() {
        return None;
    }
    let length = usize::try_from(metadata.len()).ok()?;
    let mut bytes = Vec::with_capacity(length);
    (&file).take(metadata.len()).read_to_end(&mut bytes).ok()?;
    (bytes.len() == length).then_some((file, bytes))
}

/// Logs why a folder is not used, once per process and folder.
pub(super) fn warn_once(folder: &Path, problem: &io::Error) {
    static WARNED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    if !warned.iter().any(|other| other == folder) {
        warned.push(folder.to_owned());
        log::warn!(
            "compiled kernels are not kept in {}: {problem}; set SCRY_CACHE_DIR to a folder that \
             only you can write to, or to `off`",
            folder.display()
        );
    }
}
