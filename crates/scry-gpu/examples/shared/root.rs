//! Location of the repository.

use std::env;
use std::path::PathBuf;

/// Returns the root of the repository: `SCRY_ROOT`, if set (for programs that run on another
/// machine than they were built on), else the folder of the sources.
pub fn root() -> PathBuf {
    env::var_os("SCRY_ROOT")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.."), PathBuf::from)
}
