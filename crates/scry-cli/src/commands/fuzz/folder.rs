//! The folder for kernels with problems, checked before the work starts.

use std::fs;
use std::path::Path;

use crate::report::Failure;

/// Returns a usage error if no file can be created in a folder, which need not exist. Leaves no
/// files behind: a missing folder is created once there is something to write.
pub(super) fn check_writable(folder: &Path) -> Result<(), Failure> {
    let rejected = |problem: String| {
        let path = folder.display();
        Err(Failure::Usage(format!(
            "--output {path}: {problem}; help: give a folder where files can be created"
        )))
    };
    let here = Path::new(".");
    let ancestors = folder.ancestors().map(|path| if path == Path::new("") { here } else { path });
    let existing = ancestors.into_iter().find(|path| fs::symlink_metadata(path).is_ok());
    let existing = existing.unwrap_or(here);
    if !existing.is_dir() {
        return rejected(match existing == folder {
            true => "it is not a folder".to_owned(),
            false => format!("{} is not a folder", existing.display()),
        });
    }
    let trial = tempfile::Builder::new().prefix(".scry-").tempdir_in(existing);
    match trial {
        Ok(_) => Ok(()),
        // The error itself would name the temporary folder.
        Err(error) => {
            rejected(format!("nothing can be created in {}: {}", existing.display(), error.kind()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_leaves_no_files() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::write(path("file"), "").unwrap();
        assert!(check_writable(root.path()).is_ok());
        assert!(check_writable(&path("new")).is_ok());
        assert!(check_writable(&path("new/deep")).is_ok());
        for wrong in ["file", "file/below"] {
            let Err(Failure::Usage(text)) = check_writable(&path(wrong)) else { panic!("{wrong}") };
            assert!(text.contains("not a folder") && text.contains("help: "), "{text}");
        }
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
        assert!(check_writable(Path::new("relative")).is_ok());
        assert!(!Path::new("relative").exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn read_only_folders_are_rejected() {
        let Err(Failure::Usage(text)) = check_writable(Path::new("/proc/found")) else {
            panic!("it is")
        };
        assert!(text.contains("nothing can be created in /proc: "), "{text}");
        assert!(!text.contains(".scry-"), "no temporary name: {text}");
    }
}
