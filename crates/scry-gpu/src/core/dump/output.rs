//! Prints stages to standard error, or to files in a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::settings::{FOLDER, STAGES, Settings};

/// Maximum number of kernels that are reported as not selected.
const MAX_SKIPPED: usize = 16;

/// Maximum length of a file name without its extension, in characters.
const MAX_FILE_NAME: usize = 100;

/// The output of a process.
pub(super) struct Output {
    pub(super) settings: Settings,
    seen: Mutex<SeenKernels>,
    folder_failed: AtomicBool,
}

/// The kernels compiled so far.
#[derive(Default)]
struct SeenKernels {
    /// Number of compilations by file name.
    compilations: BTreeMap<String, u32>,
    /// Names of kernels that are not selected.
    skipped: BTreeSet<String>,
}

impl Output {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, seen: Mutex::default(), folder_failed: AtomicBool::new(false) }
    }

    /// Returns the number of compilations of a kernel including this one; `None` if it is not
    /// selected. Reports the first kernels that are not selected, which helps to find mistyped
    /// names.
    pub(super) fn select(&self, kernel: &str) -> Option<u32> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if self.settings.selects(kernel) {
            let count = seen.compilations.entry(file_name(kernel)).or_default();
            *count += 1;
            return Some(*count);
        }
        if seen.skipped.len() < MAX_SKIPPED && seen.skipped.insert(kernel.to_owned()) {
            let names = self.settings.kernels.join(",");
            note(&format!("kernel `{kernel}` is not selected by {STAGES}=…:{names}"));
        }
        None
    }

    /// Prints text under a title, in one write: the output of threads is not interleaved.
    pub(super) fn print(&self, title: &str, text: &str) {
        print(&format!("--- scry: {title} ---\n{}\n\n", text.trim_end()));
    }

    /// Writes a file into the folder. Returns `false` if no folder is set, and from the first write
    /// on that fails, which prints a note.
    pub(super) fn write_file(&self, name: &str, bytes: &[u8]) -> bool {
        let Some(folder) = &self.settings.folder else { return false };
        if self.folder_failed.load(Ordering::Relaxed) {
            return false;
        }
        match write_file(folder, name, bytes) {
            Ok(()) => {
                note(&format!("wrote {}", folder.join(name).display()));
                true
            }
            Err(error) => {
                if !self.folder_failed.swap(true, Ordering::Relaxed) {
                    let file = folder.join(name);
                    note(&format!(
                        "{} was not written: {error}; help: set {FOLDER} to a folder that can be \
                         written to. The stages follow here",
                        file.display()
                    ));
                }
                false
            }
        }
    }
}

/// Writes a file atomically: a reader sees the previous or the new content.
fn write_file(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let temporary = folder.join(format!(".{name}.{}.tmp", std::process::id()));
    std::fs::write(&temporary, bytes)?;
    std::fs::rename(&temporary, folder.join(name))
}

/// Prints a line.
pub(super) fn note(text: &str) {
    print(&format!("scry: {text}\n"));
}

/// Prints text in one write. Ignores errors, such as a closed standard error.
fn print(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Returns the file name for a kernel; other characters than ASCII letters and digits become `_`.
pub(super) fn file_name(kernel: &str) -> String {
    let replace = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = kernel.chars().take(MAX_FILE_NAME).map(replace).collect();
    if name.is_empty() { "kernel".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_stay_in_the_folder() {
        assert_eq!(file_name("saxpy"), "saxpy");
        assert_eq!(file_name("../../etc/passwd"), "______etc_passwd");
        assert_eq!(file_name("größe_1"), "gr__e_1");
        assert_eq!(file_name(""), "kernel");
        assert_eq!(file_name(&"x".repeat(1000)).len(), 100);
    }

    #[test]
    fn compilations_of_a_kernel_are_counted() {
        let output = Output::new(Settings { kernels: vec!["a".to_owned()], ..Default::default() });
        assert_eq!(
            [output.select("a"), output.select("b"), output.select("a")],
            [Some(1), None, Some(2)]
        );
    }
}
