//! One hostile kernel on one device.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use scry_fuzz::hostile::{Comparable, HostileKernel, Rules, kernel, shrink};
use scry_gpu::verify::{GuardedRun, compare, run_guarded};
use scry_gpu::{BackendKind, Device, GpuError, Launch};
use scry_ir::Program;
use scry_ir::kir::{KirOptions, Stmt, any_stmt};

use super::super::progress::Shrinking;

/// Time limit of kernels that may loop forever.
const LIMIT: Duration = Duration::from_millis(200);
/// Time limit of finite kernels: other processes may occupy the device for long.
const LONG_LIMIT: Duration = Duration::from_secs(20);
/// Maximum candidates of a search for a smaller kernel.
const ATTEMPTS: usize = 2000;
/// Maximum time of that search.
const SHRINKING: Duration = Duration::from_secs(20);

/// A problem of a kernel on a device.
pub(super) struct Problem {
    pub kind: &'static str,
    pub what: String,
}

/// The outcome of a kernel.
pub(super) enum Outcome {
    Right,
    /// The time limit cancelled a kernel that may loop forever.
    Ended,
    /// The device was lost in a kernel with a finite loop that exceeded the time limit: such loops
    /// do not poll for cancellation.
    Long,
    Wrong(Problem),
}

/// A device, and the reference for its results.
pub(super) struct Trial {
    pub device: Device,
    pub reference: Option<Device>,
}

impl Trial {
    /// Possibly endless loops need a device whose launches can be cancelled.
    pub fn rules(&self) -> Rules {
        Rules { endless: self.device.backend_kind() != BackendKind::Vulkan }
    }

    /// Runs a kernel.
    pub fn outcome(&self, kernel: &HostileKernel) -> Outcome {
        let ran = catch_unwind(AssertUnwindSafe(|| self.ran(kernel)));
        match ran {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => wrong("refused", error.to_string()),
            Err(_) => wrong("crash", "running the kernel ends in a panic".into()),
        }
    }

    fn ran(&self, kernel: &HostileKernel) -> Result<Outcome, GpuError> {
        let ran = match self.limited(kernel) {
            Err(GpuError::DeviceLost(_))
                if kernel.may_not_end() && has_unpolled_loop(&kernel.case().source) =>
            {
                return Ok(Outcome::Long);
            }
            ran => ran?,
        };
        if let Some(region) = ran.corrupted.first() {
            return Ok(wrong("damage", region.to_string()));
        }
        if ran.timed_out {
            return Ok(match kernel.may_not_end() {
                true => self.after_the_end(),
                false => wrong("timeout", "all its loops end, but the kernel did not".into()),
            });
        }
        let difference = self.difference(kernel, &ran)?;
        Ok(difference.map_or(Outcome::Right, |what| wrong("difference", what)))
    }

    fn limited(&self, kernel: &HostileKernel) -> Result<GuardedRun, GpuError> {
        let limit = if kernel.may_not_end() { LIMIT } else { LONG_LIMIT };
        let cancels = self.rules().endless;
        self.device.set_time_limit(cancels.then_some(limit));
        run(kernel, &self.device)
    }

    /// After a cancellation the device must still work.
    fn after_the_end(&self) -> Outcome {
        let tame = kernel(0, scry_fuzz::Features::default(), Rules { endless: false });
        match self.limited(&tame) {
            Ok(ran) if !ran.timed_out => Outcome::Ended,
            Ok(_) => wrong("timeout", "after a kernel that was ended no other one ends".into()),
            Err(error) => wrong("timeout", format!("after a kernel that was ended: {error}")),
        }
    }

    /// Returns the difference between the device's results and the reference's, if the kernel's
    /// results are well-defined.
    fn difference(
        &self,
        kernel: &HostileKernel,
        ran: &GuardedRun,
    ) -> Result<Option<String>, GpuError> {
        let Some(reference) = &self.reference else { return Ok(None) };
        let compared = match kernel.comparable() {
            Comparable::Nothing => false,
            Comparable::SameIr => self.device.backend_kind() == BackendKind::Cuda,
            Comparable::Everywhere => true,
        };
        if !compared {
            return Ok(None);
        }
        let expected = run(kernel, reference)?;
        let mut pairs = expected.outputs.iter().zip(&ran.outputs);
        Ok(pairs.find_map(|(expected, found)| {
            let first = compare(&expected.layout, &expected.bytes, &found.bytes, 0);
            let first = first.first_difference?;
            let place = format!("{}{}", expected.name, first.place);
            Some(format!("{place} is {}, not {}", first.found, first.expected))
        }))
    }

    /// Returns the smallest kernel found within `limit` that has a problem of the same kind;
    /// `report` periodically receives the number of candidates tried.
    pub fn smallest(
        &self,
        kernel: &HostileKernel,
        problem: &Problem,
        limit: Duration,
        mut report: impl FnMut(u64),
    ) -> HostileKernel {
        let mut shrinking = Shrinking::new(limit.min(SHRINKING));
        shrink(kernel, ATTEMPTS, |smaller| {
            let is_like = |outcome| match outcome {
                Outcome::Wrong(found) => found.kind == problem.kind,
                Outcome::Right | Outcome::Ended | Outcome::Long => false,
            };
            problem.kind != "refused"
                && shrinking.goes_on(&mut report)
                && is_like(self.outcome(smaller))
        })
    }
}

/// Returns whether a kernel has a loop that is proven to terminate.
fn has_unpolled_loop(source: &str) -> bool {
    let kir = Program::parse(source).and_then(|it| it.to_kir(&KirOptions { checked: true }));
    kir.is_ok_and(|kir| {
        any_stmt(&kir.body, &mut |stmt| matches!(stmt, Stmt::Loop { finite: true, .. }))
    })
}

fn wrong(kind: &'static str, what: String) -> Outcome {
    Outcome::Wrong(Problem { kind, what })
}

fn run(kernel: &HostileKernel, device: &Device) -> Result<GuardedRun, GpuError> {
    let case = kernel.case();
    let launch = Launch::workgroups(case.groups);
    run_guarded(device, &case.source, &case.buffers, &launch, case.seed)
}
