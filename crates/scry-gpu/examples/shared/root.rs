//! Where the repository is.

use std::env;
use std::path::PathBuf;

/// The root of the repository: `SCRY_ROOT`, where that is set (programs that run on another
/// machine than they were built on), else the place of the sources.
pub fn root() -> PathBuf {
    env::var_os("SCRY_ROOT")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.."), PathBuf::from)
}
