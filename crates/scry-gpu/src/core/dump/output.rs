//! Where stages are printed: standard error, or files in a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::settings::{FOLDER, STAGES, Settings};

/// Kernels that are reported as not selected, at most.
const MAX_SKIPPED: usize = 16;

/// Characters of a file name before its extension, at most.
const MAX_FILE_NAME: usize = 100;

/// The output of a process.
pub(super) struct Output {
    pub(super) settings: Settings,
    seen: Mutex<Seen>,
    folder_failed: AtomicBool,
}

#[derive(Default)]
struct Seen {
    /// Compilations by the name of their files.
    compilations: BTreeMap<String, u32>,
    /// Names of kernels that are not selected.
    skipped: BTreeSet<String>,
}

impl Output {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, seen: Mutex::default(), folder_failed: AtomicBool::new(false) }
    }

    /// Returns which compilation of a kernel begins, counted from 1; `None` if it is not selected.
    /// The first kernels that are not selected are named, as help against mistyped names.
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

    /// Prints text under a title. Threads do not mix.
    pub(super) fn print(&self, title: &str, text: &str) {
        print(&format!("--- scry: {title} ---\n{}\n\n", text.trim_end()));
    }

    /// Writes a file into the folder. Returns `false` if there is none, or if that fails, after a
    /// note.
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

/// Writes a file at once: a reader sees the former one or the whole new one.
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

/// Prints text at once. A closed standard error is no error.
fn print(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Returns the name of a kernel's files: the kernel may have any name.
pub(super) fn file_name(kernel: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = kernel.chars().take(MAX_FILE_NAME).map(plain).collect();
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
