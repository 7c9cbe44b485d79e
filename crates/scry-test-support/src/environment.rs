//! The root of the repository, and numbers from environment variables.

use std::env;
use std::path::PathBuf;

/// Returns the root of the repository: `SCRY_ROOT`, if set (for programs that run on a
/// different machine from the one that built them), otherwise the workspace of this crate.
pub fn root() -> PathBuf {
    env::var_os("SCRY_ROOT")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.."), PathBuf::from)
}

/// Returns the value of an environment variable; `None` if it is not set. Panics if it is not a
/// number.
pub fn env_number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}
