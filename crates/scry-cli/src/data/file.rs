//! Output files: checked before a run, and written atomically after it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::report::Failure;

/// Checks that a path can be written. An existing file is opened for writing and not changed; a
/// missing one is created and removed again.
///
/// # Errors
/// [`Failure::Runtime`] if the path is a folder, or cannot be written.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(Failure::file(path, "it is a folder; give the name of a file"));
    }
    let target = resolve_links(path);
    let folder = folder_of(&target);
    if !folder.is_dir() {
        let problem = format!("there is no folder {}; create it first", folder.display());
        return Err(Failure::file(path, problem));
    }
    let failed = |error: io::Error| Failure::file(path, format!("it cannot be written: {error}"));
    match fs::metadata(&target) {
        Ok(meta) if meta.is_file() => {
            OpenOptions::new().append(true).open(&target).map_err(failed)?;
        }
        // Opening a pipe would wait for its reader.
        Ok(_) => {}
        Err(_) => {
            OpenOptions::new().write(true).create_new(true).open(&target).map_err(failed)?;
            fs::remove_file(&target).map_err(failed)?;
        }
    }
    Ok(())
}

/// Resolves the symbolic links of a path, which need not exist.
fn resolve_links(path: &Path) -> PathBuf {
    const MAX_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(next) => path = folder_of(&path).join(next),
            Err(_) => break,
        }
    }
    path
}

/// Returns whether both paths are the same file once symbolic links are resolved.
pub fn is_same(a: &Path, b: &Path) -> bool {
    canonical(a) == canonical(b)
}

/// Writes a file atomically: to a temporary file in the same folder, which is then renamed. Pipes,
/// devices, and existing files in folders where none can be created are written in place.
pub fn write(
    path: &Path,
    fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::file(path, without_path(error));
    // A symbolic link is followed: its target is replaced, not the link.
    let target = &resolve_links(path);
    let existing = fs::metadata(target).ok();
    let in_place = |fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>| {
        let mut out = BufWriter::new(File::create(target).map_err(failed)?);
        fill(&mut out).and_then(|()| out.flush()).map_err(failed)
    };
    if existing.as_ref().is_some_and(|meta| !meta.is_file()) {
        return in_place(fill);
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".scry-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The usual permissions of a new file, less the umask; tempfile's default is 0o600.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut temporary = match builder.tempfile_in(folder_of(target)) {
        // The file is writable, but its folder is not.
        Err(_) if existing.is_some() => return in_place(fill),
        temporary => temporary.map_err(failed)?,
    };
    let mut out = BufWriter::with_capacity(1 << 16, temporary.as_file_mut());
    fill(&mut out).and_then(|()| out.flush()).map_err(failed)?;
    drop(out);
    if let Some(meta) = existing {
        fs::set_permissions(temporary.path(), meta.permissions()).map_err(failed)?;
    }
    temporary.persist(target).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Returns the system's error, without the name of the temporary file that tempfile adds.
fn without_path(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.split_once(" at path \"") {
        Some((cause, _)) => io::Error::new(error.kind(), cause),
        None => error,
    }
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Returns the path without links; for a missing file, at least its folder is resolved.
fn canonical(path: &Path) -> PathBuf {
    let path = &resolve_links(path);
    fs::canonicalize(path).unwrap_or_else(|_| {
        let folder = fs::canonicalize(folder_of(path)).unwrap_or_else(|_| folder_of(path));
        folder.join(path.file_name().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_writes_keep_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        write(&path, &mut |out| out.write_all(b"old")).unwrap();
        let error = write(&path, &mut |out| {
            out.write_all(b"new")?;
            Err(io::Error::other("the disk is full"))
        });
        assert!(error.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        write(&path, &mut |out| out.write_all(b"new")).unwrap();
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
        assert!(is_same(&real, &link));
        write(&link, &mut |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        write(Path::new("/dev/null"), &mut |out| out.write_all(b"new")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[cfg(unix)]
    #[test]
    fn dangling_links_create_their_target() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("to")).unwrap();
        let (first, second) = (folder.path().join("a.bin"), folder.path().join("to/b.bin"));
        symlink("to/b.bin", &first).unwrap();
        symlink("c.bin", &second).unwrap();
        let real = folder.path().join("to/c.bin");
        assert!(is_same(&first, &real));
        check_writable(&first).unwrap();
        assert!(!real.exists(), "the check leaves nothing");
        write(&first, &mut |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&second).unwrap().is_symlink());
        let circle = folder.path().join("circle.bin");
        symlink("circle.bin", &circle).unwrap();
        assert!(check_writable(&circle).is_err());
    }

    #[test]
    fn checks_leave_files_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new.bin"), folder.path().join("old.bin"));
        fs::write(&old, b"old").unwrap();
        check_writable(&new).unwrap();
        check_writable(&old).unwrap();
        assert!(!new.exists());
        assert_eq!(fs::read(&old).unwrap(), b"old");
    }

    #[test]
    fn errors_name_no_temporary_file() {
        let gone = Path::new("/nonexistent/a.bin");
        let text = write(gone, &mut |_| Ok(())).unwrap_err().into_text();
        assert!(text.starts_with("/nonexistent/a.bin: "), "{text}");
        assert!(!text.contains(".scry-"), "{text}");
        let long = std::env::temp_dir().join("a".repeat(300));
        assert!(check_writable(&long).is_err(), "names of 300 characters are too long");
    }

    #[test]
    fn equivalent_paths_are_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.bin");
        let other = folder.path().join(".").join("new.bin");
        assert!(is_same(&path, &other));
        assert!(!is_same(&path, &folder.path().join("else.bin")));
        assert!(check_writable(&path).is_ok());
        assert!(check_writable(folder.path()).is_err());
        assert!(check_writable(&folder.path().join("none").join("a.bin")).is_err());
    }
}
