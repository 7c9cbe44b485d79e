//! `cargo xtask targets`: type-checks the crates for systems other than this one.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::repo;

/// A target, and the arguments of `cargo check` for it. Apple's systems and WebAssembly have wgpu
/// without the feature. In builds for WebAssembly the default features CUDA and Vulkan add nothing.
const TARGETS: [(&str, &str); 4] = [
    ("aarch64-unknown-linux-gnu", "-p scry-gpu"),
    ("x86_64-pc-windows-msvc", "-p scry-gpu --features wgpu"),
    ("aarch64-apple-darwin", "-p scry-gpu"),
    ("wasm32-unknown-unknown", "-p scry-tensor -p scry-kernels -p scry-cpu"),
];

/// Targets whose default builds have no crate of wgpu or of browsers.
const NATIVE: [&str; 2] = ["x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc"];

/// Crates that only builds with the backend wgpu have.
const WGPU_CRATES: [&str; 4] = ["wgpu", "wgpu-core", "wgpu-hal", "wasm-bindgen"];

/// Checks the crates for each target whose standard library is installed, and the crates of default
/// builds.
pub(crate) fn run() -> Result<()> {
    let root = repo::root();
    for target in NATIVE {
        let line = format!("tree -p scry-gpu -e normal,build --prefix none --target {target}");
        let tree = repo::output(repo::cargo(&root).args(line.split(' ')))?;
        let found = wgpu_crate(&tree);
        ensure!(found.is_none(), "the default build of scry-gpu for {target} has {found:?}");
    }
    for (target, packages) in TARGETS {
        if !is_installed(target)? {
            eprintln!("skipped: {target} is not installed (`rustup target add {target}`)");
            continue;
        }
        let line = format!("check -q --target {target} {packages}");
        repo::run(repo::cargo(&root).args(line.split(' ')))?;
    }
    Ok(())
}

/// Returns a crate of `cargo tree`'s list that only builds with the backend wgpu have.
fn wgpu_crate(tree: &str) -> Option<&str> {
    let mut names = tree.lines().filter_map(|line| line.split(' ').next());
    names.find(|name| WGPU_CRATES.contains(name))
}

/// Returns whether the standard library of a target is installed.
pub(crate) fn is_installed(target: &str) -> Result<bool> {
    let mut rustc = Command::new("rustc");
    let folder = repo::output(rustc.args(["--print", "target-libdir", "--target", target]))?;
    Ok(Path::new(folder.trim()).is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_wgpu_are_found() {
        let tree = "scry-gpu v0.2.0 (/x/crates/scry-gpu)\nnaga v30.0.1\n";
        assert_eq!(wgpu_crate(tree), None);
        assert_eq!(wgpu_crate(&format!("{tree}wgpu v30.0.1\n")), Some("wgpu"));
    }

    #[test]
    fn installed_targets_are_found() {
        let host = repo::output(Command::new("rustc").arg("-vV")).unwrap();
        let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
        assert!(is_installed(host).unwrap());
        assert!(!is_installed("wasm64-unknown-unknown").unwrap());
    }
}
