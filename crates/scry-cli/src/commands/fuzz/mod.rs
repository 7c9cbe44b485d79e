//! `scry fuzz`: random kernels on every device, compared with the reference.

mod folder;
mod hostile;
mod outcome;
mod progress;

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use scry_fuzz::{Case, kernel};
use scry_gpu::{Device, Features};
use scry_ir::{Interface, Program, ScalarKind, TypeLayout};
use serde_json::{Value, json};

use self::progress::Progress;
use super::table;
use super::verify::devices;
use crate::args::Fuzz;
use crate::report::{Failure, Report, printable};

/// A kernel on which a device disagrees with the reference.
struct Disagreement {
    seed: u64,
    message: String,
}

/// Runs the kernels. The report is not `ok` if a device disagrees with the reference on one.
pub fn run(args: &Fuzz, quiet: bool) -> Result<Report, Failure> {
    let seeds = seeds(args)?;
    if let Some(mode) = &args.child {
        return hostile::child::run(args, seeds, mode);
    }
    folder::check_writable(&args.output)?;
    if args.hostile { hostile::run(args, quiet) } else { run_well_defined(args, seeds, quiet) }
}

/// Returns the seeds of the kernels.
fn seeds(args: &Fuzz) -> Result<RangeInclusive<u64>, Failure> {
    let Fuzz { first, seeds, .. } = *args;
    let last = first.checked_add(seeds.saturating_sub(1));
    last.map(|last| first..=last).ok_or_else(|| {
        let max = u64::MAX - first + 1;
        Failure::usage(format!(
            "--first {first} --seeds {seeds}: the last seed is {}; help: from --first {first} \
             give --seeds {max} at most",
            u64::MAX
        ))
    })
}

fn run_well_defined(
    args: &Fuzz,
    seeds: RangeInclusive<u64>,
    quiet: bool,
) -> Result<Report, Failure> {
    let (reference, others) = devices(&args.devices)?;
    let features = common_features(others.iter().chain([&reference]));
    let progress = Progress::new(args.seeds, quiet);
    let mut found = Vec::new();
    let mut done = 0;
    for seed in seeds {
        let kernel = kernel(seed, features.for_seed(seed));
        let minimisation = outcome::Minimisation { seed, limit: args.timeout, progress: &progress };
        let problem = others
            .iter()
            .find_map(|device| outcome::find_problem(&kernel, &reference, device, &minimisation));
        if let Some((problem, small)) = problem {
            let message = printable(&problem.text());
            save_case(&args.output, seed, &message, &[], &small)?;
            progress.line(&format!("seed {seed}: {message}"));
            found.push(Disagreement { seed, message });
        }
        done += 1;
        progress.advance();
        if found.len() as u64 >= args.stop {
            break;
        }
    }
    progress.finish();
    Ok(report(args, done, &reference, &found))
}

fn report(args: &Fuzz, done: u64, reference: &Device, found: &[Disagreement]) -> Report {
    let info = reference.info();
    let folder = args.output.display();
    let mut text: String =
        found.iter().map(|found| format!("seed {}: {}\n", found.seed, found.message)).collect();
    text.push_str(&match found.len() {
        0 => format!("{done} kernels: every device agrees with {}:{}\n", info.backend, info.index),
        count => format!("{done} kernels: devices disagree on {count}, which are in {folder}\n"),
    });
    let list: Vec<Value> =
        found.iter().map(|found| json!({ "seed": found.seed, "message": found.message })).collect();
    let json = json!({
        "kernels": done,
        "first": args.first,
        "reference": format!("{}:{}", info.backend, info.index),
        "disagreements": list,
    });
    Report { text, json, ok: found.is_empty() }
}

/// Returns the optional features that all devices support.
fn common_features<'a>(devices: impl Iterator<Item = &'a Device>) -> scry_fuzz::Features {
    let common = devices.fold(Features::all(), |all, device| all & device.info().features);
    scry_fuzz::Features {
        f16: common.contains(Features::F16),
        f64: common.contains(Features::F64),
        i64: common.contains(Features::I64),
        i16: common.contains(Features::I16),
    }
}

/// Saves a kernel, its data, and command lines that reproduce the problem: `commands` and, if the
/// kernel is valid, a `scry verify`.
fn save_case(
    folder: &Path,
    seed: u64,
    message: &str,
    commands: &[String],
    case: &Case,
) -> Result<(), Failure> {
    let write = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, content).map_err(|error| Failure::file(&path, error))
    };
    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
    let program = Program::parse(&case.source).ok();
    let verify = program.as_ref().map(|program| verify_command(seed, case, program.interface()));
    let mut source = format!("// {}\n", message.lines().next().unwrap_or_default());
    for command in commands.iter().chain(&verify) {
        source.push_str(&format!("// {command}\n"));
    }
    source.push_str(&case.source);
    write(&format!("{seed}.wgsl"), source.as_bytes())?;
    for (at, bytes) in case.buffers.iter().enumerate() {
        write(&format!("{seed}.{at}.bin"), bytes)?;
    }
    Ok(())
}

/// Returns the command line that compares the devices on the kernel.
fn verify_command(seed: u64, case: &Case, interface: &Interface) -> String {
    let mut command = format!("scry verify {seed}.wgsl");
    for (at, binding) in interface.bindings.iter().enumerate() {
        let flag = if binding.access.writes() { "--inout" } else { "--in" };
        command.push_str(&format!(" {flag} {}={seed}.{at}.bin", binding.name));
    }
    if let (Some(immediates), Some(bytes)) = (&interface.immediates, &case.immediates) {
        let values = immediate_values(&immediates.layout, bytes).join(",");
        command.push_str(&format!(" --immediate {}={values}", immediates.name));
    }
    let [x, y, z]: [u32; 3] =
        std::array::from_fn(|axis| case.groups[axis] * interface.workgroup_size[axis]);
    command.push_str(&format!(" -n {x}x{y}x{z}"));
    command
}

/// Formats a scalar or vector of 32-bit numbers for `--immediate`.
fn immediate_values(layout: &TypeLayout, bytes: &[u8]) -> Vec<String> {
    let (TypeLayout::Scalar(scalar) | TypeLayout::Vector { scalar, .. }) = layout else {
        return Vec::new();
    };
    let words =
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    words
        .map(|word| match scalar.kind {
            ScalarKind::Sint => word.cast_signed().to_string(),
            ScalarKind::Uint => word.to_string(),
            ScalarKind::Float | ScalarKind::Bfloat => f32::from_bits(word).to_string(),
        })
        .collect()
}
