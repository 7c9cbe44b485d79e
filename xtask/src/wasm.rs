//! `cargo xtask wasm`: builds scry-web for WebAssembly and runs the conformance suite in Node.js.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{repo, targets};

const TARGET: &str = "wasm32-unknown-unknown";

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
    let module = bindgen(&build(&root, simd)?)?;
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

/// Builds scry-web; returns the module.
fn build(root: &Path, simd: bool) -> Result<PathBuf> {
    let feature = if simd { "+simd128" } else { "-simd128" };
    let flags = format!("target.{TARGET}.rustflags=['-Ctarget-feature={feature}']");
    let line = format!("build -q --profile wasm -p scry-web --target {TARGET} --config");
    repo::run(repo::cargo(root).args(line.split(' ')).arg(flags))?;
    let metadata =
        repo::output(repo::cargo(root).args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let target = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    Ok(Path::new(target).join(TARGET).join("wasm/scry_web.wasm"))
}

/// Returns the number of cases of the conformance suite on the CPU device of this machine.
fn native_cases(root: &Path) -> Result<String> {
    let line = "run -q -p scry-conformance --example count";
    Ok(repo::output(repo::cargo(root).args(line.split(' ')))?.trim().to_owned())
}

/// Writes the JavaScript of a module beside it; returns the folder.
#[cfg(feature = "wasm")]
fn bindgen(module: &Path) -> Result<PathBuf> {
    let folder = module.with_file_name("scry_web");
    let mut bindgen = wasm_bindgen_cli_support::Bindgen::new();
    bindgen.input_path(module).nodejs(true)?.typescript(false).generate(&folder)?;
    let script = folder.join("scry_web.js");
    ensure!(script.is_file(), "wasm-bindgen did not write {}", script.display());
    Ok(script)
}

/// Not reached: [`run`] starts a build of this task that has the feature.
#[cfg(not(feature = "wasm"))]
fn bindgen(_: &Path) -> Result<PathBuf> {
    ensure!(cfg!(feature = "wasm"), "xtask was built without the feature `wasm`");
    Ok(PathBuf::new())
}
