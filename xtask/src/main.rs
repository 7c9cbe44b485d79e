//! Tasks of the Scry repository; run one with `cargo xtask NAME`.

mod artifact;
mod bundle;
mod ci;
mod docs;
mod full;
mod miri;
mod mutation;
mod peers;
mod repo;
mod size;
mod targets;
mod tidy;
mod wasm;
mod web;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci               the checks besides `cargo test`, none of which needs a device: fmt, clippy, tidy,
                   dependency rules, documentation, packages, targets, miri
  full [RUN..]     the long soaks and seed ranges, or those named; prints a table of results, and
                   writes logs to target/full
  miri             runs a selection of the tests under Miri
  targets          type-checks the crates for Windows, macOS, Linux on Arm, and WebAssembly
  wasm [--no-simd] builds the crates for WebAssembly, runs the conformance suite in Node.js
  web [--build|--test]
                   builds the web pages and serves them on this machine; with --build, only builds
                   them; with --test, runs their tests and the conformance suite in Chromium
  tidy             checks the budgets and rules of the sources; prints each violation with its line
  size [--peers]   prints the project's sizes; with --peers, builds beside wgpu, checks the limits
  gpu-bundle OUT   gathers tests, benches, examples and data in the folder OUT, for a machine
                   without cargo
  mutation [OP..]  makes each operator of the kernel IR, or those named, compute a wrong result, and
                   checks that the conformance suite detects it on the CPU device";

/// Runs one task. Exit status: 0 for success, 1 if the task failed or found something, 2 for bad
/// usage.
fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["ci"] => ci::run(),
        ["full", ref runs @ ..] => full::run(runs),
        ["miri"] => miri::run(),
        ["targets"] => targets::run(),
        ["wasm"] => wasm::run(true),
        ["wasm", "--no-simd"] => wasm::run(false),
        ["web"] => web::run(web::Action::Serve),
        ["web", "--build"] => web::run(web::Action::Build),
        ["web", "--test"] => web::run(web::Action::Test),
        ["tidy"] => tidy::run(),
        ["size"] => size::run(false),
        ["size", "--peers"] => size::run(true),
        ["mutation", ref operators @ ..] => mutation::run(operators),
        ["gpu-bundle", out] => bundle::run(out.as_ref()),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
