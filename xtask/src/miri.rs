//! `cargo xtask miri`: tests under Miri, which finds undefined behaviour and data races.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::repo;

/// Packages, filters of test names, and the number of thread schedules for each test: more than one
/// for kernels whose invocations race.
const SELECTION: [(&str, &[&str], u32); 3] = [
    ("scry-ir", &["kir::verify::tests::structure::values_", "kir::uniformity::tests::values"], 1),
    (
        "scry-cpu",
        &["miri_", "memory::tests::", "scheduling::tests::each", "cancellation::tests::"],
        1,
    ),
    ("scry-cpu", &["tests::races::miri_all_invocations", "tests::races::miri_scattered"], 4),
];

/// Runs the selection; prints a message if Miri is not installed.
pub(crate) fn run() -> Result<()> {
    let root = repo::root();
    if !is_installed(&root) {
        eprintln!(
            "skipped: Miri is not installed \
             (`rustup toolchain install nightly --profile minimal -c miri -c rust-src`)"
        );
        return Ok(());
    }
    for (package, tests, schedules) in SELECTION {
        let mut command = cargo(&root);
        command.args(["miri", "test", "-p", package, "--lib", "--"]).args(tests);
        if schedules > 1 {
            command.env("MIRIFLAGS", format!("-Zmiri-many-seeds=0..{schedules}"));
        }
        repo::run(&mut command)?;
    }
    Ok(())
}

/// Returns cargo of the nightly toolchain.
fn cargo(root: &Path) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).current_dir(root);
    command
}

fn is_installed(root: &Path) -> bool {
    let mut probe = cargo(root);
    probe.args(["miri", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}
