//! Where the cache is, and whether nobody else can have written it.
//!
//! Drivers run what they find in a cache, so that writing to one is running code as its reader. A
//! folder is used only if it belongs to the user and others cannot write to it; the same is asked
//! of each file, of the handle that was opened. On Windows the folder lies in the user's profile,
//! whose access list keeps others out.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What the environment says about the place of the cache.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// There shall be no cache.
    Off,
    /// There is no home folder.
    Nowhere,
    /// In this folder, which may hold other things too.
    In(PathBuf),
}

/// Reads the place from environment variables.
pub(super) fn place(variable: impl Fn(&str) -> Option<OsString>) -> Place {
    if let Some(given) = variable("SCRY_CACHE_DIR") {
        return if given.is_empty() || given.eq_ignore_ascii_case("off") {
            Place::Off
        } else {
            std::path::absolute(given).map_or(Place::Nowhere, Place::In)
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
    found.map_or(Place::Nowhere, Place::In)
}

/// The place, from the environment of the process.
pub(super) fn place_of_process() -> Place {
    place(|name| std::env::var_os(name))
}

/// The folder that holds a folder for each device, if there is to be one. It need not exist.
pub(crate) fn root() -> Option<PathBuf> {
    match place_of_process() {
        Place::In(base) => Some(root_in(&base)),
        Place::Off | Place::Nowhere => None,
    }
}

/// [`root`] within a given place.
pub(super) fn root_in(base: &Path) -> PathBuf {
    base.join("scry-gpu")
}

/// Makes the folder of a device, or makes sure that an existing one can be trusted.
pub(super) fn prepare(base: &Path, device: &str) -> io::Result<PathBuf> {
    check_base(base)?;
    private_builder().recursive(true).create(base)?;
    let root = root_in(base);
    make_private(&root)?;
    let folder = root.join(device);
    make_private(&folder)?;
    Ok(folder)
}

/// Fails unless `path` is a folder, not a link to one, that is the user's and that only the user
/// can write to.
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
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only unix has modes to set"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Fails if whoever owns the place, or its nearest parent that exists, could exchange our folder
/// for another. This also keeps a process run as root out of another user's home.
#[cfg(unix)]
fn check_base(base: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let Some((path, metadata)) =
        base.ancestors().find_map(|path| Some((path, fs::metadata(path).ok()?)))
    else {
        return Ok(());
    };
    let (owner, mode) = (metadata.uid(), metadata.mode());
    let problem = if owner != 0 && owner != user() {
        format!("belongs to user {owner} rather than to user {}", user())
    } else if mode & 0o1002 == 0o002 {
        format!("can be written by everybody (mode {:o})", mode & 0o7777)
    } else {
        return Ok(());
    };
    Err(io::Error::other(format!("{} {problem}", path.display())))
}

#[cfg(not(unix))]
fn check_base(_: &Path) -> io::Result<()> {
    Ok(())
}

/// In which way somebody else could have written to a file or folder.
#[cfg(unix)]
fn exposure(metadata: &Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let (owner, mode) = (metadata.uid(), metadata.mode());
    if owner != user() {
        Some(format!("belongs to user {owner} rather than to user {}", user()))
    } else if mode & 0o022 != 0 {
        Some(format!("can be written by others (mode {:o})", mode & 0o7777))
    } else {
        None
    }
}

#[cfg(not(unix))]
fn exposure(_: &Metadata) -> Option<String> {
    None
}

/// The user that this process acts as.
#[cfg(unix)]
pub(super) fn user() -> u32 {
    // SAFETY: the declaration is POSIX's: no argument, no failure, and a `uid_t`, which is 32 bits
    // wide on every unix that Rust's standard library supports.
    unsafe extern "C" {
        safe fn geteuid() -> u32;
    }
    geteuid()
}

/// Reads a file of at most `limit` bytes. None if there is none, or if it is anything but a plain
/// file that only the user can have written.
pub(super) fn read_private(path: &Path, limit: u64) -> Option<(File, Vec<u8>)> {
    // Looked at before it is opened: opening a named pipe would block.
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

/// Says once in a process, for each folder, why it is not used.
pub(super) fn warn_once(folder: &Path, problem: &io::Error) {
    static WARNED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    if !warned.iter().any(|known| known == folder) {
        warned.push(folder.to_owned());
        log::warn!(
            "compiled kernels are not kept in {}: {problem}; set SCRY_CACHE_DIR to a folder that \
             only you can write to, or to `off`",
            folder.display()
        );
    }
}
