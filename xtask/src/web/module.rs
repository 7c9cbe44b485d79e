//! Builds scry-web as WebAssembly, and writes the JavaScript of a module.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::repo;

/// The target of Rust for WebAssembly.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// How a module is built.
#[derive(Clone, Copy)]
pub(crate) struct Build {
    /// The profile of cargo.
    pub(crate) profile: &'static str,
    /// The features of scry-web, separated by commas; none of them is a default.
    pub(crate) features: &'static str,
    /// Whether it has instructions of SIMD128.
    pub(crate) simd: bool,
}

/// Everything, quick to build: for tests.
pub(crate) const TESTED: Build = Build { profile: "wasm", features: "conformance", simd: true };

/// What JavaScript loads the module.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loader {
    /// Node.js, by `require`.
    Node,
    /// A browser, as an ES module.
    Browser,
    /// A browser; the names of functions, which traps print, are removed.
    Page,
}

impl Build {
    /// Builds the module; returns its file.
    pub(crate) fn run(&self, root: &Path) -> Result<PathBuf> {
        let Self { profile, features, simd } = self;
        let feature = if *simd { "+simd128" } else { "-simd128" };
        let flags = format!("target.{TARGET}.rustflags=['-Ctarget-feature={feature}']");
        let line = format!(
            "build -q --profile {profile} -p scry-web --no-default-features --features {features} \
             --target {TARGET} --config"
        );
        repo::run(repo::cargo(root).args(line.split(' ')).arg(flags))?;
        let target = target_folder(root)?;
        Ok(target.join(TARGET).join(profile).join("scry_web.wasm"))
    }
}

/// Returns the folder in which cargo builds.
pub(crate) fn target_folder(root: &Path) -> Result<PathBuf> {
    let line = ["metadata", "--no-deps", "--format-version", "1"];
    let metadata: serde_json::Value =
        serde_json::from_str(&repo::output(repo::cargo(root).args(line))?)?;
    let target = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    Ok(target.into())
}

/// Writes `NAME.js` and `NAME_bg.wasm` of a module into a folder; returns the script.
#[cfg(feature = "wasm")]
pub(crate) fn bindgen(module: &Path, loader: Loader, folder: &Path, name: &str) -> Result<PathBuf> {
    let mut bindgen = wasm_bindgen_cli_support::Bindgen::new();
    match loader {
        Loader::Node => bindgen.nodejs(true)?,
        Loader::Browser | Loader::Page => bindgen.web(true)?.omit_default_module_path(false),
    };
    bindgen.remove_name_section(loader == Loader::Page);
    bindgen.input_path(module).out_name(name).typescript(false).generate(folder)?;
    let script = folder.join(format!("{name}.js"));
    anyhow::ensure!(script.is_file(), "wasm-bindgen did not write {}", script.display());
    Ok(script)
}

/// Not reached: the tasks start a build of this program that has the feature.
#[cfg(not(feature = "wasm"))]
pub(crate) fn bindgen(_: &Path, _: Loader, _: &Path, _: &str) -> Result<PathBuf> {
    anyhow::bail!("xtask was built without the feature `wasm`")
}
