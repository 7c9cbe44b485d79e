//! The outcome of one random kernel on one device.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use scry_fuzz::{Case, RandomKernel, shrink};
use scry_gpu::verify::{
    Bytes, Contents, Verdict, Workload, format_first_difference, is_same_failure,
};
use scry_gpu::{CompileOptions, Device, GpuError, Launch};

use super::progress::{MinimisationClock, Progress, minimising_text};

/// Maximum number of candidates of a minimisation.
const MAX_CANDIDATES: usize = 3000;

/// A problem of a kernel on a device.
pub enum Problem {
    /// The results differ.
    Difference(String),
    /// The kernel was rejected as invalid, or a device does not support it.
    Rejected(GpuError),
    /// Running the kernel panicked: a bug of scry.
    Panic,
}

impl Problem {
    /// Describes the problem.
    pub fn text(&self) -> String {
        match self {
            Self::Difference(text) => text.clone(),
            Self::Rejected(GpuError::Shader(error)) => format!("the kernel is rejected: {error}"),
            Self::Rejected(error) => format!("a device rejects the kernel: {error}"),
            Self::Panic => "bug in scry: running the kernel panicked".to_owned(),
        }
    }

    /// Returns whether a smaller kernel with the other problem may replace one with this problem.
    fn is_same_kind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Rejected(one), Self::Rejected(other)) => is_same_failure(one, other),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// The parameters of a minimisation.
pub struct Minimisation<'a> {
    pub seed: u64,
    /// The maximum time.
    pub limit: Duration,
    pub progress: &'a Progress,
}

/// Runs a kernel. Returns its problem on a device, if any, and the smallest kernel found that has
/// it.
pub fn find_problem(
    kernel: &RandomKernel,
    reference: &Device,
    device: &Device,
    minimisation: &Minimisation<'_>,
) -> Option<(Problem, Case)> {
    let problem = problem(&kernel.case(), reference, device)?;
    // A rejected source is not even of the same kind as itself, and is not minimised: a smaller one
    // may be rejected for another reason.
    if !problem.is_same_kind(&problem) {
        return Some((problem, kernel.case()));
    }
    let Minimisation { seed, limit, progress } = *minimisation;
    let mut clock = MinimisationClock::new(limit);
    progress.activity(minimising_text(seed, 0));
    let small = shrink(kernel, MAX_CANDIDATES, |smaller| {
        if !clock.try_next(|tried| progress.activity(minimising_text(seed, tried))) {
            return false;
        }
        let found = self::problem(&smaller.case(), reference, device);
        found.is_some_and(|found| found.is_same_kind(&problem))
    });
    progress.activity(String::new());
    let small = small.case();
    let problem = self::problem(&small, reference, device).unwrap_or(problem);
    Some((problem, small))
}

fn problem(case: &Case, reference: &Device, device: &Device) -> Option<Problem> {
    let ran = catch_unwind(AssertUnwindSafe(|| compare_results(case, reference, device)));
    match ran {
        Ok(Ok(Verdict::Compared(outputs))) => {
            format_first_difference(&outputs, reference, device).map(Problem::Difference)
        }
        Ok(Ok(Verdict::Unsupported(error)) | Err(error)) => Some(Problem::Rejected(error)),
        Err(_) => Some(Problem::Panic),
    }
}

fn compare_results(case: &Case, reference: &Device, device: &Device) -> Result<Verdict, GpuError> {
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
