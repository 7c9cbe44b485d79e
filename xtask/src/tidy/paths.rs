//! Paths in links and code of Markdown files must exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{FIXTURES, Finding};

/// A name without a folder is considered a file of the repository if it has one of these
/// extensions.
const EXTENSIONS: [&str; 5] = [".rs", ".md", ".toml", ".wgsl", ".sh"];

/// Characters that no path of the repository contains, to exclude patterns and placeholders.
const FOREIGN: &str = "<>{}()[]$\"'`|&;…\\";

/// Finds paths in the Markdown files among `files` that do not exist.
pub(super) fn check(root: &Path, files: &[String], findings: &mut Vec<Finding>) -> Result<()> {
    let tree = Tree::new(files);
    let is_document = |path: &&String| {
        path.ends_with(".md") && !FIXTURES.iter().any(|fixture| path.contains(fixture))
    };
    for path in files.iter().filter(is_document) {
        let text = fs::read_to_string(root.join(path)).with_context(|| path.clone())?;
        check_document(&tree, path, &text, findings);
    }
    Ok(())
}

/// The files and folders of the repository.
struct Tree {
    /// Paths with a leading `/`, and a trailing one for folders, to match whole components.
    paths: BTreeSet<String>,
}

impl Tree {
    fn new(files: &[String]) -> Self {
        let mut paths = BTreeSet::new();
        for file in files {
            let file = format!("/{file}");
            let folders = file.match_indices('/').map(|(end, _)| file[..=end].to_owned());
            paths.extend(folders);
            paths.insert(file);
        }
        Self { paths }
    }

    /// Returns whether this file or folder exists.
    fn has(&self, path: &str) -> bool {
        let path = format!("/{path}");
        self.paths.contains(&path) || self.paths.contains(&format!("{path}/"))
    }

    /// Returns whether any path ends in these components; `*` matches a part of one.
    fn has_ending(&self, name: &str) -> bool {
        let wanted: Vec<&str> = name.trim_matches('/').rsplit('/').collect();
        self.paths.iter().any(|path| {
            let is_folder = path.ends_with('/');
            let mut components = path.trim_matches('/').rsplit('/');
            let matching =
                |want: &&str| components.next().is_some_and(|have| matches_pattern(want, have));
            (is_folder || !name.ends_with('/')) && wanted.iter().all(matching)
        })
    }
}

/// Returns whether a path component matches a pattern with at most one `*`.
fn matches_pattern(pattern: &str, component: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => {
            component.len() >= start.len() + end.len()
                && component.starts_with(start)
                && component.ends_with(end)
        }
        None => pattern == component,
    }
}

fn check_document(tree: &Tree, path: &str, text: &str, findings: &mut Vec<Finding>) {
    let mut in_fence = false;
    for (i, line) in text.lines().enumerate() {
        let mut missing = |name: &str| {
            let what = format!("`{name}` is neither a file nor a folder of the repository");
            findings.push(Finding::new(path, i + 1, "paths", what));
        };
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if in_fence || line.starts_with("    ") {
            absent_words(tree, line).for_each(&mut missing);
        } else {
            for span in line.split('`').skip(1).step_by(2) {
                absent_words(tree, span).for_each(&mut missing);
                absent_name(tree, span).into_iter().for_each(&mut missing);
            }
            absent_links(tree, path, line).for_each(&mut missing);
        }
    }
}

/// Returns the words of a command that start with a top-level folder of the repository, but are no
/// existing path.
fn absent_words<'a>(tree: &'a Tree, code: &'a str) -> impl Iterator<Item = &'a str> {
    let words = code.split([' ', '=', ',', '"', '\'', '(', ')']);
    words.map(|word| word.trim_end_matches(['.', ':', ';'])).filter(|word| {
        let folder = word.split_once('/').map_or("", |(folder, _)| folder);
        let in_tree = !folder.is_empty() && tree.has(folder) && !word.contains(is_foreign);
        in_tree && !tree.has(word.trim_end_matches('/')) && !tree.has_ending(word)
    })
}

/// Returns a code span that is one word, looks like a path, and does not exist.
fn absent_name<'a>(tree: &Tree, span: &'a str) -> Option<&'a str> {
    let below_root = span.split_once('/').is_some_and(|(folder, _)| tree.has(folder));
    let looks_like_path = EXTENSIONS.iter().any(|extension| span.ends_with(extension))
        || (span.ends_with('/') && !span.starts_with("target/"));
    let is_path = looks_like_path
        && !below_root
        && !EXTENSIONS.contains(&span)
        && !span.starts_with(['/', '~', '-'])
        && !span.contains(is_foreign)
        && !span.contains(' ')
        && !span.contains("//");
    (is_path && !tree.has_ending(span)).then_some(span)
}

fn is_foreign(c: char) -> bool {
    FOREIGN.contains(c)
}

/// Returns the targets of links of a line that are paths and do not exist.
fn absent_links<'a>(tree: &'a Tree, path: &'a str, line: &'a str) -> impl Iterator<Item = &'a str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '#']).next());
    targets.filter(move |target| {
        let is_path = !target.is_empty() && !target.contains("://") && !target.contains("mailto:");
        is_path && !resolve(path, target).is_some_and(|resolved| tree.has(&resolved))
    })
}

/// Returns a link's target, relative to the root; `None` if it is outside of the repository.
fn resolve(document: &str, target: &str) -> Option<String> {
    let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
    let start = if target.starts_with('/') { "" } else { folder };
    let mut components: Vec<&str> = start.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(components.pop()?),
            name => components.push(name),
        }
    }
    Some(components.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<usize> {
        let files = ["README.md", "docs/log.md", "crates/a/src/backend/mod.rs", ".ci/run"];
        let tree = Tree::new(&files.map(str::to_owned));
        let mut findings = Vec::new();
        check_document(&tree, "docs/log.md", text, &mut findings);
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn missing_files_are_found() {
        for gone in [
            "see `crates/a/src/gone.rs`",
            "see `gone.rs` there",
            "see `backend/gone.rs`",
            "see `gone/`",
            "see `docs/gone.bin`",
            "run `cargo run docs/gone.bin --now`",
            "see `gone/*.rs`",
            "see [the log](gone.md#part)",
            "see [the log](../../README.md)",
            "```\ncargo run crates/a/gone.png\n```",
            "    cargo run --in x=crates/a/gone.png",
        ] {
            assert_eq!(found(gone).len(), 1, "{gone}");
        }
    }

    #[test]
    fn existing_files_and_non_paths_pass() {
        for good in [
            "see `crates/a/src/backend/mod.rs`, `backend/mod.rs`, `mod.rs`, `backend/`, `.ci/run`",
            "see `crates/a`, `crates/*/src`, `backend/*.rs`",
            "files ending in `.rs`, `and/or`, `https://a.example/b.md`, `crates/<name>/x.rs`",
            "see [log](log.md), [top](../README.md#x), [web](https://a.example/x.md), [here](#x)",
            "the paths gone.rs and crates/gone.rs are not set as code",
            "```\nlet a = b/c; // d.rs\n```",
            "write `edges.png`, `target/`",
        ] {
            assert_eq!(found(good), [0; 0], "{good}");
        }
    }

    #[test]
    fn line_number_is_reported() {
        assert_eq!(found("fine\n\nsee `gone.rs`\n"), [3]);
    }
}
