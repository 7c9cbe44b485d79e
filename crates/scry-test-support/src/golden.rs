//! Golden files. `SCRY_BLESS=1` rewrites them.

use std::env;
use std::fs;
use std::path::Path;

/// Compares `texts`, pairs of file name and content, with the golden files in `folder`. Panics at
/// the first line that differs, and if `folder` has a file with this extension (without a dot) to
/// which no text belongs. If `SCRY_BLESS=1` is set, writes the files instead of comparing them.
pub fn compare_all(folder: &Path, extension: &str, texts: &[(String, String)]) {
    compare_or_bless(folder, extension, texts, is_blessing());
}

/// Compares a text with a golden file. Panics at the first line that differs. If `SCRY_BLESS=1` is
/// set, writes the file instead.
pub fn compare_file(path: &Path, text: &str) {
    if is_blessing() { write(path, text) } else { compare(path, text) }
}

fn is_blessing() -> bool {
    env::var_os("SCRY_BLESS").is_some_and(|v| v == "1")
}

fn compare_or_bless(folder: &Path, extension: &str, texts: &[(String, String)], bless: bool) {
    for (file, text) in texts {
        let path = folder.join(file);
        if bless {
            write(&path, text);
        } else {
            compare(&path, text);
        }
    }
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries {
        let path = entry.unwrap_or_else(|e| panic!("{}: {e}", folder.display())).path();
        let other = path.extension().is_none_or(|found| found != extension);
        let known = texts.iter().any(|(file, _)| path.ends_with(file));
        assert!(other || known, "{} belongs to no kernel: remove it", path.display());
    }
}

fn write(path: &Path, text: &str) {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

fn compare(path: &Path, text: &str) {
    let blessed = fs::read_to_string(path)
        .unwrap_or_else(|e| panic!("{}: {e}; SCRY_BLESS=1 writes it", path.display()));
    if let Some((line, (old, new))) =
        blessed.lines().zip(text.lines()).enumerate().find(|(_, (old, new))| old != new)
    {
        panic!(
            "{}:{}: was `{old}`, is `{new}`; SCRY_BLESS=1 accepts the change",
            path.display(),
            line + 1
        );
    }
    // All lines of the shorter text are the same.
    let (old, new) = (blessed.len(), text.len());
    assert_eq!(old, new, "{} has {old} bytes, but the new text {new}", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> [(String, String); 1] {
        [("a.txt".to_owned(), text.to_owned())]
    }

    /// Blesses `a\nb\n`, and compares it with this text.
    fn compare_with_blessed(text: &str) {
        let folder = tempfile::tempdir().unwrap();
        compare_or_bless(folder.path(), "txt", &texts("a\nb\n"), true);
        compare_or_bless(folder.path(), "txt", &texts(text), false);
    }

    #[test]
    fn blessed_text_passes() {
        compare_with_blessed("a\nb\n");
    }

    #[test]
    #[should_panic(expected = "a.txt:2: was `b`, is `c`")]
    fn changed_line_is_named() {
        compare_with_blessed("a\nc\n");
    }

    #[test]
    #[should_panic(expected = "a.txt has 4 bytes, but the new text 2")]
    fn missing_lines_fail() {
        compare_with_blessed("a\n");
    }

    #[test]
    #[should_panic(expected = "b.txt belongs to no kernel")]
    fn file_without_text_fails() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b.txt"), "").unwrap();
        fs::write(folder.path().join("b.wgsl"), "").unwrap();
        compare_or_bless(folder.path(), "txt", &[], false);
    }
}
