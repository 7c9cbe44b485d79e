//! Documentation and packages, built as on docs.rs and crates.io.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::repo;

/// Builds the documentation of every crate with all features. Warnings, including broken links, are
/// errors.
pub(crate) fn document(root: &Path) -> Result<()> {
    let mut doc = repo::cargo(root);
    doc.args(["doc", "--workspace", "--no-deps", "--all-features"]);
    repo::run(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Packages every published crate, and compiles each from its package only, in dependency order:
/// cargo overlays the registry with the crates packaged before. Uncommitted changes are included.
pub(crate) fn package(root: &Path) -> Result<()> {
    if let Some(home) = cargo_home() {
        remove_overlays(&home.join("registry/src"))?;
    }
    // A separate, empty folder: cargo would reuse crates compiled by an earlier run for the same
    // version.
    let target = root.join("target/packages");
    if target.exists() {
        fs::remove_dir_all(&target).with_context(|| target.display().to_string())?;
    }
    let line = "package --workspace --exclude xtask --exclude scry-conformance --exclude scry-web \
                --exclude scry-test-support --allow-dirty --quiet --target-dir";
    repo::run(repo::cargo(root).args(line.split(' ')).arg(&target))
}

/// Returns the folder of cargo's caches.
fn cargo_home() -> Option<PathBuf> {
    let default = || env::home_dir().map(|home| home.join(".cargo"));
    env::var_os("CARGO_HOME").map(PathBuf::from).or_else(default)
}

/// Removes the unpacked sources of earlier overlays, which cargo would reuse for the same version.
/// The folder names of overlays have no host before the hash.
fn remove_overlays(sources: &Path) -> Result<()> {
    let Ok(entries) = fs::read_dir(sources) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.starts_with('-')) {
            fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlays_are_removed_registries_stay() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["-22c3805da5a543b4/scry-ir-0.2.0", "index.crates.io-1949cf8c/half-2.0.0"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        remove_overlays(folder.path()).unwrap();
        remove_overlays(&folder.path().join("absent")).unwrap();
        let remaining: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(remaining.len(), 1);
        assert!(folder.path().join("index.crates.io-1949cf8c/half-2.0.0").is_dir());
    }
}
