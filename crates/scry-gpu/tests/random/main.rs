//! Tests with random kernels: every device must compute the same bytes as the CPU, except for the
//! sign of zeros and the bits of NaNs.
//!
//! Environment variables: `SCRY_FUZZ_SEEDS` is the number of kernels, `SCRY_FUZZ_FIRST` the first
//! seed, and `SCRY_FUZZ_PROBLEMS` the number of problems after which the test ends (default 1).

mod regressions;

use std::ops::Range;
use std::time::{Duration, Instant};

use scry_fuzz::{Case, RandomKernel, kernel, shrink};
use scry_gpu::testing::{null_info, observed};
use scry_gpu::verify::{
    Bytes, Contents, Verdict, Workload, format_first_difference, is_same_failure,
};
use scry_gpu::{BackendKind, CompileOptions, Device, Features, GpuError, Launch};
use scry_test_support::{devices, env_number};

/// Default number of kernels: half a minute on a software device.
const DEFAULT_SEEDS: u64 = 100;
/// Maximum number of candidates when shrinking a failing kernel.
const MAX_CANDIDATES: usize = 3000;
/// Time limit of shrinking: drivers may take long to reject a kernel.
const SHRINKING_LIMIT: Duration = Duration::from_secs(120);

#[test]
fn every_device_computes_the_same() {
    let mut devices = devices();
    devices.sort_by_key(|device| device.backend_kind() != BackendKind::Cpu);
    let Some((reference, others)) = devices.split_first() else {
        return;
    };
    if others.is_empty() {
        eprintln!("skipped: {} is the only device, there is nothing to compare", reference.name());
        return;
    }
    let features = common_features(&devices);
    let first = env_number("SCRY_FUZZ_FIRST").unwrap_or(0);
    let seeds = first..first + env_number("SCRY_FUZZ_SEEDS").unwrap_or(DEFAULT_SEEDS);
    let max_problems = env_number("SCRY_FUZZ_PROBLEMS").unwrap_or(1);
    let found = find_problems(seeds, features, reference, others).map(|found| {
        // Printed at once, because a run of many kernels may be interrupted.
        eprintln!("seed {}: {}", found.seed, found.problem);
        eprintln!("seed {}, shrunk: {}", found.seed, found.describe(reference));
        found.seed
    });
    let found: Vec<_> = found.take(max_problems as usize).collect();
    assert!(found.is_empty(), "problems, each described above, with the seeds {found:?}");
}

/// A kernel that has a problem on a device.
struct Finding<'a> {
    seed: u64,
    kernel: RandomKernel,
    device: &'a Device,
    problem: Problem,
}

impl Finding<'_> {
    /// Shrinks the kernel; returns the problem and the source of the smallest kernel that has it.
    fn describe(&self, reference: &Device) -> String {
        let case = shrink_kernel(&self.kernel, &self.problem, reference, self.device).case();
        let problem = find_problem(&case, reference, self.device);
        format!("{}\n{}\n{case:?}", problem.as_ref().unwrap_or(&self.problem), case.source)
    }
}

/// Runs the kernel of each seed on each device; returns those that have a problem.
fn find_problems<'a>(
    seeds: Range<u64>,
    features: scry_fuzz::Features,
    reference: &'a Device,
    others: &'a [Device],
) -> impl Iterator<Item = Finding<'a>> {
    let runs = seeds.flat_map(move |seed| others.iter().map(move |device| (seed, device)));
    runs.filter_map(move |(seed, device)| {
        let kernel = kernel(seed, features.for_seed(seed));
        let problem = find_problem(&kernel.case(), reference, device)?;
        Some(Finding { seed, kernel, device, problem })
    })
}

/// Returns the optional features that all devices have.
fn common_features(devices: &[Device]) -> scry_fuzz::Features {
    let all = |feature| devices.iter().all(|device| device.info().features.contains(feature));
    scry_fuzz::Features {
        f16: all(Features::F16),
        f64: all(Features::F64),
        i64: all(Features::I64),
        i16: all(Features::I16),
    }
}

/// A problem of a kernel on a device.
enum Problem {
    /// The device's bytes differ from the reference's.
    Difference(String),
    /// The device, or the reference, does not run the kernel.
    Failure(GpuError),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Difference(text) => f.write_str(text),
            Self::Failure(error) => write!(f, "rejected: {error}"),
        }
    }
}

impl Problem {
    /// Returns whether a shrunk kernel with the problem `other` still shows this one.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Failure(one), Self::Failure(other)) => is_same_failure(one, other),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// Returns the smallest kernel that was found to have the same problem.
fn shrink_kernel(
    kernel: &RandomKernel,
    problem: &Problem,
    reference: &Device,
    device: &Device,
) -> RandomKernel {
    let deadline = Instant::now() + SHRINKING_LIMIT;
    shrink(kernel, MAX_CANDIDATES, |smaller| {
        if Instant::now() > deadline {
            return false;
        }
        let found = find_problem(&smaller.case(), reference, device);
        found.is_some_and(|found| found.is_like(problem))
    })
}

/// Returns the problem of a kernel on a device, if there is one.
fn find_problem(case: &Case, reference: &Device, device: &Device) -> Option<Problem> {
    match run_and_compare(case, reference, device) {
        Ok(Verdict::Compared(outputs)) => {
            format_first_difference(&outputs, reference, device).map(Problem::Difference)
        }
        Ok(Verdict::Unsupported(error)) | Err(error) => Some(Problem::Failure(error)),
    }
}

/// Runs a kernel on both devices and compares the bytes of all buffers.
fn run_and_compare(case: &Case, reference: &Device, device: &Device) -> Result<Verdict, GpuError> {
    let mut launch = Launch::workgroups(case.groups);
    if let Some(bytes) = &case.immediates {
        launch = launch.immediate_bytes(bytes.clone());
    }
    let contents: Vec<Bytes<'_>> = case.buffers.iter().map(|bytes| Bytes(bytes)).collect();
    let contents: Vec<&dyn Contents> = contents.iter().map(|bytes| bytes as _).collect();
    let options = CompileOptions::default();
    let workload =
        Workload { wgsl: &case.source, options: &options, contents: &contents, launch: &launch };
    workload.verify(device, &workload.run(reference)?, 0)
}

/// Returns a device with f64 and one without, and the feature f64 for random kernels.
fn devices_with_and_without_f64() -> ([Device; 2], scry_fuzz::Features) {
    let mut without = null_info();
    without.features -= Features::F64;
    let features = scry_fuzz::Features { f64: true, ..scry_fuzz::Features::default() };
    ([null_info(), without].map(|info| observed(info).0), features)
}

/// A kernel that a device rejects is shrunk like one with a different result.
#[test]
fn rejected_kernels_are_shrunk() {
    let ([reference, device], features) = devices_with_and_without_f64();
    let others = [device];
    let found = find_problems(0..20, features, &reference, &others).next();
    let Finding { kernel, device, problem, .. } = found.expect("some kernels use f64");
    assert!(matches!(problem, Problem::Failure(GpuError::Unsupported(_))), "{problem}");
    let small = shrink_kernel(&kernel, &problem, &reference, device).case().source;
    assert!(small.lines().count() < 20, "{small}");
    assert!(small.contains("f64"), "{small}");
}

#[test]
fn search_continues_after_a_problem() {
    let ([reference, device], features) = devices_with_and_without_f64();
    let others = [device];
    let mut found = find_problems(0..20, features, &reference, &others).map(|found| found.seed);
    let seeds = [found.next(), found.next()];
    assert!(matches!(seeds, [Some(one), Some(other)] if one < other), "{seeds:?}");
}
