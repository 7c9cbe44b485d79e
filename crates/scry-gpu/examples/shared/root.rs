//! Location of the repository.

use std::env;
use std::path::PathBuf;

/// Returns the root of the repository: `SCRY_ROOT`, if set (for programs that run on a
/// different machine from the one that built them), otherwise the folder of the sources.
pub fn root() -> PathBuf {
    env::var_os("SCRY_ROOT")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.."), PathBuf::from)
}
