//! The subcommands and their helpers. `pages` has `scry completions` and `scry man`; `libraries`
//! and `limit` are helpers of several commands.

mod cache;
mod check;
mod devices;
mod doctor;
mod emit;
mod fuzz;
mod launch;
mod libraries;
mod limit;
mod model;
mod ops;
mod pages;
mod reflect;
mod run;
mod verify;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use scry_gpu::{CompileOptions, Device};
use scry_ir::{Options, Outline, OverrideValue, ShaderError, ShaderErrorKind};

use crate::args::{Cli, Command, Selection};
use crate::report::{self, Failure, Report};

/// Parses the command line, runs the command, and returns the exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return clap_error(&error),
    };
    let name = cli.command.name();
    report::finish(name, cli.json, dispatch(cli.command, cli.json))
}

/// Prints help, the version, or the error of the command line.
fn clap_error(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        let text = error.to_string();
        let text = text.trim().trim_start_matches("error: ");
        return report::finish("scry", true, Err(Failure::usage(text)));
    }
    // A closed pipe is not a failure.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn dispatch(command: Command, json: bool) -> Result<Report, Failure> {
    match command {
        Command::Devices(args) => devices::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Reflect(args) => reflect::run(&args),
        Command::Emit(args) => emit::run(&args, json),
        Command::Run(args) => run::run(&args, json),
        Command::Verify(args) => verify::run(&args),
        Command::Fuzz(args) => fuzz::run(&args, json),
        Command::Ops(args) => ops::run(&args),
        Command::Model { action } => model::run(&action, json),
        Command::Launch(args) => launch::run(&args, json),
        Command::Cache { action } => cache::run(action),
        Command::Completions { shell } => pages::completions(shell),
        Command::Man(args) => pages::man(&args),
    }
}

/// Returns the text of a WGSL file.
fn read_source(path: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(path).map_err(|error| Failure::file(path, error))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::file(path, format!("not valid WGSL: byte {at} is not UTF-8"))
    })
}

/// Returns the options of the selected kernel, with overrides in addition to those of `--set`.
fn options(
    selection: &Selection,
    extra_overrides: impl IntoIterator<Item = (String, OverrideValue)>,
) -> Options {
    let mut options = Options {
        entry: selection.entry.clone(),
        overrides: selection.set.clone(),
        ..Options::default()
    };
    options.overrides.extend(extra_overrides);
    options
}

/// Converts options for use with a device. The kernel's label is the path.
fn compile_options(path: &Path, options: Options) -> CompileOptions {
    let Options { entry, overrides, .. } = options;
    CompileOptions { entry, overrides, label: Some(path.display().to_string()) }
}

/// Returns the failure for a shader that was rejected: a usage error if a different --entry or
/// --set would help.
fn shader_failure(path: &Path, outline: &Outline, error: &ShaderError) -> Failure {
    let hint = match error.kind {
        ShaderErrorKind::EntryPoint if !outline.entry_points.is_empty() => {
            let names = outline.entry_points.join(", ");
            Some(format!("choose with --entry NAME: {names}"))
        }
        ShaderErrorKind::Override => Some("overrides are given with --set NAME=VALUE".to_owned()),
        _ => None,
    };
    Failure::shader_with_hint(path, error, hint)
}

/// Opens the selected device, or the default one.
fn open(selector: Option<&str>) -> Result<Device, Failure> {
    let device = match selector {
        Some(selector) => Device::open(selector),
        None => Device::auto(),
    };
    device.map_err(Failure::from)
}

/// Formats rows of cells with aligned columns.
fn table(rows: &[Vec<String>], indent: &str) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let line: String = cells.map(|(cell, width)| format!("{cell:width$}  ")).collect();
        format!("{indent}{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

/// Formats a number of bytes with a binary unit: `1.5 KiB`.
fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "bytes";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    match unit {
        "bytes" => format!("{bytes} bytes"),
        _ => format!("{value:.1} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(format_bytes(0), "0 bytes");
        assert_eq!(format_bytes(1023), "1023 bytes");
        assert_eq!(format_bytes(1536), "1.5 KiB");
        assert_eq!(format_bytes(80 << 30), "80.0 GiB");
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [vec!["a".to_owned(), "b".to_owned()], vec!["long".to_owned(), "c".to_owned()]];
        assert_eq!(table(&rows, "  "), "  a     b\n  long  c\n");
    }
}
