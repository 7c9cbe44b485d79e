//! The `scry` program as its users meet it: arguments, files, exit codes, words.

mod check;
mod emit;
mod machine;
mod run;
mod run_bad;
mod support;
mod verify;

/// The program.
const SCRY: &str = env!("CARGO_BIN_EXE_scry");
