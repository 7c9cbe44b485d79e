//! `cargo xtask wasm`: builds scry-web for WebAssembly and runs the conformance suite in Node.js.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::web::module::{Build, Loader, TARGET, TESTED, bindgen, target_folder};
use crate::{repo, targets};

/// Builds the module, with instructions of SIMD128 unless `simd` is false, and runs its tests.
pub(crate) fn run(simd: bool) -> Result<()> {
    if !has_node() {
        eprintln!("skipped: WebAssembly: Node.js 18 or newer is not installed (`node --version`)");
        return Ok(());
    }
    if !targets::is_installed(TARGET)? {
        eprintln!("skipped: WebAssembly: {TARGET} is not installed (`rustup target add {TARGET}`)");
        return Ok(());
    }
    let root = repo::root();
    if !cfg!(feature = "wasm") {
        // The tool that writes the module's JavaScript is not part of other tasks.
        let line = "run -q -p xtask --features wasm -- wasm";
        let simd = if simd { None } else { Some("--no-simd") };
        return repo::run(repo::cargo(&root).args(line.split(' ')).args(simd));
    }
    let module = Build { simd, ..TESTED }.run(&root)?;
    let folder = module.with_file_name("scry_web");
    let module = bindgen(&module, Loader::Node, &folder, "scry_web")?;
    let native = native_cases(&root)?;
    let script = root.join("crates/scry-web/tests/node.js");
    repo::run(Command::new("node").arg(script).arg(module).arg(native))
}

/// Returns whether Node.js is installed, in a version that has all that the script uses.
fn has_node() -> bool {
    let version = Command::new("node").arg("--version").output();
    version.is_ok_and(|output| {
        let text = String::from_utf8_lossy(&output.stdout);
        let major = text.trim().strip_prefix('v').and_then(|text| text.split('.').next());
        major.and_then(|major| major.parse().ok()).is_some_and(|major: u32| major >= 18)
    })
}

/// Returns the number of cases of the conformance suite on the CPU device of this machine.
pub(crate) fn native_cases(root: &Path) -> Result<String> {
    Ok(repo::output(&mut Command::new(native_example(root, "count")?))?.trim().to_owned())
}

/// Builds an example for this machine; returns its file. `cargo test --workspace` builds the same,
/// with the same features.
pub(crate) fn native_example(root: &Path, name: &str) -> Result<PathBuf> {
    let line = ["build", "-q", "--workspace", "--example", name];
    repo::run(repo::cargo(root).args(line))?;
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    Ok(target_folder(root)?.join("debug/examples").join(file))
}
