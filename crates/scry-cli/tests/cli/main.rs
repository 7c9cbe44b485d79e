//! End-to-end tests of the `scry` program: arguments, files, exit codes, messages.

mod check;
mod data;
mod emit;
mod environment;
mod fuzz;
#[cfg(unix)]
mod launch;
mod machine;
mod messages;
mod model;
mod pages;
mod run;
mod run_bad;
mod run_time;
mod support;
mod transcript;
mod verify;

/// The program.
const SCRY: &str = env!("CARGO_BIN_EXE_scry");
