//! The command line.

mod model;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use scry_ir::OverrideValue;

pub use self::model::Model;
#[cfg(feature = "models")]
pub use self::model::{ModelGenerate, ModelInfo, ModelSearch};
use crate::help;

/// Check, run and compare WGSL compute kernels on GPUs and CPUs.
#[derive(Debug, Parser)]
#[command(name = "scry", version, arg_required_else_help = true)]
#[command(help_template = help::TEMPLATE)]
#[command(before_help = help::SCRY_EXAMPLES, after_help = help::SCRY)]
pub struct Cli {
    /// Print one JSON document instead of text.
    #[arg(long, global = true)]
    pub json: bool,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the devices that kernels can run on.
    #[command(help_template = help::TEMPLATE)]
    #[command(before_help = help::DEVICES_EXAMPLES)]
    Devices(DeviceSelection),
    /// Report the devices of each backend, or why it has none, and test each device.
    #[command(help_template = help::TEMPLATE)]
    #[command(before_help = help::DOCTOR_EXAMPLES, after_help = help::DOCTOR)]
    Doctor(DeviceSelection),
    /// Check the compute kernels of WGSL files without running them.
    Check(Check),
    /// Show the interface of a kernel: buffers, immediates, overrides, workgroup size.
    Reflect(Reflect),
    /// Translate a kernel to SPIR-V, PTX, WGSL or kernel IR.
    Emit(Emit),
    /// Run a kernel on files and generated data.
    Run(Box<Run>),
    /// Run kernels on every device and compare the results with those of the CPU device.
    Verify(Box<Verify>),
    /// Run random kernels on every device and compare the results with those of the CPU device.
    Fuzz(Fuzz),
    /// List the operations on tensors, their element types, and their kernels on each backend.
    #[command(help_template = help::TEMPLATE)]
    #[command(before_help = help::OPS_EXAMPLES, after_help = help::OPS)]
    Ops(Ops),
    /// Run models: generate text, search text by meaning, inspect model files. Needs the feature
    /// `models`.
    #[command(help_template = help::TEMPLATE)]
    #[command(before_help = help::MODEL_EXAMPLES, after_help = help::MODEL)]
    Model {
        /// What to do.
        #[command(subcommand)]
        action: Model,
    },
    /// Start a program several times on this host, as the ranks of a group of devices.
    Launch(Launch),
    /// List or delete the compiled kernels on disk.
    #[command(help_template = help::TEMPLATE)]
    #[command(before_help = help::CACHE_EXAMPLES, after_help = help::CACHE)]
    Cache {
        /// What to do.
        #[command(subcommand)]
        action: Cache,
    },
    /// Print the completions of a shell.
    #[command(help_template = help::TEMPLATE)]
    #[command(before_help = help::COMPLETIONS_EXAMPLES, after_help = help::COMPLETIONS)]
    Completions {
        /// Shell to print completions for.
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print a man page, or write all man pages to a folder.
    Man(Man),
}

impl Command {
    /// Returns the name, as typed.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Devices(_) => "devices",
            Self::Doctor(_) => "doctor",
            Self::Check(_) => "check",
            Self::Reflect(_) => "reflect",
            Self::Emit(_) => "emit",
            Self::Run(_) => "run",
            Self::Verify(_) => "verify",
            Self::Fuzz(_) => "fuzz",
            Self::Ops(_) => "ops",
            Self::Model { .. } => "model",
            Self::Launch(_) => "launch",
            Self::Cache { .. } => "cache",
            Self::Completions { .. } => "completions",
            Self::Man(_) => "man",
        }
    }
}

/// The choice of a device.
#[derive(Debug, Args)]
pub struct DeviceSelection {
    /// Device to use: `cpu`, `cuda`, `vulkan:1`, a UUID, a PCI address, or part of a name, as `scry
    /// devices` lists them; by default that of SCRY_DEVICE, or the most capable one.
    #[arg(long, value_name = "SELECTOR")]
    pub device: Option<String>,
}

/// The selection of a kernel in a file, and its overrides.
#[derive(Debug, Args)]
pub struct Selection {
    /// Entry point; required if the file has several.
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// Value of an `override`, by its name or its `@id`; can be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_override)]
    pub set: Vec<(String, OverrideValue)>,
}

/// Arguments of `scry check`.
#[derive(Debug, Args)]
#[command(help_template = help::TEMPLATE)]
#[command(before_help = help::CHECK_EXAMPLES, after_help = help::CHECK)]
pub struct Check {
    /// WGSL files.
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub selection: Selection,
    /// Also compile the kernels for this device: `cpu`, `vulkan:1`, part of a name, …
    #[arg(long, value_name = "SELECTOR")]
    pub device: Option<String>,
}

/// Arguments of `scry reflect`.
#[derive(Debug, Args)]
#[command(help_template = help::TEMPLATE)]
#[command(before_help = help::REFLECT_EXAMPLES)]
pub struct Reflect {
    /// WGSL file.
    pub file: PathBuf,
    #[command(flatten)]
    pub selection: Selection,
}

/// Arguments of `scry emit`.
#[derive(Debug, Args)]
#[command(help_template = help::TEMPLATE)]
#[command(before_help = help::EMIT_EXAMPLES)]
pub struct Emit {
    /// WGSL file.
    pub file: PathBuf,
    /// Language to translate to.
    #[arg(long, value_enum, default_value_t = Target::Spirv)]
    pub target: Target,
    /// Compute capability that the PTX targets: 75, 80, 89 or 90, and newer GPUs; or 90a, which
    /// runs on 9.0 only.
    #[arg(long, value_name = "SM", default_value = "75")]
    pub sm: scry_ptx::Target,
    /// File to write, or `-` for standard output, which is the default for text.
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Omit bounds checks and loop bounds.
    #[arg(long)]
    pub unchecked: bool,
    #[command(flatten)]
    pub selection: Selection,
}

/// The target languages of `scry emit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// SPIR-V 1.3, binary, little-endian.
    Spirv,
    /// PTX, the virtual assembly language of NVIDIA GPUs, as text.
    Ptx,
    /// WGSL of the optimised kernel, as text.
    Wgsl,
    /// The optimised kernel as kernel IR, with line and column in the WGSL file, as text.
    Kir,
}

impl Target {
    /// Returns the name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spirv => "spirv",
            Self::Ptx => "ptx",
            Self::Wgsl => "wgsl",
            Self::Kir => "kir",
        }
    }
}

/// Arguments of `scry ops`.
#[derive(Debug, Args)]
pub struct Ops {
    /// List only operations whose name contains this text.
    pub name: Option<String>,
}

/// Arguments of `scry run`.
#[derive(Debug, Args)]
#[command(help_template = help::TEMPLATE)]
#[command(before_help = help::RUN_EXAMPLES, after_help = help::RUN)]
pub struct Run {
    /// WGSL file.
    pub file: PathBuf,
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub device: DeviceSelection,
    #[command(flatten)]
    pub data: DataArgs,
    /// Write the buffer NAME to FILE after the run, or print its first values; can be repeated.
    #[arg(long = "out", value_name = "NAME[=FILE]", value_parser = parse_output)]
    pub outputs: Vec<(String, Option<String>)>,
    /// Print the times of compilation, upload, kernel and download to standard error.
    #[arg(long)]
    pub time: bool,
    /// Run the kernel COUNT times on the same data, and print the median, quartiles and extremes of
    /// its times.
    #[arg(long, value_name = "COUNT", value_parser = parse_positive)]
    pub repeat: Option<u64>,
    #[command(flatten)]
    pub limit: TimeLimit,
}

/// The limit of a kernel's run time.
#[derive(Debug, Clone, Copy, Args)]
pub struct TimeLimit {
    /// Fail if the kernel runs longer than TIME on a device: `500ms`, `60s`, `2m`.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub time_limit: Option<Duration>,
}

/// The data that a kernel runs on.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// Data for the buffer NAME, which the kernel only reads; can be repeated.
    #[arg(long = "in", value_name = "NAME=SOURCE", value_parser = parse_pair)]
    pub inputs: Vec<(String, String)>,
    /// Initial data for a buffer that the kernel writes; SOURCE is not changed; can be repeated.
    #[arg(long = "inout", value_name = "NAME=SOURCE", value_parser = parse_pair)]
    pub inouts: Vec<(String, String)>,
    /// Convert input NAME to TYPE, the kernel's element type, even if that changes values; or write
    /// output NAME as TYPE; can be repeated.
    #[arg(long = "cast", value_name = "NAME=TYPE", value_parser = parse_pair)]
    pub casts: Vec<(String, String)>,
    /// Shape of an output or of a .bin input, outermost dimension first; can be repeated.
    #[arg(long = "shape", value_name = "NAME=1000x10", value_parser = parse_pair)]
    pub shapes: Vec<(String, String)>,
    /// Value of the kernel's immediate, or of a member of its struct; vectors as `1,2,3`; can be
    /// repeated.
    #[arg(long = "immediate", value_name = "NAME=VALUE", value_parser = parse_pair)]
    pub immediates: Vec<(String, String)>,
    /// Number of invocations: `1000`, `WIDTHxHEIGHT` or `XxYxZ`.
    #[arg(short = 'n', long = "invocations", value_name = "COUNT", value_parser = parse_counts)]
    pub invocations: Option<Counts>,
    /// Seed of the random data.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// Arguments of `scry verify`.
#[derive(Debug, Args)]
#[command(help_template = help::TEMPLATE)]
#[command(before_help = help::VERIFY_EXAMPLES, after_help = help::VERIFY)]
pub struct Verify {
    /// WGSL files.
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub data: DataArgs,
    /// Units in the last place (ULP) by which floats may differ; integers must be equal.
    #[arg(long = "ulps", visible_alias = "tolerance", value_name = "ULPS", default_value_t = 0)]
    pub ulps: u64,
    /// Absolute tolerance of floats, as in NumPy: |found - expected| <= ATOL + RTOL * |expected|.
    #[arg(long, value_name = "ATOL", default_value = "0", value_parser = parse_tolerance)]
    #[arg(allow_negative_numbers = true)]
    pub atol: f64,
    /// Relative tolerance of floats, see --atol.
    #[arg(long, value_name = "RTOL", default_value = "0", value_parser = parse_tolerance)]
    #[arg(allow_negative_numbers = true)]
    pub rtol: f64,
    #[command(flatten)]
    pub limit: TimeLimit,
    /// Compare only this device with the reference; can be repeated.
    #[arg(long = "device", value_name = "SELECTOR")]
    pub devices: Vec<String>,
}

/// Arguments of `scry fuzz`.
#[derive(Debug, Args)]
#[command(help_template = help::TEMPLATE)]
#[command(before_help = help::FUZZ_EXAMPLES, after_help = help::FUZZ)]
pub struct Fuzz {
    /// Number of kernels to run.
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = parse_positive)]
    pub seeds: u64,
    /// Seed of the first kernel.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub first: u64,
    /// Compare only this device with the reference; can be repeated.
    #[arg(long = "device", value_name = "SELECTOR")]
    pub devices: Vec<String>,
    /// Folder for kernels with a problem and their data; created when needed.
    #[arg(short, long, value_name = "FOLDER", default_value = "scry-fuzz")]
    pub output: PathBuf,
    /// Stop after this number of problems.
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = parse_positive)]
    pub stop: u64,
    /// Run kernels that attack memory safety, between guard bytes, in child processes.
    #[arg(long)]
    pub hostile: bool,
    /// With --hostile: number of kernels for each child process.
    #[arg(long, value_name = "COUNT", default_value_t = 250, value_parser = parse_positive)]
    pub batch: u64,
    /// Time limit for minimising a kernel with a problem; with --hostile, a child process is also
    /// killed after this time without progress: `60s`, `2m`.
    #[arg(long, visible_alias = "time-limit", value_name = "TIME")]
    #[arg(default_value = "60s", value_parser = parse_seconds)]
    pub timeout: Duration,
    /// Internal: run as such a child process.
    #[arg(long, hide = true, value_name = "MODE")]
    pub child: Option<String>,
}

/// Arguments of `scry launch`.
#[derive(Debug, Args)]
#[command(help_template = help::TEMPLATE)]
#[command(before_help = help::LAUNCH_EXAMPLES, after_help = help::LAUNCH)]
pub struct Launch {
    /// Number of processes to start, one rank each; usually the number of GPUs.
    #[arg(short = 'n', long, value_name = "COUNT")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub ranks: u32,
    /// How long the other processes may run after one has failed, so that they can report what they
    /// noticed: `3s`, `1m`.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = parse_seconds)]
    pub grace: Duration,
    /// Program to start, and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// Arguments of `scry man`.
#[derive(Debug, Args)]
#[command(help_template = help::TEMPLATE)]
#[command(before_help = help::MAN_EXAMPLES)]
pub struct Man {
    /// Command to print the page of; by default `scry` itself.
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub command: Option<String>,
    /// Folder to write all pages to; created if it does not exist.
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
}

/// Actions of `scry cache`.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum Cache {
    /// List the compiled kernels, by device.
    Ls,
    /// Delete all of them.
    Clear,
}

/// Invocations along x, y and z, as many axes as were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts(pub Vec<u64>);

/// Parses `NAME=VALUE`, of which neither may be empty.
fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("it is not of the form NAME=VALUE".to_owned()),
    }
}

/// Parses `NAME` or `NAME=FILE`.
fn parse_output(text: &str) -> Result<(String, Option<String>), String> {
    if text.contains('=') {
        let pair = parse_pair(text).map_err(|_| "it is neither NAME nor NAME=FILE".to_owned())?;
        Ok((pair.0, Some(pair.1)))
    } else {
        Ok((text.to_owned(), None))
    }
}

/// Parses `NAME=VALUE`, the value of an override.
fn parse_override(text: &str) -> Result<(String, OverrideValue), String> {
    let (name, value) = parse_pair(text)?;
    let value = match value.as_str() {
        "true" => true.into(),
        "false" => false.into(),
        _ => match value.parse::<f64>() {
            Ok(number) if number.is_finite() => number.into(),
            Ok(_) => return Err(format!("`{value}` is not a finite number")),
            Err(_) => return Err(format!("`{value}` is neither a number nor true or false")),
        },
    };
    Ok((name, value))
}

/// Parses a number that is at least 1.
fn parse_positive(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected an integer of at least 1".to_owned()),
        Ok(count) => Ok(count),
    }
}

/// Parses a tolerance of floats.
fn parse_tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("it is not a finite number of at least 0, such as 1e-6".to_owned()),
    }
}

/// Parses a duration with its unit, such as `500ms`, `60s` or `2m`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("it must be longer than 0".to_owned()),
        Ok(duration) => Ok(duration),
        Err(humantime::DurationError::NumberOverflow) => {
            Err("it is too long, or not a whole number of nanoseconds".to_owned())
        }
        Err(_) => Err("it is not a time with its unit, such as 500ms, 60s or 2m".to_owned()),
    }
}

/// Parses a duration, in seconds if it has no unit.
fn parse_seconds(text: &str) -> Result<Duration, String> {
    let has_no_unit = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if has_no_unit { parse_duration(&format!("{text}s")) } else { parse_duration(text) }
}

/// Parses the number of invocations along one to three axes, separated by `x`.
fn parse_counts(text: &str) -> Result<Counts, String> {
    let form = "it is not of the form 1000, WIDTHxHEIGHT or XxYxZ";
    let axes: Vec<&str> = text.split('x').collect();
    // A width of 0 runs nothing; `0x…` is more likely a hexadecimal number.
    if let ["0", digits] = axes[..] {
        let meant = u64::from_str_radix(digits, 16).map_err(|_| form.to_owned())?;
        return Err(format!(
            "it would be 0 wide; if it is a hexadecimal number, write {meant} instead"
        ));
    }
    let axes: Option<Vec<u64>> = axes.iter().map(|axis| axis.parse().ok()).collect();
    match axes {
        Some(axes) if axes.len() <= 3 => Ok(Counts(axes)),
        _ => Err(form.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn counts_have_one_to_three_axes() {
        assert_eq!(parse_counts("1000"), Ok(Counts(vec![1000])));
        assert_eq!(parse_counts("512x256"), Ok(Counts(vec![512, 256])));
        assert_eq!(parse_counts("4x5x6"), Ok(Counts(vec![4, 5, 6])));
        for wrong in ["", "x", "1x2x3x4", "-1", "1.5", "1 x 2", "0x", "0xg", "0xff"] {
            assert!(parse_counts(wrong).is_err(), "{wrong}");
        }
        assert!(parse_counts("0x10").unwrap_err().contains("write 16"));
        assert_eq!(parse_counts("0"), Ok(Counts(vec![0])));
    }

    #[test]
    fn overrides_are_numbers_or_bools() {
        assert_eq!(parse_override("N=1e3"), Ok(("N".to_owned(), 1000.into())));
        assert_eq!(parse_override("DEBUG=true"), Ok(("DEBUG".to_owned(), true.into())));
        assert_eq!(parse_override("A=-2"), Ok(("A".to_owned(), (-2).into())));
        for wrong in ["many", "inf", "nan", "1e999"] {
            assert!(parse_override(&format!("N={wrong}")).is_err(), "{wrong}");
        }
        assert!(parse_override("N").is_err());
        assert!(parse_override("=1").is_err());
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_duration("1m 30s"), Ok(Duration::from_secs(90)));
        for wrong in ["", "60", "0s", "s", "-1s", "1 fortnight"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        for beyond in ["99999999999999999999s", "18446744073709551615m", "1.5ns"] {
            let problem = "it is too long, or not a whole number of nanoseconds";
            assert_eq!(parse_duration(beyond), Err(problem.to_owned()), "{beyond}");
        }
        assert_eq!(parse_seconds("60"), Ok(Duration::from_secs(60)));
        assert_eq!(parse_seconds("250ms"), Ok(Duration::from_millis(250)));
        assert!(parse_seconds("0").is_err() && parse_seconds("").is_err());
    }

    #[test]
    fn tolerances_are_finite_and_not_negative() {
        assert_eq!(parse_tolerance("1e-6"), Ok(1e-6));
        assert_eq!(parse_tolerance("0"), Ok(0.0));
        for wrong in ["-1", "nan", "inf", "", "1e999", "small"] {
            assert!(parse_tolerance(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn outputs_need_no_file() {
        assert_eq!(parse_output("y"), Ok(("y".to_owned(), None)));
        assert_eq!(parse_output("y=a=b.npy"), Ok(("y".to_owned(), Some("a=b.npy".into()))));
        let problem = Err("it is neither NAME nor NAME=FILE".to_owned());
        assert_eq!(parse_output("y="), problem);
        assert_eq!(parse_output("=y.npy"), problem);
    }
}
