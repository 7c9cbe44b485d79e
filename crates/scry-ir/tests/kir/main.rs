//! Tests of lowering to the kernel IR, with the kernels of the corpus.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail by panicking, as the tests do"
)]

mod corpus;
mod positions;

use std::path::{Path, PathBuf};

use scry_ir::Program;
use scry_ir::kir::{Kir, KirOptions, verify};

/// Returns the WGSL files below a folder of the repository.
fn sources(folder: &str) -> Vec<PathBuf> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "wgsl") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder), &mut found);
    found.sort();
    found
}

/// Lowers a program and verifies the result.
fn lowered(program: &Program, checked: bool) -> Kir {
    let kir = program.to_kir(&KirOptions { checked }).unwrap_or_else(|error| panic!("{error}"));
    verify(&kir).unwrap_or_else(|error| panic!("{error}\n{kir}"));
    kir
}

#[test]
fn corpus_kernels_are_lowered() {
    let sources = sources("corpus");
    assert!(sources.len() > 20, "{sources:?}");
    for path in sources {
        let source = std::fs::read_to_string(&path).unwrap();
        let program = Program::parse(&source).unwrap_or_else(|error| panic!("{error}"));
        let (checked, unchecked) = (lowered(&program, true), lowered(&program, false));
        let interface = program.interface();
        for kir in [&checked, &unchecked] {
            assert_eq!(kir.name, interface.entry_point, "{path:?}");
            assert_eq!(kir.workgroup_size, interface.workgroup_size, "{path:?}");
            let writable: Vec<_> = kir.buffers.iter().map(|buffer| buffer.writable).collect();
            let expected: Vec<_> = interface.bindings.iter().map(|b| b.access.writes()).collect();
            assert_eq!(writable, expected, "{path:?}");
        }
        assert!(checked.values.len() >= unchecked.values.len(), "{path:?}");
    }
}
