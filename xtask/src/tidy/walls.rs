//! Restrictions of the crates: their dependencies, and unsafe code.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Finding;
use super::source::{Source, is_word, line};
use crate::repo;

/// Ranks of the crates: each may only depend on crates of a lower rank.
const RANKS: [(&str, u32); 14] = [
    ("scry-gpu-derive", 0),
    ("scry-fuzz", 0),
    ("scry-ir", 0),
    ("scry-ptx", 1),
    ("scry-cpu", 1),
    ("scry-gpu", 2),
    ("scry-conformance", 3),
    ("scry-kernels", 3),
    ("scry-tensor", 4),
    ("scry-models", 5),
    ("scry-cli", 6),
    ("scry-web", 6),
    ("xtask", 7),
    // The highest rank, so that other crates can use it only in tests.
    ("scry-test-support", 7),
];

/// Crates without access to devices.
const WITHOUT_DEVICE: [&str; 4] = ["scry-fuzz", "scry-ir", "scry-ptx", "scry-cpu"];

/// Crates that access devices and system libraries.
const DEVICE_CRATES: [&str; 10] = [
    "ash",
    "cudarc",
    "cust",
    "d3d12",
    "gpu-allocator",
    "libc",
    "libloading",
    "metal",
    "vulkano",
    "wgpu",
];

/// Crates for file formats and tokenizers, and the crate that may depend on them.
const FORMAT_CRATES: [&str; 5] =
    ["memmap2", "minijinja", "minijinja-contrib", "safetensors", "tokenizers"];
const WITH_FORMATS: &str = "scry-models";

/// Crates that forbid unsafe code.
const WITHOUT_UNSAFE: [&str; 6] =
    ["scry-conformance", "scry-fuzz", "scry-ir", "scry-ptx", "scry-tensor", "scry-test-support"];

/// Folders whose unsafe code is in few files.
const UNSAFE_FILES: [(&str, &[&str]); 2] = [
    ("crates/scry-kernels/src/", &["native.rs", "host_gemm/mod.rs"]),
    ("crates/scry-models/src/", &["weights/mapped.rs"]),
];

const FORBID: &str = "#![forbid(unsafe_code)]";

/// Finds all violations.
pub(super) fn check(root: &Path, sources: &[Source], findings: &mut Vec<Finding>) -> Result<()> {
    check_sources(sources, findings);
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let metadata = repo::output(repo::cargo(root).args(arguments))?;
    let metadata = serde_json::from_str(&metadata).context("cargo metadata did not print JSON")?;
    check_dependencies(&metadata, findings);
    Ok(())
}

fn check_sources(sources: &[Source], findings: &mut Vec<Finding>) {
    for source in sources {
        let is_lib = |name: &&str| source.path == format!("crates/{name}/src/lib.rs");
        let forbids = || source.text.lines().any(|line| line.trim() == FORBID);
        if WITHOUT_UNSAFE.iter().any(is_lib) && !forbids() {
            let what = format!("the crate must forbid unsafe code with `{FORBID}`");
            findings.push(Finding::new(&source.path, 1, "walls", what));
        }
        check_unsafe_file(source, findings);
    }
}

/// Finds unsafe code outside of the files that are for it.
fn check_unsafe_file(source: &Source, findings: &mut Vec<Finding>) {
    let in_folder = |(folder, files)| Some((folder, files, source.path.strip_prefix(folder)?));
    let found = UNSAFE_FILES.into_iter().find_map(in_folder);
    let Some((folder, files, _)) = found.filter(|(_, files, path)| !files.contains(path)) else {
        return;
    };
    source.for_each(|tokens| {
        if is_word(&tokens[0], "unsafe") {
            let what = format!("unsafe code of {folder} belongs in {}", files.join(" or "));
            findings.push(Finding::new(&source.path, line(&tokens[0]), "walls", what));
        }
    });
}

/// Finds forbidden dependencies in the output of `cargo metadata`.
fn check_dependencies(metadata: &Value, findings: &mut Vec<Finding>) {
    for package in array(metadata, "packages") {
        let name = text(package, "name");
        let manifest = format!("{}Cargo.toml", folder(name));
        let mut report = |what| findings.push(Finding::new(&manifest, 1, "walls", what));
        let Some(rank) = rank(name) else {
            report(format!("{name} has no rank: add it to RANKS in xtask/src/tidy/walls.rs"));
            continue;
        };
        let counts = |dependency: &&Value| text(dependency, "kind") != "dev";
        for dependency in array(package, "dependencies").filter(counts) {
            let other = text(dependency, "name");
            if self::rank(other).is_some_and(|other| other >= rank) {
                report(format!("{name} may not depend on {other}: its rank is not lower"));
            }
            if WITHOUT_DEVICE.contains(&name) && DEVICE_CRATES.contains(&other) {
                report(format!("{name} must not access devices, but depends on {other}"));
            }
            if FORMAT_CRATES.contains(&other) && name != WITH_FORMATS {
                report(format!("{other} is a dependency of {WITH_FORMATS} alone, not of {name}"));
            }
        }
    }
}

fn rank(name: &str) -> Option<u32> {
    RANKS.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, rank)| *rank)
}

fn folder(name: &str) -> String {
    if name == "xtask" { "xtask/".to_owned() } else { format!("crates/{name}/") }
}

fn array<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::violations;
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        violations(check_sources, path, text)
    }

    fn dependencies(of: &str, on: &Value) -> Vec<String> {
        let metadata = json!({ "packages": [{ "name": of, "dependencies": [on] }] });
        let mut findings = Vec::new();
        check_dependencies(&metadata, &mut findings);
        findings.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn missing_forbid_unsafe_is_found() {
        let path = "crates/scry-ir/src/lib.rs";
        assert_eq!(found(path, "//! Doc.\n"), [("walls", 1)]);
        assert_eq!(found(path, "//! Doc.\n#![forbid(unsafe_code)]\n"), []);
        assert_eq!(found("crates/scry-gpu/src/lib.rs", "//! Doc.\n"), []);
    }

    #[test]
    fn unsafe_code_in_other_files_is_found() {
        let text = "//! Doc: unsafe.\nfn f() {\n    unsafe { g() } // unsafe\n}\n";
        assert_eq!(found("crates/scry-kernels/src/ops/sort.rs", text), [("walls", 3)]);
        assert_eq!(found("crates/scry-kernels/src/native.rs", text), []);
        assert_eq!(found("crates/scry-kernels/src/host_gemm/mod.rs", text), []);
        assert_eq!(found("crates/scry-kernels/src/ops/native.rs", text), [("walls", 3)]);
        assert_eq!(found("crates/scry-kernels/tests/cuda/main.rs", text), []);
        assert_eq!(found("crates/scry-gpu/src/lib.rs", text), []);
    }

    #[test]
    fn dependencies_on_higher_ranks_are_found() {
        let on_gpu = json!({ "name": "scry-gpu", "kind": null });
        assert_eq!(dependencies("scry-ir", &on_gpu).len(), 1);
        assert_eq!(dependencies("scry-cli", &on_gpu), [""; 0]);
        let for_tests = json!({ "name": "scry-gpu", "kind": "dev" });
        assert_eq!(dependencies("scry-ir", &for_tests), [""; 0]);
    }

    #[test]
    fn test_support_outside_of_tests_is_found() {
        for name in ["scry-cli", "xtask"] {
            let linked = json!({ "name": "scry-test-support", "kind": null });
            assert_eq!(dependencies(name, &linked).len(), 1);
            let for_tests = json!({ "name": "scry-test-support", "kind": "dev" });
            assert_eq!(dependencies(name, &for_tests), [""; 0]);
        }
    }

    #[test]
    fn device_dependencies_are_found() {
        let ash = json!({ "name": "ash", "kind": null });
        assert_eq!(dependencies("scry-ir", &ash).len(), 1);
        assert_eq!(dependencies("scry-gpu", &ash), [""; 0]);
    }

    #[test]
    fn format_dependencies_elsewhere_are_found() {
        let safetensors = json!({ "name": "safetensors", "kind": null });
        assert_eq!(dependencies("scry-cli", &safetensors).len(), 1);
        assert_eq!(dependencies("scry-models", &safetensors), [""; 0]);
    }

    #[test]
    fn crates_without_rank_are_found() {
        assert!(dependencies("scry-new", &json!({ "name": "log" }))[0].contains("RANKS"));
    }
}
