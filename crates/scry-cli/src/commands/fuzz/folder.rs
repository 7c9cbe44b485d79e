//! The folder for kernels with problems, checked before the work starts.

use std::fs;
use std::path::Path;

use crate::report::Failure;

/// Refuses a folder in which no file can be created. Leaves no files behind: a missing folder is
/// created once there is something to write.
pub(super) fn check(folder: &Path) -> Result<(), Failure> {
    let refused = |problem: String| {
        let shown = folder.display();
        Err(Failure::Usage(format!(
            "--output {shown}: {problem}; help: give a folder where files can be created"
        )))
    };
    let here = Path::new(".");
    let ancestors = folder.ancestors().map(|path| if path == Path::new("") { here } else { path });
    let existing = ancestors.into_iter().find(|path| fs::symlink_metadata(path).is_ok());
    let existing = existing.unwrap_or(here);
    if !existing.is_dir() {
        return refused(match existing == folder {
            true => "it is not a folder".to_owned(),
            false => format!("{} is not a folder", existing.display()),
        });
    }
    let trial = tempfile::Builder::new().prefix(".scry-").tempdir_in(existing);
    match trial {
        Ok(_) => Ok(()),
        // The error itself would name the temporary folder.
        Err(error) => {
            refused(format!("nothing can be created in {}: {}", existing.display(), error.kind()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_checked_without_a_trace() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path("file"), "").unwrap();
        assert!(check(place.path()).is_ok());
        assert!(check(&path("new")).is_ok());
        assert!(check(&path("new/deep")).is_ok());
        for wrong in ["file", "file/below"] {
            let Err(Failure::Usage(text)) = check(&path(wrong)) else { panic!("{wrong}") };
            assert!(text.contains("not a folder") && text.contains("help: "), "{text}");
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        assert!(check(Path::new("relative")).is_ok());
        assert!(!Path::new("relative").exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_read_only_folder_is_refused() {
        let Err(Failure::Usage(text)) = check(Path::new("/proc/found")) else { panic!("it is") };
        assert!(text.contains("nothing can be created in /proc: "), "{text}");
        assert!(!text.contains(".scry-"), "no temporary name: {text}");
    }
}
