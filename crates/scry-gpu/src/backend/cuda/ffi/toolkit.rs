//! Finds and opens the libraries of NVIDIA's CUDA toolkit.

use std::ffi::c_int;
use std::path::{Path, PathBuf};

use super::library::{Library, Missing};
use crate::api::error::{GpuError, LibraryError};

/// Default install folders of the toolkit.
#[cfg(not(windows))]
const DEFAULT_ROOTS: [&str; 1] = ["/usr/local/cuda"];
#[cfg(windows)]
const DEFAULT_ROOTS: [&str; 0] = [];

/// Environment variables that name the toolkit's folder.
const ROOT_VARIABLES: [&str; 2] = ["CUDA_PATH", "CUDA_HOME"];

/// Library folders within a toolkit.
#[cfg(not(windows))]
const LIBRARY_FOLDERS: [&str; 2] = ["lib64", "lib"];
#[cfg(windows)]
const LIBRARY_FOLDERS: [&str; 2] = ["bin", "bin/x64"];

/// A library of the toolkit.
pub(crate) struct ToolkitLibrary {
    /// The library's common name.
    pub(crate) name: &'static str,
    /// File names, newest first, each with its major CUDA version. An unversioned name, which may
    /// be of any version, is last.
    pub(crate) files: &'static [(c_int, &'static str)],
    /// How to install it.
    pub(crate) help: &'static str,
}

impl ToolkitLibrary {
    /// Opens the library. First tries the versions that a driver for CUDA `driver` (12080 is 12.8)
    /// supports, newest first, then the others.
    pub(crate) fn open(&self, driver: c_int) -> Result<Library, GpuError> {
        self.open_from(driver, &roots())
    }

    fn open_from(&self, driver: c_int, roots: &[PathBuf]) -> Result<Library, GpuError> {
        let mut messages = Vec::new();
        for file in self.search_order(driver) {
            for path in paths(file, roots) {
                match Library::open(&[&path]) {
                    Ok(library) => return Ok(library),
                    Err(message) if is_present(&message, &path) => messages.push(message),
                    Err(_) => {}
                }
            }
        }
        Err(self.not_found(roots, &messages))
    }

    /// Returns the files in search order.
    fn search_order(&self, driver: c_int) -> impl Iterator<Item = &'static str> {
        let is_supported = move |version: c_int| version * 1000 <= driver;
        let supported = self.files.iter().filter(move |(version, _)| is_supported(*version));
        let others = self.files.iter().filter(move |(version, _)| !is_supported(*version));
        supported.chain(others).map(|(_, file)| *file)
    }

    /// Returns the error for a library that did not open. `messages` are the system's, for the
    /// files that are present.
    fn not_found(&self, roots: &[PathBuf], messages: &[String]) -> GpuError {
        let files: Vec<&str> = self.files.iter().map(|(_, file)| *file).collect();
        let mut problem = format!("none of {} could be opened by the system", files.join(", "));
        if !roots.is_empty() {
            let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
            problem = format!("{problem}, nor in {}", roots.join(", "));
        }
        if !messages.is_empty() {
            problem = format!("{problem}; those present failed with: {}", messages.join("; "));
        }
        self.unavailable(problem)
    }

    /// Returns the error for a library that lacks a function.
    pub(crate) fn missing_function(&self, file: &str, missing: Missing) -> GpuError {
        GpuError::Library(LibraryError {
            function: None,
            library: self.name,
            problem: format!("{file} has no function {}: it is too old", missing.name()),
            help: self.help.to_owned(),
        })
    }

    /// Returns the error for a library that is installed but does not work.
    pub(crate) fn broken(&self, problem: String) -> GpuError {
        self.unavailable(problem)
    }

    fn unavailable(&self, problem: String) -> GpuError {
        let (library, help) = (self.name, self.help.to_owned());
        GpuError::Library(LibraryError { function: None, library, problem, help })
    }
}

/// Returns whether a file that did not open is present, by the system's error message.
fn is_present(message: &str, path: &str) -> bool {
    let path = Path::new(path);
    let not_found = ["No such file", "cannot find", "could not be found", "(os error 126)"];
    path.is_absolute() && path.exists() || !not_found.iter().any(|words| message.contains(words))
}

/// Returns the toolkit folders.
fn roots() -> Vec<PathBuf> {
    let named = ROOT_VARIABLES.iter().filter_map(std::env::var_os).filter(|it| !it.is_empty());
    let mut roots: Vec<PathBuf> = named.map(PathBuf::from).collect();
    roots.extend(DEFAULT_ROOTS.iter().map(PathBuf::from));
    roots.dedup();
    roots
}

/// Returns the paths where a file may be: the system's search path and the toolkits.
fn paths(file: &str, roots: &[PathBuf]) -> impl Iterator<Item = String> {
    let in_root = |root: &PathBuf| LIBRARY_FOLDERS.map(|folder| root.join(folder).join(file));
    let in_roots: Vec<PathBuf> = roots.iter().flat_map(in_root).collect();
    let in_roots = in_roots.into_iter().map(|path| path.to_string_lossy().into_owned());
    std::iter::once(file.to_owned()).chain(in_roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISSING: ToolkitLibrary = ToolkitLibrary {
        name: "Nothing",
        files: &[
            (13, "libscry-none.so.13"),
            (12, "libscry-none.so.12"),
            (11, "libscry-none.so.11"),
        ],
        help: "make it",
    };

    #[test]
    fn absence_lists_files_folders_and_help() {
        let error = MISSING.open_from(12000, &[PathBuf::from("/scry/none")]).err().unwrap();
        let text = error.to_string();
        assert!(text.starts_with("Nothing is not available: none of libscry-none.so.13"), "{text}");
        assert!(text.contains("nor in /scry/none; help: make it"), "{text}");
    }

    #[test]
    fn supported_versions_come_first() {
        let order = |driver| MISSING.search_order(driver).map(|it| &it[16..]).collect::<Vec<_>>();
        assert_eq!(order(13000), ["13", "12", "11"]);
        assert_eq!(order(12080), ["12", "11", "13"]);
    }

    #[test]
    #[cfg(unix)]
    fn reports_files_that_do_not_open() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("lib64")).unwrap();
        std::fs::write(root.path().join("lib64/libscry-none.so.12"), "text").unwrap();
        let error = MISSING.open_from(12000, &[root.path().to_owned()]).err().unwrap();
        let text = error.to_string();
        assert!(
            text.contains("those present failed with: ") && text.contains("lib64/libscry-none"),
            "{text}"
        );
    }

    #[test]
    #[cfg(unix)]
    fn finds_library_in_toolkit_folder() {
        let candidates = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6"];
        let Some(libc) = candidates.iter().find(|path| Path::new(path).exists()) else {
            eprintln!("skipped: the C library is elsewhere");
            return;
        };
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("lib64")).unwrap();
        let copy = root.path().join("lib64/libscry-none.so.12");
        std::os::unix::fs::symlink(libc, &copy).unwrap();
        let library = MISSING.open_from(12000, &[root.path().to_owned()]).unwrap();
        assert_eq!(Path::new(library.name()), copy);
        let missing = library.function(c"nvrtcVersion").unwrap_err();
        let text = MISSING.missing_function(library.name(), missing).to_string();
        assert!(text.contains("has no function nvrtcVersion"), "{text}");
    }
}
