//! `cargo xtask tidy`: checks the rules of the sources; reports each violation by file and line.

mod cycles;
mod examples;
mod faults;
mod imports;
mod modules;
mod packages;
mod paths;
mod performance;
mod prose;
mod rules;
mod shape;
mod source;
mod vocabulary;
mod walls;

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::repo;
pub(crate) use shape::{file_spread, function_spread};
pub(crate) use source::Source;

/// An exception from a rule.
struct Exception {
    /// File, relative to the root of the repository.
    path: &'static str,
    /// Name of the rule, as printed in brackets.
    rule: &'static str,
    /// Why the rule does not serve its purpose here.
    reason: &'static str,
}

/// All exceptions. An unused exception is itself a violation.
const EXCEPTIONS: &[Exception] = &[];

/// Files that are test inputs rather than code of the project: programs that must not compile.
const FIXTURES: [&str; 3] = ["/tests/ui/", "/tests/compile-fail/", "/tests/fixtures/"];

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    /// File, relative to the root of the repository.
    path: String,
    /// Line, from 1; also 1 for violations of the whole file.
    line: usize,
    /// Name of the rule.
    rule: &'static str,
    /// The violation, and the limit.
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, rule: &'static str, what: impl Into<String>) -> Self {
        let (path, what) = (path.to_owned(), what.into());
        Self { path, line, rule, what }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, rule, what } = self;
        write!(f, "{path}:{line}: {what} [{rule}]")
    }
}

/// Checks the repository; returns an error if anything is found.
pub(crate) fn run() -> Result<()> {
    let root = repo::root();
    let files = repo::files(&root)?;
    let (sources, mut findings) = sources(&root, &files)?;
    shape::check(&sources, &mut findings);
    rules::check(&sources, &mut findings);
    cycles::check(&sources, &mut findings);
    modules::check(&files, &sources, &mut findings);
    paths::check(&root, &files, &mut findings)?;
    examples::check(&sources, &mut findings);
    packages::check(&root, &files, &mut findings)?;
    faults::check(&root, &sources, &mut findings)?;
    performance::check(&root, &mut findings)?;
    vocabulary::check(&root, &files, &sources, &mut findings)?;
    walls::check(&root, &sources, &mut findings)?;
    let mut findings = excuse(findings, EXCEPTIONS);
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {}", shape::summary(&sources));
    match findings.len() {
        0 => Ok(()),
        1 => bail!("tidy found a violation"),
        n => bail!("tidy found {n} violations"),
    }
}

/// Reads every Rust file that is code of the project.
pub(crate) fn project_sources(root: &Path) -> Result<Vec<Source>> {
    Ok(sources(root, &repo::files(root)?)?.0)
}

fn sources(root: &Path, files: &[String]) -> Result<(Vec<Source>, Vec<Finding>)> {
    let (mut sources, mut findings) = (Vec::new(), Vec::new());
    for path in files.iter().filter(|path| is_project_code(path)) {
        let text = fs::read_to_string(root.join(path)).with_context(|| path.clone())?;
        match Source::parse(path, text) {
            Ok(source) => sources.push(source),
            Err(finding) => findings.push(finding),
        }
    }
    Ok((sources, findings))
}

fn is_project_code(path: &str) -> bool {
    path.ends_with(".rs") && !FIXTURES.iter().any(|fixture| path.contains(fixture))
}

/// Removes the findings that have an exception, and adds one for each unused exception.
fn excuse(mut findings: Vec<Finding>, exceptions: &[Exception]) -> Vec<Finding> {
    for Exception { path, rule, reason } in exceptions {
        let before = findings.len();
        findings.retain(|finding| finding.path != *path || finding.rule != *rule);
        if findings.len() == before {
            let what = format!("the exception for {path} ({reason}) excuses nothing; drop it");
            findings.push(Finding::new("xtask/src/tidy/mod.rs", 1, rule, what));
        }
    }
    findings
}

/// Returns the rules that a file with this path and text violates, with the lines.
#[cfg(test)]
fn violations(
    check: impl Fn(&[Source], &mut Vec<Finding>),
    path: &str,
    text: &str,
) -> Vec<(&'static str, usize)> {
    let source = Source::parse(path, text.to_owned()).unwrap();
    let mut findings = Vec::new();
    check(&[source], &mut findings);
    findings.iter().map(|finding| (finding.rule, finding.line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exception(path: &'static str) -> Exception {
        let (rule, reason) = ("width", "a table reads better in one line");
        Exception { path, rule, reason }
    }

    #[test]
    fn exceptions_cover_one_file_and_rule() {
        let wide = Finding::new("a.rs", 3, "width", "too wide");
        let other_rule = Finding::new("a.rs", 3, "unwrap", "an unwrap");
        let other_file = Finding::new("b.rs", 3, "width", "too wide");
        let all = vec![wide, other_rule.clone(), other_file.clone()];
        assert_eq!(excuse(all, &[exception("a.rs")]), [other_rule, other_file]);
    }

    #[test]
    fn unused_exceptions_are_found() {
        let findings = excuse(Vec::new(), &[exception("gone.rs")]);
        assert!(findings[0].what.contains("excuses nothing"), "{findings:?}");
    }

    #[test]
    fn fixtures_are_not_project_code() {
        assert!(is_project_code("crates/scry-gpu/tests/ui.rs"));
        assert!(!is_project_code("crates/scry-gpu/tests/ui/not_repr_c.rs"));
        assert!(!is_project_code("README.md"));
    }

    #[test]
    fn unparsable_files_are_found() {
        let finding = Source::parse("a.rs", "//! Doc.\nfn f( {}".to_owned()).unwrap_err();
        assert_eq!((finding.rule, finding.line), ("syntax", 2));
    }
}
