//! The outcome of one random kernel on one device.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use scry_fuzz::{Case, RandomKernel, shrink};
use scry_gpu::verify::{Bytes, Contents, Verdict, Work, explain, is_same_failure};
use scry_gpu::{CompileOptions, Device, GpuError, Launch};

use super::progress::{Minimising, Progress, minimising_text};

/// Maximum number of candidates of a minimisation.
const ATTEMPTS: usize = 3000;

/// A problem of a kernel on a device.
pub enum Problem {
    /// The results differ.
    Difference(String),
    /// The kernel was refused, or a device does not support it.
    Refused(GpuError),
    /// Running the kernel panicked: a bug of scry.
    Panic,
}

impl Problem {
    /// Describes the problem.
    pub fn text(&self) -> String {
        match self {
            Self::Difference(text) => text.clone(),
            Self::Refused(GpuError::Shader(error)) => format!("the kernel is refused: {error}"),
            Self::Refused(error) => format!("a device refuses the kernel: {error}"),
            Self::Panic => "bug in scry: running the kernel panicked".to_owned(),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Refused(one), Self::Refused(other)) => is_same_failure(one, other),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// The parameters of a minimisation.
pub struct Search<'a> {
    pub seed: u64,
    /// The maximum time.
    pub limit: Duration,
    pub progress: &'a Progress,
}

/// Runs a kernel; returns its problem on a device, and the smallest kernel with that problem.
pub fn try_one(
    kernel: &RandomKernel,
    reference: &Device,
    device: &Device,
    search: &Search<'_>,
) -> Option<(Problem, Case)> {
    let problem = problem(&kernel.case(), reference, device)?;
    if !problem.is_like(&problem) {
        return Some((problem, kernel.case()));
    }
    let Search { seed, limit, progress } = *search;
    let mut limit = Minimising::new(limit);
    progress.activity(minimising_text(seed, 0));
    let small = shrink(kernel, ATTEMPTS, |smaller| {
        if !limit.try_next(|tried| progress.activity(minimising_text(seed, tried))) {
            return false;
        }
        let found = self::problem(&smaller.case(), reference, device);
        found.is_some_and(|found| found.is_like(&problem))
    });
    progress.activity(String::new());
    let small = small.case();
    let shown = self::problem(&small, reference, device).unwrap_or(problem);
    Some((shown, small))
}

fn problem(case: &Case, reference: &Device, device: &Device) -> Option<Problem> {
    let ran = catch_unwind(AssertUnwindSafe(|| compare_results(case, reference, device)));
    match ran {
        Ok(Ok(Verdict::Ran(outputs))) => {
            explain(&outputs, reference, device).map(Problem::Difference)
        }
        Ok(Ok(Verdict::Unable(error)) | Err(error)) => Some(Problem::Refused(error)),
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
    let work = Work { wgsl: &case.source, options: &options, contents: &contents, launch: &launch };
    work.verify(device, &work.run(reference)?, 0)
}
