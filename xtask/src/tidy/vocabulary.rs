//! Words that the project avoids, with their replacements: `words.txt` and `file_names.txt`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::prose::{self, Word};
use super::{FIXTURES, Finding, Source};

/// Phrases to avoid in comments and string literals, also of shaders, and in Markdown files.
const WORDS: &str = include_str!("words.txt");
/// Names to avoid for Rust files and their folders.
const FILE_NAMES: &str = include_str!("file_names.txt");

/// Files that quote the words on purpose, or are exempt until they are removed.
const EXEMPT: [&str; 3] =
    ["docs/glossary.md", "crates/scry-ir/src/wgsl/naga/", "crates/scry-ir/src/spirv/naga/"];

/// A line of a list: the phrase, its replacement, and where it is still allowed.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'a> {
    words: Vec<&'a str>,
    replacement: &'a str,
    /// Folders or files that still contain it.
    pending: Vec<&'a str>,
}

impl Entry<'_> {
    fn applies(&self, path: &str) -> bool {
        !self.pending.iter().any(|place| path.starts_with(place))
    }
}

/// Finds violations in Rust sources and their paths, and in shaders and Markdown files.
pub(super) fn check(
    root: &Path,
    files: &[String],
    sources: &[Source],
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let (phrases, names) = (Phrases::parse(WORDS), entries(FILE_NAMES));
    for source in sources.iter().filter(|source| !is_exempt(&source.path)) {
        phrases.check(&source.path, &prose::rust_words(&source.text), findings);
        check_name(&names, &source.path, findings);
    }
    for path in files.iter().filter(|path| !is_exempt(path)) {
        let Some(words) = words_of(path) else { continue };
        let text = fs::read_to_string(root.join(path)).with_context(|| path.clone())?;
        phrases.check(path, &words(current(path, &text)), findings);
    }
    Ok(())
}

/// Returns the function that reads the words of a file; `None` for Rust, and if it is not checked.
fn words_of(path: &str) -> Option<fn(&str) -> Vec<Word>> {
    match Path::new(path).extension()?.to_str()? {
        "md" => Some(prose::markdown_words),
        // Comments and strings are those of Rust.
        "wgsl" | "cu" => Some(prose::rust_words),
        _ => None,
    }
}

fn is_exempt(path: &str) -> bool {
    let is_fixture = FIXTURES.iter().any(|fixture| path.contains(fixture));
    is_fixture || EXEMPT.iter().any(|exempt| path.starts_with(exempt))
}

/// Returns the part of a Markdown file to check: of the change log, the newest version.
fn current<'a>(path: &str, text: &'a str) -> &'a str {
    let older = text.match_indices("\n## ").nth(1).filter(|_| path == "CHANGELOG.md");
    older.map_or(text, |(end, _)| &text[..end])
}

/// Returns the lines of a list that are neither empty nor comments.
fn entries(list: &str) -> Vec<Entry<'_>> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parse = |line| {
        let mut columns = str::split(line, '|').map(str::trim);
        let mut next = || columns.next().unwrap_or_default();
        let (words, replacement, pending) = (next(), next(), next());
        let words = words.split(' ').collect();
        Entry { words, replacement, pending: pending.split_whitespace().collect() }
    };
    lines.map(parse).collect()
}

/// Phrases by their first word.
struct Phrases<'a>(BTreeMap<&'a str, Vec<Entry<'a>>>);

impl<'a> Phrases<'a> {
    fn parse(list: &'a str) -> Self {
        let mut phrases = BTreeMap::new();
        for entry in entries(list) {
            phrases.entry(entry.words[0]).or_insert_with(Vec::new).push(entry);
        }
        Self(phrases)
    }

    fn check(&self, path: &str, words: &[Word], findings: &mut Vec<Finding>) {
        for (at, word) in words.iter().enumerate() {
            let phrases = self.0.get(&*word.text).into_iter().flatten();
            for Entry { words: phrase, replacement, .. } in phrases
                .filter(|entry| entry.applies(path) && starts_with(&words[at..], &entry.words))
            {
                let what = format!("\"{}\": write {replacement}", phrase.join(" "));
                findings.push(Finding::new(path, word.line, "vocabulary", what));
            }
        }
    }
}

/// Returns whether the words start with the phrase, separated by blanks only.
fn starts_with(words: &[Word], phrase: &[&str]) -> bool {
    let Some(words) = words.get(..phrase.len()) else {
        return false;
    };
    let is_next = |(at, (word, expected)): (usize, (&Word, &&str))| {
        word.text == **expected && (at == 0 || word.adjacent)
    };
    words.iter().zip(phrase).enumerate().all(is_next)
}

/// Finds uninformative components of a path.
fn check_name(names: &[Entry<'_>], path: &str, findings: &mut Vec<Finding>) {
    let components = path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
    for part in components {
        let entry = names.iter().find(|entry| entry.words == [part] && entry.applies(path));
        if let Some(Entry { replacement, .. }) = entry {
            let what = format!("a file or folder named \"{part}\": name it {replacement}");
            findings.push(Finding::new(path, 1, "vocabulary", what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# A comment.\n\nblue moon | a full moon\nowl | bird | src/b\n";

    fn found(path: &str, words: &[Word]) -> Vec<(usize, String)> {
        let mut findings = Vec::new();
        Phrases::parse(LIST).check(path, words, &mut findings);
        findings.into_iter().map(|finding| (finding.line, finding.what)).collect()
    }

    fn lines(text: &str) -> Vec<usize> {
        found("src/a.rs", &prose::rust_words(text)).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn phrases_are_found_with_their_replacement() {
        let expected = (2, "\"blue moon\": write a full moon".to_owned());
        let words = prose::markdown_words("# A\nOnce in a Blue Moon.");
        assert_eq!(found("README.md", &words), [expected]);
    }

    #[test]
    fn phrases_found_in_comments_and_strings() {
        assert_eq!(lines("f(); // the owl\n/* owl */"), [1, 2]);
        assert_eq!(lines("//! Owl.\n\n/// An owl's eye.\nfn f() {}"), [1, 3]);
        assert_eq!(lines("f(\"blue moon\", r\"an owl\");"), [1, 1]);
    }

    #[test]
    fn identifiers_in_code_are_not_found() {
        assert_eq!(lines("fn owl(owl: Owl) { blue.moon() }"), [0; 0]);
        assert_eq!(lines("/// Sets `owl`.\nfn f() { format!(\"{owl}\") }"), [0; 0]);
    }

    #[test]
    fn phrases_are_whole_words() {
        assert_eq!(lines("// owls growl, an owl_id, blue moons, blue, moon"), [0; 0]);
    }

    #[test]
    fn phrases_go_across_line_breaks() {
        assert_eq!(lines("//! A blue\n//! moon.\nf(\"blue \\\n  moon\");"), [1, 3]);
        assert_eq!(lines("//! A blue\n\nf(); // moon"), [0; 0]);
    }

    #[test]
    fn comments_of_shaders_are_checked() {
        let root = tempfile::tempdir().unwrap();
        let files = ["a.wgsl", "b.cu", "c.txt"].map(str::to_owned);
        let text = format!("fn f() {{}}\n// {}\n", entries(WORDS)[0].words.join(" "));
        for file in &files {
            fs::write(root.path().join(file), &text).unwrap();
        }
        let mut findings = Vec::new();
        check(root.path(), &files, &[], &mut findings).unwrap();
        let found = findings.iter().map(|found| (&*found.path, found.line));
        assert_eq!(found.collect::<Vec<_>>(), [("a.wgsl", 2), ("b.cu", 2)]);
    }

    #[test]
    fn pending_entries_do_not_apply() {
        let words = prose::rust_words("// owl");
        assert_eq!(found("src/a.rs", &words).len(), 1);
        assert!(found("src/b.rs", &words).is_empty());
    }

    #[test]
    fn old_changelog_versions_are_skipped() {
        let text = "# Log\n\n## 2\n\nnew\n\n## 1\n\nold\n";
        assert_eq!(current("CHANGELOG.md", text), "# Log\n\n## 2\n\nnew\n");
        assert_eq!(current("README.md", text), text);
    }

    #[test]
    fn file_names_checked_without_extension() {
        let names = entries("misc | what it has\n");
        let found = |path| {
            let mut findings = Vec::new();
            check_name(&names, path, &mut findings);
            findings.len()
        };
        assert_eq!(
            [found("src/misc.rs"), found("src/misc/a.rs"), found("src/misc_a.rs")],
            [1, 1, 0]
        );
    }

    #[test]
    fn every_entry_has_a_replacement() {
        for entry in entries(WORDS).iter().chain(&entries(FILE_NAMES)) {
            assert!(!entry.replacement.is_empty(), "{entry:?}");
            let is_lower = |word: &&str| word.to_lowercase() == **word && !word.is_empty();
            assert!(entry.words.iter().all(is_lower), "{entry:?}");
        }
    }
}
