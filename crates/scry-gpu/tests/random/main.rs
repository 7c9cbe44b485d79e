//! Random kernels: every device must compute the same bytes as the CPU.
//!
//! `SCRY_FUZZ_SEEDS` is the number of kernels, `SCRY_FUZZ_FIRST` the first seed, and
//! `SCRY_FUZZ_PROBLEMS` the number of problems after which the test ends (default 1).

mod found;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "random data comes with the kernels here")]
mod support;

use std::ops::Range;
use std::time::{Duration, Instant};

use scry_fuzz::{Case, RandomKernel, kernel, shrink};
use scry_gpu::testing::{null_info, observed};
use scry_gpu::verify::{Bytes, Contents, Verdict, Work, explain, is_same_failure};
use scry_gpu::{BackendKind, CompileOptions, Device, Features, GpuError, Launch};

/// Default number of kernels: half a minute on a software device.
const SEEDS: u64 = 100;
/// Maximum number of candidates when shrinking a failing kernel.
const ATTEMPTS: usize = 3000;
/// Time limit of shrinking: drivers may take long to reject a kernel.
const SHRINKING: Duration = Duration::from_secs(30);

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
    let seeds = first..first + number("SCRY_FUZZ_SEEDS").unwrap_or(SEEDS);
    let most = number("SCRY_FUZZ_PROBLEMS").unwrap_or(1);
    let found = problems(seeds, features, reference, others).map(|found| {
        // Printed at once, because a run of many kernels may be interrupted.
        eprintln!("seed {}: {}", found.seed, found.problem);
        eprintln!("seed {}, made small: {}", found.seed, found.described(reference));
        found.seed
    });
    let found: Vec<_> = found.take(most as usize).collect();
    assert!(found.is_empty(), "problems, each described above, with the seeds {found:?}");
}

/// A kernel with a problem on a device.
struct Found<'a> {
    seed: u64,
    kernel: RandomKernel,
    device: &'a Device,
    problem: Problem,
}

impl Found<'_> {
    /// The problem, and the smallest kernel found that has it.
    fn described(&self, reference: &Device) -> String {
        let case = smallest(&self.kernel, &self.problem, reference, self.device).case();
        let shown = problem(&case, reference, self.device);
        format!("{}\n{}\n{case:?}", shown.as_ref().unwrap_or(&self.problem), case.source)
    }
}

fn problems<'a>(
    seeds: Range<u64>,
    features: scry_fuzz::Features,
    reference: &'a Device,
    others: &'a [Device],
) -> impl Iterator<Item = Found<'a>> {
    let tried = seeds.flat_map(move |seed| others.iter().map(move |device| (seed, device)));
    tried.filter_map(move |(seed, device)| {
        let kernel = kernel(seed, features.for_seed(seed));
        let problem = problem(&kernel.case(), reference, device)?;
        Some(Found { seed, kernel, device, problem })
    })
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
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

/// A problem of a kernel on a device.
enum Problem {
    /// The device's bytes differ from the reference's.
    Difference(String),
    /// One of the two does not run it.
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
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Failure(one), Self::Failure(other)) => is_same_failure(one, other),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// The smallest kernel found that has the same problem.
fn smallest(
    kernel: &RandomKernel,
    wanted: &Problem,
    reference: &Device,
    device: &Device,
) -> RandomKernel {
    let end = Instant::now() + SHRINKING;
    shrink(kernel, ATTEMPTS, |smaller| {
        if Instant::now() > end {
            return false;
        }
        let found = problem(&smaller.case(), reference, device);
        found.is_some_and(|found| found.is_like(wanted))
    })
}

fn problem(case: &Case, reference: &Device, device: &Device) -> Option<Problem> {
    match compared(case, reference, device) {
        Ok(Verdict::Ran(outputs)) => explain(&outputs, reference, device).map(Problem::Difference),
        Ok(Verdict::Unable(error)) | Err(error) => Some(Problem::Failure(error)),
    }
}

fn compared(case: &Case, reference: &Device, device: &Device) -> Result<Verdict, GpuError> {
    let mut launch = Launch::workgroups(case.groups);
    if let Some(bytes) = &case.immediates {
        launch = launch.immediate_bytes(bytes.clone());
    }
    let contents: Vec<Bytes<'_>> = case.buffers.iter().map(|bytes| Bytes(bytes)).collect();
    let contents: Vec<&dyn Contents> = contents.iter().map(|bytes| bytes as _).collect();
    let options = CompileOptions::default();
    let work = Work { wgsl: &case.source, options: &options, contents: &contents, launch: &launch };
    work.verify(device, &work.run(reference)?, 0)
}

/// Two devices, one of which lacks a feature of some random kernels.
fn unequal() -> ([Device; 2], scry_fuzz::Features) {
    let mut lacking = null_info();
    lacking.features -= Features::F64;
    let only = scry_fuzz::Features { f64: true, ..scry_fuzz::Features::default() };
    ([null_info(), lacking].map(|info| observed(info).0), only)
}

/// A kernel that a device rejects is shrunk like one with a different result.
#[test]
fn rejected_kernels_are_shrunk() {
    let ([reference, device], only) = unequal();
    let others = [device];
    let found = problems(0..20, only, &reference, &others).next();
    let Found { kernel, device, problem: found, .. } = found.expect("some have 64-bit floats");
    assert!(matches!(found, Problem::Failure(GpuError::Unsupported(_))), "{found}");
    let small = smallest(&kernel, &found, &reference, device).case().source;
    assert!(small.lines().count() < 20, "{small}");
    assert!(small.contains("f64"), "{small}");
}

#[test]
fn search_continues_after_a_problem() {
    let ([reference, device], only) = unequal();
    let others = [device];
    let mut found = problems(0..20, only, &reference, &others).map(|found| found.seed);
    let seeds = [found.next(), found.next()];
    assert!(matches!(seeds, [Some(one), Some(other)] if one < other), "{seeds:?}");
}
