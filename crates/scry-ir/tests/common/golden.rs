//! Compares texts with golden files. `SCRY_BLESS=1` rewrites the files.

use std::fs;
use std::path::Path;

/// Compares `texts` with the golden files of their names in a folder. The folder must have no other
/// files with the extension.
pub fn compare_all(folder: &Path, extension: &str, texts: &[(String, String)]) {
    let bless = std::env::var_os("SCRY_BLESS").is_some_and(|v| v == "1");
    for (file, text) in texts {
        compare(&folder.join(file), text, bless);
    }
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let other = path.extension().is_none_or(|found| found != extension);
        let has_text = texts.iter().any(|(file, _)| path.ends_with(file));
        assert!(other || has_text, "{} belongs to no kernel: remove it", path.display());
    }
}

fn compare(path: &Path, text: &str, bless: bool) {
    if bless {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        return;
    }
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
    assert_eq!(blessed.len(), text.len(), "{} ends early", path.display());
}
