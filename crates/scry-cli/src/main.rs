//! The `scry` command: check, run and inspect WGSL compute kernels.

mod args;
mod commands;
mod data;
mod help;
mod logger;
mod report;
mod style;

use std::process::ExitCode;

fn main() -> ExitCode {
    logger::init();
    report::report_panics(commands::main)
}
