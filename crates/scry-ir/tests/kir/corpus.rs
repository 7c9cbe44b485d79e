//! Tests that every kernel of the corpus is valid in the kernel IR, and that those in its top
//! folder match their golden files.

use std::path::Path;

use scry_ir::Program;
use scry_ir::kir::{Kir, verify};
use scry_test_support::golden;

use crate::{lowered, sources};

/// Lowers a kernel of the corpus.
fn lower(path: &Path, checked: bool) -> Kir {
    let source = std::fs::read_to_string(path).unwrap();
    let program = Program::parse(&source).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    lowered(&program, checked)
}

#[test]
fn corpus_kernels_verify_and_parse_back() {
    for path in sources("corpus") {
        for checked in [true, false] {
            let kir = lower(&path, checked);
            if let Err(error) = verify(&kir) {
                panic!("{}, checked: {checked}: {error}\n{kir}", path.display());
            }
            let text = kir.to_string();
            let parsed: Kir = text.parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            assert_eq!((parsed.to_string(), verify(&parsed)), (text, Ok(())), "{}", path.display());
        }
    }
}

/// Compares each kernel of the top folder, with bounds checks as backends compile it, with its
/// golden file.
#[test]
fn kernel_text_matches_golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut texts = Vec::new();
    for path in sources("corpus") {
        if path.parent().is_some_and(|parent| parent.ends_with("corpus")) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            texts.push((format!("{name}.kir"), lower(&path, true).to_string()));
        }
    }
    golden::compare_all(&folder.join("out"), "kir", &texts);
}

/// Checks that the example of `docs/kir.md` is valid, and printed as it is written there.
#[test]
fn documented_text_is_valid() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kir.md");
    let page = std::fs::read_to_string(file).unwrap();
    let text = page.split("```kir\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let kir: Kir = text.parse().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(verify(&kir), Ok(()));
    assert_eq!(kir.with_positions().to_string(), text);
}
