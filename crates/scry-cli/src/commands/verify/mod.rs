//! `scry verify`: runs kernels on every device, and compares the results with the reference's.

mod fill;
mod lost;
mod verdicts;

use std::path::Path;

use scry_gpu::verify::{self, Bytes, Comparison, Contents, Tolerance, Verdict, Workload};
use scry_gpu::{CompileOptions, Device, Launch};
use scry_ir::{Outline, Program};
use serde_json::{Value, json};

use self::lost::Devices;
use self::verdicts::{DeviceResult, KernelResult};
use super::limit::Notice;
use super::run::plan::{self, Plan, PlannedBuffer};
use super::run::{image_sizes, misspelt_buffer, request::Request};
use super::{compile_options, open, options, read_source, shader_failure};
use crate::args::Verify;
use crate::report::{Failure, Report};

/// Runs every kernel and compares the devices. The report is not `ok` if a device disagrees with
/// the reference, or if a kernel could not be compared.
pub fn run(args: &Verify) -> Result<Report, Failure> {
    let mut devices = Devices::new(devices(&args.devices)?, args.limit);
    let mut report = Report::new(String::new(), Value::Null);
    let mut files = Vec::new();
    for path in &args.files {
        for verified in verify_file(args, path, &mut devices)? {
            report.ok &= verified.agrees();
            report.text.push_str(&verified.text());
            files.push(verified.to_json());
        }
    }
    report.json = json!({
        "reference": verdicts::device_json(&devices.reference),
        "tolerance": args.ulps,
        "atol": args.atol,
        "rtol": args.rtol,
        "files": files,
    });
    Ok(report)
}

/// Opens the reference, which is the CPU device if present, and the devices to compare with it.
pub fn devices(selectors: &[String]) -> Result<(Device, Vec<Device>), Failure> {
    let mut present = verify::devices()?;
    if present.is_empty() {
        // `open` returns the error that explains why.
        open(None)?;
    }
    let reference = present.remove(0);
    if !selectors.is_empty() {
        present = selectors.iter().map(|name| open(Some(name))).collect::<Result<_, _>>()?;
        present.retain(|device| verdicts::title(device) != verdicts::title(&reference));
        if present.is_empty() {
            return Err(Failure::usage(format!(
                "there is nothing to compare: --device {} selects {}, the reference itself; help: \
                 select another device, see `scry devices`",
                selectors.join(" --device "),
                verdicts::title(&reference)
            )));
        }
    }
    if present.is_empty() {
        let only = verdicts::title(&reference);
        return Err(Failure::Runtime(format!(
            "there is nothing to compare: {only} is the only device; help: `scry doctor` says why \
             other backends have none"
        )));
    }
    Ok((reference, present))
}

/// Verifies every kernel of a file. With several files, a failure is part of the report; with one
/// file, it ends the command.
fn verify_file(
    args: &Verify,
    path: &Path,
    devices: &mut Devices,
) -> Result<Vec<KernelResult>, Failure> {
    let report_failure = |outcome: Result<KernelResult, Failure>| match outcome {
        Err(Failure::BrokenPipe) => Err(Failure::BrokenPipe),
        Err(failure) if args.files.len() > 1 => Ok(KernelResult::failed(path, failure)),
        outcome => outcome,
    };
    let read = read_source(path).and_then(|source| {
        let outline = Outline::read(&source).map_err(|error| Failure::shader(path, &error))?;
        Ok((source, outline))
    });
    let (source, outline) = match read {
        Ok(read) => read,
        Err(failure) => return Ok(vec![report_failure(Err(failure))?]),
    };
    let all = outline.entry_points.iter().cloned().map(Some).collect();
    let entries: Vec<Option<String>> = match &args.selection.entry {
        Some(entry) => vec![Some(entry.clone())],
        None if outline.entry_points.is_empty() => vec![None],
        None => all,
    };
    let file = File { path, source: &source, outline: &outline };
    let verified = entries.into_iter().map(|entry| {
        let outcome =
            devices.check_usable().and_then(|()| verify_kernel(args, &file, entry, devices));
        if outcome.is_err() {
            devices.reopen_lost(path);
        }
        report_failure(outcome)
    });
    verified.collect()
}

/// A WGSL file that was read.
struct File<'a> {
    path: &'a Path,
    source: &'a str,
    outline: &'a Outline,
}

fn verify_kernel(
    args: &Verify,
    File { path, source, outline }: &File<'_>,
    entry: Option<String>,
    devices: &Devices,
) -> Result<KernelResult, Failure> {
    let mut request = Request::new(&args.data, &[], &[path])?;
    let mut loaded = request.load()?;
    let sizes = image_sizes(outline, &loaded, &args.selection);
    let mut options = options(&args.selection, sizes);
    options.entry = entry;
    options.overrides.extend(fill::overrides(outline, &options.overrides));
    let program = Program::with_options(source, &options).map_err(|error| {
        misspelt_buffer(&request, source, outline, &args.selection)
            .unwrap_or_else(|| shader_failure(path, outline, &error))
    })?;
    fill::fill(&mut request, &mut loaded, program.interface(), args.data.seed)?;
    let plan = plan::make(&request, loaded, program.interface())?;
    let kernel = program.interface().entry_point.clone();
    let not_comparable = |why: &str| {
        let why = format!("kernel `{kernel}` {why}: there is nothing to compare");
        Err(Failure::file(path, why))
    };
    if !plan.buffers.iter().any(|planned| planned.slot.is_written) {
        return not_comparable("writes no buffer");
    }
    if plan.invocations.contains(&0) {
        return not_comparable("has no invocations");
    }
    let options = compile_options(path, options);
    let device_results = compare(args, &kernel, source, &options, &plan, devices)?;
    if device_results
        .iter()
        .any(|it| matches!(&it.verdict, Verdict::Compared(out) if value_count(out) == 0))
    {
        return not_comparable("writes only buffers without elements");
    }
    Ok(KernelResult {
        path: path.to_path_buf(),
        kernel,
        invocations: plan.invocations,
        reference: Some(devices.reference.clone()),
        device_results,
        problem: None,
    })
}

/// Returns the number of compared values.
fn value_count(outputs: &[(String, Comparison)]) -> u64 {
    outputs.iter().map(|(_, comparison)| comparison.compared).sum()
}

/// Runs a plan on every device, and compares the results with the reference's.
fn compare(
    args: &Verify,
    kernel: &str,
    source: &str,
    options: &CompileOptions,
    plan: &Plan,
    devices: &Devices,
) -> Result<Vec<DeviceResult>, Failure> {
    let contents: Vec<Vec<u8>> = plan.buffers.iter().map(initial_bytes).collect();
    let contents: Vec<Bytes<'_>> = contents.iter().map(|bytes| Bytes(bytes)).collect();
    let contents: Vec<&dyn Contents> = contents.iter().map(|bytes| bytes as _).collect();
    let launch = launch_for(plan);
    let Devices { reference, others, .. } = devices;
    let workload = Workload { wgsl: source, options, contents: &contents, launch: &launch };
    let tolerance = Tolerance { ulps: args.ulps, atol: args.atol, rtol: args.rtol };
    let notice = |device| {
        let what = format!("kernel `{kernel}` on {}", verdicts::title(device));
        Notice::start(&what, Some(&args.limit))
    };
    let expected = {
        let _notice = notice(reference);
        workload.run(reference).map_err(|error| args.limit.failure(error, kernel, reference))?
    };
    let results = others.iter().map(|device| {
        let _notice = notice(device);
        let verdict = workload.verify(device, &expected, tolerance);
        let verdict = verdict.map_err(|error| args.limit.failure(error, kernel, device))?;
        Ok(DeviceResult { device: device.clone(), verdict })
    });
    results.collect()
}

fn initial_bytes(planned: &PlannedBuffer) -> Vec<u8> {
    let zeros = || vec![0; planned.data.len];
    planned.data.bytes.as_ref().map_or_else(zeros, |bytes| bytes.as_slice().to_vec())
}

fn launch_for(plan: &Plan) -> Launch {
    let launch = Launch::invocations(plan.invocations);
    match &plan.immediates {
        Some(bytes) => launch.immediate_bytes(bytes.clone()),
        None => launch,
    }
}
