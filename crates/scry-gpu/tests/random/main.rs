//! Random kernels: every device must compute the same bytes as the CPU.
//!
//! `SCRY_FUZZ_SEEDS` says how many kernels are run, `SCRY_FUZZ_FIRST` which seed is the first.

mod found;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "random data comes with the kernels here")]
mod support;

use scry_fuzz::{Case, Kernel, kernel, shrink};
use scry_gpu::verify::{Bytes, Contents, Verdict, Work, explain};
use scry_gpu::{BackendKind, CompileOptions, Device, Features, GpuError, Launch};

/// Kernels that are run if nothing else is said: half a minute on a software device.
const SEEDS: u64 = 100;
/// Candidates that are run to make a failing kernel smaller.
const ATTEMPTS: usize = 3000;

#[test]
fn every_device_computes_the_same() {
    let mut devices = support::devices();
    devices.sort_by_key(|device| device.backend_kind() != BackendKind::Cpu);
    let Some((reference, others)) = devices.split_first() else {
        return;
    };
    if others.is_empty() {
        eprintln!("skipped: {} is the only device, there is nothing to compare", reference.name());
        return;
    }
    let features = common_features(&devices);
    let first = number("SCRY_FUZZ_FIRST").unwrap_or(0);
    for seed in first..first + number("SCRY_FUZZ_SEEDS").unwrap_or(SEEDS) {
        let kernel = kernel(seed, features.for_seed(seed));
        for device in others {
            if let Some(problem) = disagreement(&kernel.case(), reference, device) {
                let small = smallest(&kernel, reference, device);
                let shown = disagreement(&small.case(), reference, device).unwrap_or(problem);
                panic!("seed {seed}: {shown}\n{:?}", small.case());
            }
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

/// The optional features that all devices have.
fn common_features(devices: &[Device]) -> scry_fuzz::Features {
    let all = |wanted| devices.iter().all(|device| device.info().features.contains(wanted));
    scry_fuzz::Features {
        f16: all(Features::F16),
        f64: all(Features::F64),
        i64: all(Features::I64),
        i16: all(Features::I16),
    }
}

fn smallest(kernel: &Kernel, reference: &Device, device: &Device) -> Kernel {
    shrink(kernel, ATTEMPTS, |smaller| {
        disagreement(&smaller.case(), reference, device).is_some_and(|text| !is_refusal(&text))
    })
}

const REFUSED: &str = "refused: ";

fn is_refusal(text: &str) -> bool {
    text.starts_with(REFUSED)
}

/// How a device disagrees with the reference, or why one of them does not run the kernel.
fn disagreement(case: &Case, reference: &Device, device: &Device) -> Option<String> {
    match compared(case, reference, device) {
        Ok(Verdict::Ran(outputs)) => explain(&outputs, reference, device),
        Ok(Verdict::Unable(error)) | Err(error) => {
            Some(format!("{REFUSED}{error}\n{}", case.source))
        }
    }
}

fn compared(case: &Case, reference: &Device, device: &Device) -> Result<Verdict, GpuError> {
    let mut launch = Launch::workgroups(case.groups);
    if let Some(bytes) = &case.immediates {
        launch = launch.push_constant_bytes(bytes.clone());
    }
    let contents: Vec<Bytes<'_>> = case.buffers.iter().map(|bytes| Bytes(bytes)).collect();
    let contents: Vec<&dyn Contents> = contents.iter().map(|bytes| bytes as _).collect();
    let options = CompileOptions::default();
    let work = Work { wgsl: &case.source, options: &options, contents: &contents, launch: &launch };
    work.verify(device, &work.run(reference)?, 0)
}
