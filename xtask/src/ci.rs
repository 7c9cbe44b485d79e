//! `cargo xtask ci`: the checks besides `cargo test`; none needs a device.

use std::process::Command;

use anyhow::Result;

use crate::{docs, miri, repo, targets, tidy};

/// Runs the checks in order, and stops at the first that fails.
pub(crate) fn run() -> Result<()> {
    let root = repo::root();
    let cargo = |line: &str| repo::run(repo::cargo(&root).args(line.split(' ')));
    cargo("fmt --all --check")?;
    cargo("clippy --workspace --all-targets -- -D warnings")?;
    // Of the workspace, only scry-cli is compiled again.
    cargo("clippy --workspace --features scry-cli/models --all-targets -- -D warnings")?;
    tidy::run()?;
    deny(&root)?;
    docs::document(&root)?;
    docs::package(&root)?;
    targets::run()?;
    miri::run()
}

/// Checks advisories, licences, bans and sources of the dependencies, if cargo-deny is installed.
fn deny(root: &std::path::Path) -> Result<()> {
    let probe = Command::new("cargo-deny").arg("--version").output();
    if probe.is_err() {
        eprintln!("skipped: cargo-deny is not installed (`cargo install --locked cargo-deny`)");
        return Ok(());
    }
    repo::run(repo::cargo(root).args(["deny", "check"]))
}
