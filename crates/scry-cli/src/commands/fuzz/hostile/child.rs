//! The child process of `scry fuzz --hostile`.

use std::io::Write as _;
use std::ops::RangeInclusive;

use scry_fuzz::hostile::{HostileKernel, kernel};
use scry_gpu::{BackendKind, Device};
use serde_json::Value;

use super::super::{common_features, save_case};
use super::process::Event;
use super::trial::{Outcome, Problem, Trial};
use crate::args::Fuzz;
use crate::commands::open;
use crate::report::{Failure, Report, printable};

/// Runs the kernels sequentially, and reports the start and the end of each; with the mode `keep
/// WHAT` it does not run them, but writes them to the folder, with WHAT as the problem.
pub fn run(args: &Fuzz, seeds: RangeInclusive<u64>, mode: &str) -> Result<Report, Failure> {
    let device = open(args.devices.first().map(String::as_str))?;
    let reference = match device.backend_kind() {
        BackendKind::Cpu => None,
        _ => Device::open("cpu").ok(),
    };
    let trial = Trial { device, reference };
    let info = trial.device.info();
    let name = format!("{}:{}", info.backend, info.index);
    send(&Event::Device { name: name.clone(), omits_endless: !trial.rules().endless })?;
    let features = common_features([&trial.device].into_iter().chain(&trial.reference));
    for seed in seeds {
        let kernel = kernel(seed, features.for_seed(seed), trial.rules());
        match mode.strip_prefix("keep ") {
            Some(message) => save_kernel(args, &name, message, &kernel)?,
            None if run_one(args, &name, &trial, &kernel)? => {}
            None => break,
        }
    }
    Ok(Report::new(String::new(), Value::Null))
}

/// Runs a kernel; one with a problem is minimised and saved. Returns false if the device may be
/// lost: a kernel that still runs may prevent this process from reopening the device, so another
/// process is needed.
fn run_one(
    args: &Fuzz,
    name: &str,
    trial: &Trial,
    kernel: &HostileKernel,
) -> Result<bool, Failure> {
    let seed = kernel.case().seed;
    send(&Event::Started(seed))?;
    let (kind, message) = match trial.run_kernel(kernel) {
        Outcome::Passed => ("ok", String::new()),
        Outcome::Cancelled => ("cancelled", String::new()),
        Outcome::Failed(problem) => {
            // Saved first, since the steps below may crash or hang.
            save_kernel(args, name, &text(&problem), kernel)?;
            send(&Event::found(seed, problem.kind, problem.message.clone()))?;
            // If the parent has exited, the last `send` of this function returns an error.
            let report = |tried| drop(send(&Event::Minimising { seed, tried }));
            let small = trial.smallest(kernel, &problem, args.timeout, report);
            save_kernel(args, name, &text(&problem), &small)?;
            (problem.kind, problem.message)
        }
    };
    send(&Event::finished(seed, kind, message))?;
    Ok(matches!(kind, "ok" | "cancelled"))
}

fn text(problem: &Problem) -> String {
    format!("{}: {}", problem.kind, printable(&problem.message))
}

fn save_kernel(
    args: &Fuzz,
    name: &str,
    message: &str,
    kernel: &HostileKernel,
) -> Result<(), Failure> {
    let case = kernel.case();
    let name = args.devices.first().map_or(name, String::as_str);
    let again = format!("scry fuzz --hostile --first {} --seeds 1 --device {name}", case.seed);
    save_case(&args.output, case.seed, message, &[again], &case)
}

/// Writes a line for the parent and flushes it.
fn send(event: &Event) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let sent = writeln!(out, "{}", event.to_line()).and_then(|()| out.flush());
    sent.map_err(|_| Failure::BrokenPipe)
}
