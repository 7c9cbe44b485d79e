//! One hostile kernel on one device.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use scry_fuzz::hostile::{Comparable, HostileKernel, Rules, kernel, shrink};
use scry_gpu::verify::{GuardedRun, compare, run_guarded};
use scry_gpu::{BackendKind, Device, DeviceKind, GpuError, Launch};
use scry_ir::Program;
use scry_ir::kir::{Kir, KirOptions, Stmt};

use super::super::progress::MinimisationClock;

/// Time limit of kernels that may loop forever.
const ENDLESS_LIMIT: Duration = Duration::from_millis(200);
/// Time limit of finite kernels. It is long, because other processes may occupy the device.
const LONG_LIMIT: Duration = Duration::from_secs(20);
/// Maximum number of candidates of a minimisation.
const MAX_CANDIDATES: usize = 2000;
/// Maximum time of a minimisation.
const MINIMISE_LIMIT: Duration = Duration::from_secs(20);

/// A problem of a kernel on a device.
pub(super) struct Problem {
    pub kind: &'static str,
    pub message: String,
}

/// The outcome of a kernel.
pub(super) enum Outcome {
    /// No problem was found.
    Passed,
    /// The time limit cancelled a kernel that may loop forever.
    Cancelled,
    Failed(Problem),
}

/// A device, and the reference for its results.
pub(super) struct Trial {
    pub device: Device,
    pub reference: Option<Device>,
}

impl Trial {
    /// Returns whether the device executes the kernel IR, not SPIR-V that naga writes.
    fn executes_kernel_ir(&self) -> bool {
        let is_naga = std::env::var_os("SCRY_SPIRV").is_some_and(|writer| writer == "naga");
        self.device.backend_kind() != BackendKind::Vulkan || !is_naga
    }

    /// Returns the rules by which kernels for this device are generated. Loops that may not
    /// terminate need launches that can be cancelled, which naga's SPIR-V writer and wgpu do not
    /// support.
    pub fn rules(&self) -> Rules {
        let is_wgpu = self.device.backend_kind() == BackendKind::Wgpu;
        Rules { endless: self.executes_kernel_ir() && !is_wgpu }
    }

    /// Returns the time limit of kernels that may loop forever. Software drivers of Vulkan compile
    /// kernels during their first launch, which cannot be cancelled.
    fn limit(&self) -> Duration {
        match self.device.backend_kind() {
            BackendKind::Vulkan if self.device.info().kind == DeviceKind::Software => LONG_LIMIT,
            _ => ENDLESS_LIMIT,
        }
    }

    /// Returns whether the driver aborts long loops, which kernels then report as
    /// [`GpuError::Kernel`].
    fn aborts_loops(&self) -> bool {
        self.device.info().workarounds.iter().any(|it| it.name == "report-aborted-loops")
    }

    /// Runs a kernel and returns its outcome.
    pub fn run_kernel(&self, kernel: &HostileKernel) -> Outcome {
        let ran = catch_unwind(AssertUnwindSafe(|| self.run_and_check(kernel)));
        match ran {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => failed("error", error.to_string()),
            Err(_) => failed("crash", "running the kernel panicked".into()),
        }
    }

    fn run_and_check(&self, kernel: &HostileKernel) -> Result<Outcome, GpuError> {
        let ran = match self.run_limited(kernel) {
            Err(GpuError::DeviceLost(error)) if kernel.may_not_terminate() => {
                let unpolled = unpolled_loops(&kernel.case().source);
                if unpolled.is_empty() {
                    return Err(GpuError::DeviceLost(error));
                }
                let message = format!("loops without a poll: {}; {error}", unpolled.join(", "));
                return Ok(failed("unpolled", message));
            }
            Err(GpuError::Kernel(_)) if kernel.may_not_terminate() && self.aborts_loops() => {
                return Ok(self.check_after_cancellation());
            }
            ran => ran?,
        };
        if let Some(region) = ran.corrupted.first() {
            return Ok(failed("corruption", region.to_string()));
        }
        if ran.timed_out {
            return Ok(match kernel.may_not_terminate() {
                true => self.check_after_cancellation(),
                false => failed(
                    "timeout",
                    "all its loops terminate, but the kernel did not finish".into(),
                ),
            });
        }
        let difference = self.difference(kernel, &ran)?;
        Ok(difference.map_or(Outcome::Passed, |message| failed("difference", message)))
    }

    fn run_limited(&self, kernel: &HostileKernel) -> Result<GuardedRun, GpuError> {
        let limit = if kernel.may_not_terminate() { self.limit() } else { LONG_LIMIT };
        let cancels = self.rules().endless;
        self.device.set_time_limit(cancels.then_some(limit));
        run(kernel, &self.device)
    }

    /// Checks that the device still works after a cancellation.
    fn check_after_cancellation(&self) -> Outcome {
        let tame = kernel(0, scry_fuzz::Features::default(), Rules { endless: false });
        match self.run_limited(&tame) {
            Ok(ran) if !ran.timed_out => Outcome::Cancelled,
            Ok(_) => failed(
                "timeout",
                "the kernel was cancelled, and the next one did not finish".into(),
            ),
            Err(error) => failed("timeout", format!("after the kernel was cancelled: {error}")),
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
        let is_compared = match kernel.comparable() {
            Comparable::Nothing => false,
            Comparable::SameIr => self.executes_kernel_ir(),
            Comparable::Everywhere => true,
        };
        if !is_compared {
            return Ok(None);
        }
        let expected = run(kernel, reference)?;
        let mut pairs = expected.outputs.iter().zip(&ran.outputs);
        Ok(pairs.find_map(|(expected, found)| {
            let first = compare(&expected.layout, &expected.bytes, &found.bytes, 0);
            let first = first.first_difference?;
            let place = format!("{}{}", expected.name, first.path);
            Some(format!("{place} is {}, not {}", first.found, first.expected))
        }))
    }

    /// Returns the smallest kernel found within `limit` that has a problem of the same kind;
    /// `report` periodically receives the number of candidates tried. A kernel with an error is
    /// returned unchanged: a smaller one may fail for another reason. So is one with an unpolled
    /// loop, in which the device was lost.
    pub fn smallest(
        &self,
        kernel: &HostileKernel,
        problem: &Problem,
        limit: Duration,
        mut report: impl FnMut(u64),
    ) -> HostileKernel {
        let mut clock = MinimisationClock::new(limit.min(MINIMISE_LIMIT));
        shrink(kernel, MAX_CANDIDATES, |smaller| {
            let is_same_kind = |outcome| match outcome {
                Outcome::Failed(found) => found.kind == problem.kind,
                Outcome::Passed | Outcome::Cancelled => false,
            };
            !matches!(problem.kind, "error" | "unpolled")
                && clock.try_next(&mut report)
                && is_same_kind(self.run_kernel(smaller))
        })
    }
}

/// Returns the positions of the loops in which an invocation does not poll for cancellation: those
/// that are proven to terminate, except in loops that poll.
fn unpolled_loops(source: &str) -> Vec<String> {
    let kir = Program::parse(source).and_then(|it| it.to_kir(&KirOptions { checked: true }));
    let mut positions = Vec::new();
    if let Ok(kir) = kir {
        // As the backends compile it.
        let mined = kir.strip_mined();
        collect_unpolled_loops(&mined, &mined.body, &mut positions);
    }
    positions
}

fn collect_unpolled_loops(kir: &Kir, block: &[Stmt], positions: &mut Vec<String>) {
    for stmt in block {
        match stmt {
            Stmt::Loop { finite: false, .. } => {}
            Stmt::Loop { label, .. } => positions.push(match kir.source.label(*label) {
                Some(at) => format!("{}:{}", at.line, at.column),
                None => label.to_string(),
            }),
            _ => stmt.blocks().for_each(|block| collect_unpolled_loops(kir, block, positions)),
        }
    }
}

fn failed(kind: &'static str, message: String) -> Outcome {
    Outcome::Failed(Problem { kind, message })
}

fn run(kernel: &HostileKernel, device: &Device) -> Result<GuardedRun, GpuError> {
    let case = kernel.case();
    let launch = Launch::workgroups(case.groups);
    run_guarded(device, &case.source, &case.buffers, &launch, case.seed)
}

#[cfg(test)]
mod tests {
    use scry_gpu::testing::{Fault, FaultPlan, open_with_faults};

    use super::*;

    #[test]
    fn unpolled_loops_have_positions() {
        let unpolled = |statement: &str| {
            unpolled_loops(&format!(
                "@group(0) @binding(0) var<storage, read_write> sum: u32;
                @group(0) @binding(1) var<uniform> n: u32;
                @compute @workgroup_size(1) fn main() {{\n{statement}\n}}"
            ))
        };
        assert_eq!(unpolled("loop { sum += n; if sum == 7u { break; } }"), [""; 0]);
        assert_eq!(unpolled("for (var i = 0u; i < n; i++) { sum += i * i; }"), [""; 0]);
        assert_eq!(unpolled("for (var i = 0u; i < 9u; i++) { sum *= sum; }"), ["4:1"]);
        let barrier = "if n > 0 { for (var i = 0u; i < n; i++) { workgroupBarrier(); } }";
        assert_eq!(unpolled(barrier), ["4:12"]);
    }

    /// A device that is lost in a kernel with an endless loop and an unpolled one.
    #[test]
    fn loss_in_unpolled_loop_fails() {
        let is_suitable = |kernel: &HostileKernel| {
            kernel.may_not_terminate() && !unpolled_loops(&kernel.case().source).is_empty()
        };
        let rules = Rules { endless: true };
        let kernels = (0..).map(|seed| kernel(seed, scry_fuzz::Features::default(), rules));
        let kernel = kernels.take(500).find(is_suitable).expect("one in 500 kernels has both");
        let plan = FaultPlan::new(Fault::DeviceLost, u64::MAX);
        let trial = Trial { device: open_with_faults("null", &plan).unwrap(), reference: None };
        assert!(!matches!(trial.run_kernel(&kernel), Outcome::Failed(_)));
        plan.fail_after(0);
        let Outcome::Failed(problem) = trial.run_kernel(&kernel) else { panic!("it is lost") };
        assert_eq!(problem.kind, "unpolled");
        let position = &unpolled_loops(&kernel.case().source)[0];
        let start = format!("loops without a poll: {position}");
        assert!(problem.message.starts_with(&start), "{}", problem.message);
        let small = trial.smallest(&kernel, &problem, MINIMISE_LIMIT, |_| {});
        assert_eq!(small.case().source, kernel.case().source, "a lost device runs no candidates");
    }
}
