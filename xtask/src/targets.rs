//! `cargo xtask targets`: type-checks the crates for systems other than this one.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::repo;

/// A target, and the arguments of `cargo check` for it. Apple's systems and WebAssembly have wgpu
/// without the feature. In builds for WebAssembly the default features CUDA and Vulkan add nothing.
const TARGETS: [(&str, &str); 4] = [
    ("aarch64-unknown-linux-gnu", "-p scry-gpu"),
    ("x86_64-pc-windows-msvc", "-p scry-gpu --features wgpu"),
    ("aarch64-apple-darwin", "-p scry-gpu"),
    ("wasm32-unknown-unknown", "-p scry-tensor -p scry-kernels -p scry-cpu"),
];

/// Checks the crates for each target whose standard library is installed.
pub(crate) fn run() -> Result<()> {
    let root = repo::root();
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
    fn installed_targets_are_found() {
        let host = repo::output(Command::new("rustc").arg("-vV")).unwrap();
        let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
        assert!(is_installed(host).unwrap());
        assert!(!is_installed("wasm64-unknown-unknown").unwrap());
    }
}
