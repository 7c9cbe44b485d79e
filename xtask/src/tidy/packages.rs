//! Metadata of published crates: manifests and READMEs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Finding;
use crate::repo;

/// The README of the repository; those of the crates are beside their manifests.
const MAIN_README: &str = "README.md";

/// Maximum number of keywords, and of categories, of a crate on crates.io.
const MAX_KEYWORDS: usize = 5;

/// Finds crates without the metadata that crates.io and docs.rs show, and code of the main README
/// that no documentation test compiles.
pub(super) fn check(root: &Path, files: &[String], findings: &mut Vec<Finding>) -> Result<()> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let metadata = repo::output(repo::cargo(root).args(arguments))?;
    let metadata: Value =
        serde_json::from_str(&metadata).context("cargo metadata did not print JSON")?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    for package in packages.filter(|package| package["publish"].is_null()) {
        check_package(package, files, findings);
    }
    let readme = fs::read_to_string(root.join(MAIN_README)).context(MAIN_README)?;
    let mut tested = BTreeSet::new();
    for file in files.iter().filter(|file| file.starts_with("crates/") && file.ends_with(".md")) {
        let text = fs::read_to_string(root.join(file)).with_context(|| file.clone())?;
        tested.extend(rust_blocks(&text).map(|(_, code)| code.to_owned()));
    }
    check_main_readme(&readme, &tested, findings);
    Ok(())
}

fn check_package(package: &Value, files: &[String], findings: &mut Vec<Finding>) {
    let name = package["name"].as_str().unwrap_or_default();
    let manifest = format!("crates/{name}/Cargo.toml");
    let mut report = |what: &str| {
        findings.push(Finding::new(&manifest, 1, "packages", format!("{name} {what}")))
    };
    for key in ["description", "license", "rust_version"] {
        if package[key].as_str().is_none_or(str::is_empty) {
            report(&format!("has no `{}` in its manifest", key.replace('_', "-")));
        }
    }
    for key in ["keywords", "categories"] {
        let count = package[key].as_array().map_or(0, Vec::len);
        if !(1..=MAX_KEYWORDS).contains(&count) {
            report(&format!("has {count} {key}: 1 to {MAX_KEYWORDS} are needed"));
        }
    }
    if package["metadata"]["docs"]["rs"]["all-features"] != Value::Bool(true) {
        report("has no `all-features = true` for docs.rs");
    }
    for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        if !files.contains(&format!("crates/{name}/{file}")) {
            report(&format!("has no {file} in its folder"));
        }
    }
}

/// Code of the README is compiled if a Markdown file of a crate contains it too, since those are
/// documentation tests.
fn check_main_readme(readme: &str, tested: &BTreeSet<String>, findings: &mut Vec<Finding>) {
    for (line, _) in rust_blocks(readme).filter(|(_, code)| !tested.contains(*code)) {
        let what = "no Markdown file of a crate has this Rust code, so no test compiles it";
        findings.push(Finding::new(MAIN_README, line, "packages", what));
    }
}

/// Returns the blocks of Rust code of a Markdown text, each with the line of its fence.
fn rust_blocks(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let fences = text.match_indices("```rust");
    fences.filter_map(|(start, _)| {
        let line = text[..start].matches('\n').count() + 1;
        let code = &text[start + text[start..].find('\n')? + 1..];
        Some((line, &code[..code.find("```")?]))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complete_package() -> Value {
        json!({
            "name": "a", "description": "Adds.", "license": "MIT", "rust_version": "1.88",
            "keywords": ["gpu"], "categories": ["science"],
            "metadata": { "docs": { "rs": { "all-features": true } } },
        })
    }

    fn found(package: &Value, files: &[&str]) -> Vec<String> {
        let files: Vec<String> = files.iter().map(|file| format!("crates/a/{file}")).collect();
        let mut findings = Vec::new();
        check_package(package, &files, &mut findings);
        findings.into_iter().map(|finding| finding.what).collect()
    }

    const FILES: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

    #[test]
    fn complete_package_passes() {
        assert_eq!(found(&complete_package(), &FILES), [""; 0]);
    }

    #[test]
    fn missing_metadata_is_found() {
        assert_eq!(found(&complete_package(), &FILES[1..]), ["a has no README.md in its folder"]);
        for key in ["description", "rust_version", "keywords", "categories", "metadata"] {
            let mut package = complete_package();
            package[key] = Value::Null;
            assert_eq!(found(&package, &FILES).len(), 1, "{key}");
        }
    }

    #[test]
    fn uncompiled_code_is_found() {
        let readme = "# A\n\n```rust\nlet a = 1;\n```\n\n```sh\nls\n```\n";
        let mut findings = Vec::new();
        check_main_readme(readme, &BTreeSet::from(["let a = 1;\n".to_owned()]), &mut findings);
        assert_eq!(findings, []);
        check_main_readme(readme, &BTreeSet::new(), &mut findings);
        assert_eq!((findings.len(), findings[0].line), (1, 3));
    }
}
