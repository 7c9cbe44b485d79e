//! Documentation and packages as docs.rs and crates.io will build them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::repo;

/// Builds the documentation of every crate with all features. Warnings, broken links among them,
/// are errors.
pub(crate) fn document(root: &Path) -> Result<()> {
    let mut doc = repo::cargo(root);
    doc.args(["doc", "--workspace", "--no-deps", "--all-features"]);
    repo::run(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Packs every crate that will be published, and compiles each from its package alone, in the
/// order of dependency: cargo overlays the registry with those packed before. Uncommitted changes
/// are packed too.
pub(crate) fn package(root: &Path) -> Result<()> {
    if let Some(home) = cargo_home() {
        remove_overlays(&home.join("registry/src"))?;
    }
    // Of its own and empty: what an earlier run compiled would be reused for the same version.
    let target = root.join("target/packages");
    if target.exists() {
        fs::remove_dir_all(&target).with_context(|| target.display().to_string())?;
    }
    let line = "package --workspace --exclude xtask --allow-dirty --quiet --target-dir";
    repo::run(repo::cargo(root).args(line.split(' ')).arg(&target))
}

/// The folder of cargo's caches.
fn cargo_home() -> Option<PathBuf> {
    let default = || env::home_dir().map(|home| home.join(".cargo"));
    env::var_os("CARGO_HOME").map(PathBuf::from).or_else(default)
}

/// Removes the unpacked sources of earlier overlays. Cargo takes them for those of today if the
/// version is the same, and compiles a crate with the sources of yesterday's. Overlays have no host
/// before the hash in the names of their folders.
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
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
        assert!(folder.path().join("index.crates.io-1949cf8c/half-2.0.0").is_dir());
    }
}
