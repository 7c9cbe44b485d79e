//! Documentation and packages as docs.rs and crates.io will build them.

use std::path::Path;

use anyhow::Result;

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
    let line = "package --workspace --exclude xtask --allow-dirty --quiet";
    repo::run(repo::cargo(root).args(line.split(' ')))
}
