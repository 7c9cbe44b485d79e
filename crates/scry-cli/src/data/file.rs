//! Output files: checked before the work, written in one step after it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::report::Failure;

/// Refuses a place where no file can be written, before any work is done for it.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(Failure::file(path, "it is a folder; give the name of a file"));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        let problem = format!("there is no folder {}; create it first", folder.display());
        return Err(Failure::file(path, problem));
    }
    Ok(())
}

/// True if both paths lead to the same file, through whatever links.
pub fn same(a: &Path, b: &Path) -> bool {
    resolved(a) == resolved(b)
}

/// Writes a file so that it is there whole or not at all: into a temporary file beside it, which
/// then takes its name. What is not a plain file (a pipe, a device) is written in place.
pub fn write(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::file(path, error);
    // Through a symbolic link the file that it points to is replaced, not the link.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let existing = fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|meta| !meta.is_file()) {
        let mut out = BufWriter::new(File::create(path).map_err(failed)?);
        return fill(&mut out).and_then(|()| out.flush()).map_err(failed);
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".scry-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let usual = fs::Permissions::from_mode(0o666);
        builder.permissions(usual);
    }
    let mut temporary = builder.tempfile_in(folder_of(path)).map_err(failed)?;
    let mut out = BufWriter::with_capacity(1 << 16, temporary.as_file_mut());
    fill(&mut out).and_then(|()| out.flush()).map_err(failed)?;
    drop(out);
    if let Some(meta) = existing {
        fs::set_permissions(temporary.path(), meta.permissions()).map_err(failed)?;
    }
    temporary.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The path without links; of a file that does not exist, at least the folder's.
fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| {
        let folder = fs::canonicalize(folder_of(path)).unwrap_or_else(|_| folder_of(path));
        folder.join(path.file_name().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        write(&path, |out| out.write_all(b"old")).unwrap();
        let error = write(&path, |out| {
            out.write_all(b"new")?;
            Err(io::Error::other("the pen broke"))
        });
        assert!(error.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        write(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.bin"), folder.path().join("link.bin"));
        fs::write(&real, b"old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&real, &link).unwrap();
        assert!(same(&real, &link));
        write(&link, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        write(Path::new("/dev/null"), |out| out.write_all(b"new")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn paths_to_one_file_are_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.bin");
        let other = folder.path().join(".").join("new.bin");
        assert!(same(&path, &other));
        assert!(!same(&path, &folder.path().join("else.bin")));
        assert!(check_writable(&path).is_ok());
        assert!(check_writable(folder.path()).is_err());
        assert!(check_writable(&folder.path().join("none").join("a.bin")).is_err());
    }
}
