//! Tests that the uniformity analysis accepts every kernel of the repository that has barriers,
//! uniform loads, matrices or subgroup sums: of the corpus, the examples, scry-gpu and the
//! benchmarks.

use std::fs;
use std::path::{Path, PathBuf};

use scry_ir::{Options, Outline, Program};

/// Collects the WGSL sources below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "wgsl") {
            found.push(path);
        }
    }
}

/// Returns a kernel's source. Parts from which scry-gpu assembles a kernel are completed by others
/// of the same folder.
fn complete_source(path: &Path) -> String {
    let mut source = fs::read_to_string(path).expect("it can be read");
    if source.contains("@group") || !path.components().any(|part| part.as_os_str() == "scry-gpu") {
        return source;
    }
    let read = |part: &str| fs::read_to_string(path.with_file_name(part));
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if let Ok(bindings) = read(&format!("{stem}_io_scalar.wgsl")) {
        return bindings + &source;
    }
    for part in ["io_scalar.wgsl", "sum.wgsl", "one.wgsl"] {
        source.insert_str(0, &read(part).unwrap_or_default());
    }
    source
}

#[test]
fn repository_kernels_are_accepted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    for folder in ["corpus", "examples", "crates/scry-gpu/src/shaders", "scry-bench/src"] {
        sources(&root.join(folder), &mut paths);
    }
    let mut kernels = 0;
    for path in paths {
        let source = complete_source(&path);
        let operations = ["Barrier()", "workgroupUniformLoad", "coopLoad", "subgroupAdd"];
        if !operations.iter().any(|operation| source.contains(operation)) {
            continue;
        }
        let outline = Outline::read(&source).unwrap_or_else(|e| panic!("{}\n{e}", path.display()));
        for entry in outline.entry_points {
            let overrides = outline.without_default.iter().map(|name| (name.clone(), 1.into()));
            let options = Options {
                entry: Some(entry.clone()),
                overrides: overrides.collect(),
                ..Options::default()
            };
            if let Err(error) = Program::with_options(&source, &options) {
                panic!("{}, {entry}\n{error}", path.display());
            }
            kernels += 1;
        }
    }
    assert!(kernels >= 12, "{kernels} kernels");
}
