//! Files of expected results.

use std::path::PathBuf;

use scry_test_support::root;

/// Returns a file of expected results.
pub(crate) fn expected(name: &str) -> PathBuf {
    root().join("crates/scry-models/tests/models/formats/expected").join(name)
}
