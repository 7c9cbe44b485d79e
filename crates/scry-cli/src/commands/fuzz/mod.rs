//! `scry fuzz`: random kernels on every device, compared with the reference.

mod hostile;
mod outcome;

use std::fs;
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use scry_fuzz::{Case, Kernel, kernel};
use scry_gpu::{Device, Features};
use scry_ir::{Interface, Program, ScalarKind, TypeLayout};
use serde_json::{Value, json};

use super::table;
use super::verify::devices;
use crate::args::Fuzz;
use crate::report::{Failure, Report};

/// A kernel on which a device disagrees with the reference.
struct Found {
    seed: u64,
    what: String,
    small: Case,
}

/// Runs the kernels; not in order if a device disagrees on one.
pub fn run(args: &Fuzz, quiet: bool) -> Result<Report, Failure> {
    match &args.child {
        Some(mode) => hostile::child::run(args, mode),
        None if args.hostile => hostile::run(args, quiet),
        None => well_defined(args, quiet),
    }
}

fn well_defined(args: &Fuzz, quiet: bool) -> Result<Report, Failure> {
    let (reference, others) = devices(&args.devices)?;
    let features = common_features(others.iter().chain([&reference]));
    let bar = progress(args.seeds, quiet);
    let mut found = Vec::new();
    let mut done = 0;
    for seed in (args.first..).take(usize::try_from(args.seeds).unwrap_or(usize::MAX)) {
        let kernel = kernel(seed, features.for_seed(seed));
        if let Some(problem) = try_all(&kernel, seed, &reference, &others) {
            save(&args.output, seed, &problem.what, &[], &problem.small)?;
            bar.println(format!("seed {seed}: {}", problem.what));
            found.push(problem);
        }
        done += 1;
        bar.inc(1);
        if found.len() >= args.stop.max(1) {
            break;
        }
    }
    bar.finish_and_clear();
    Ok(report(args, done, &reference, &found))
}

fn progress(seeds: u64, quiet: bool) -> ProgressBar {
    let bar = ProgressBar::new(seeds);
    if quiet {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} kernels, {per_sec}, {eta} left");
    // The template is fixed; a bar of another style is one as well.
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}

fn report(args: &Fuzz, done: u64, reference: &Device, found: &[Found]) -> Report {
    let info = reference.info();
    let folder = args.output.display();
    let mut text: String =
        found.iter().map(|found| format!("seed {}: {}\n", found.seed, found.what)).collect();
    text.push_str(&match found.len() {
        0 => format!("{done} kernels: every device agrees with {}:{}\n", info.backend, info.index),
        count => format!("{done} kernels: devices disagree on {count}, which are in {folder}\n"),
    });
    let list: Vec<Value> =
        found.iter().map(|found| json!({ "seed": found.seed, "what": found.what })).collect();
    let json = json!({
        "kernels": done,
        "first": args.first,
        "reference": format!("{}:{}", info.backend, info.index),
        "disagreements": list,
    });
    Report { text, json, ok: found.is_empty() }
}

/// The optional features that all devices have.
fn common_features<'a>(devices: impl Iterator<Item = &'a Device>) -> scry_fuzz::Features {
    let common = devices.fold(Features::all(), |all, device| all & device.info().features);
    scry_fuzz::Features {
        f16: common.contains(Features::F16),
        f64: common.contains(Features::F64),
        i64: common.contains(Features::I64),
        i16: common.contains(Features::I16),
    }
}

/// The first device that disagrees, with the smallest kernel that shows it.
fn try_all(kernel: &Kernel, seed: u64, reference: &Device, others: &[Device]) -> Option<Found> {
    let found = others.iter().find_map(|device| outcome::try_one(kernel, reference, device));
    found.map(|(problem, small)| Found { seed, what: problem.text(), small })
}

/// Writes a kernel, its data, and command lines that show what is wrong.
fn save(
    folder: &Path,
    seed: u64,
    what: &str,
    commands: &[String],
    case: &Case,
) -> Result<(), Failure> {
    let write = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, content).map_err(|error| Failure::file(&path, error))
    };
    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
    let program = Program::parse(&case.source).ok();
    let verify = program.as_ref().map(|program| command(seed, case, program.interface()));
    let mut source = format!("// {}\n", what.lines().next().unwrap_or_default());
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

/// The command line that compares the devices on the kernel.
fn command(seed: u64, case: &Case, interface: &Interface) -> String {
    let mut command = format!("scry verify {seed}.wgsl");
    for (at, binding) in interface.bindings.iter().enumerate() {
        let flag = if binding.access.writes() { "--inout" } else { "--in" };
        command.push_str(&format!(" {flag} {}={seed}.{at}.bin", binding.name));
    }
    if let (Some(immediates), Some(bytes)) = (&interface.immediates, &case.immediates) {
        let values = numbers(&immediates.layout, bytes).join(",");
        command.push_str(&format!(" --push {}={values}", immediates.name));
    }
    let [x, y, z]: [u32; 3] =
        std::array::from_fn(|axis| case.groups[axis] * interface.workgroup_size[axis]);
    command.push_str(&format!(" -n {x}x{y}x{z}"));
    command
}

/// The numbers of a scalar or vector of 32-bit numbers, as `--push` takes them.
fn numbers(layout: &TypeLayout, bytes: &[u8]) -> Vec<String> {
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
