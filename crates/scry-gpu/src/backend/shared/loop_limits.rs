//! Limits of Mesa's software drivers (llvmpipe): the iterations of loops and the nesting depth of
//! conditions.

use std::sync::Arc;

use scry_ir::{ControlFlow, Program};

use crate::api::error::{GpuError, KernelError, Result};
use crate::api::info::DeviceInfo;
use crate::core::driver::FailureReport;

/// Number of iterations after which llvmpipe ends all loops of the invocations that it executes as
/// one vector.
const MAX_ITERATIONS: u64 = 65_535;

/// Number of these iterations that the kernel cannot use: the driver needs some to zero
/// workgroup memory, and the check for loops that were ended early needs others.
const RESERVED_ITERATIONS: u64 = 4096;

/// Maximum depth of nested conditions, or of nested loops, for which llvmpipe has execution masks.
const MAX_DEPTH: u32 = 80;

/// Levels that llvmpipe may need beyond the measured depth of a kernel.
const DEPTH_MARGIN: u32 = 2;

/// The defects of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoopDefects {
    /// All loops are ended after [`MAX_ITERATIONS`].
    pub(crate) aborts_loops: bool,
    /// Conditions nested more deeply than [`MAX_DEPTH`] are ignored.
    pub(crate) drops_conditions: bool,
}

/// Returns the meaning of the failure reports that launches of a kernel need on a device.
///
/// # Errors
/// [`GpuError::Kernel`] if control flow nests more deeply than the driver supports.
pub(crate) fn failure_report(
    info: &DeviceInfo,
    defects: LoopDefects,
    program: &Program,
    flow: ControlFlow,
) -> Result<Option<Arc<FailureReport>>> {
    let ControlFlow { most_iterations, depth, .. } = flow;
    if defects.drops_conditions && depth + DEPTH_MARGIN > MAX_DEPTH {
        return Err(too_deep(info, program, depth));
    }
    let is_short = |most: u64| most <= MAX_ITERATIONS - RESERVED_ITERATIONS;
    let reports = defects.aborts_loops && !most_iterations.is_some_and(is_short);
    Ok(reports.then(|| {
        let lanes = info.subgroup_size;
        Arc::new(FailureReport {
            problem:
                "was stopped early, and its results are incomplete: the driver ended its loops"
                    .to_owned(),
            limit: format!(
                "{MAX_ITERATIONS} iterations of all loops together, counted for {lanes} \
                 invocations at once"
            ),
            help: "give the work to more invocations or to several launches, or use the CPU \
                     device, which has no such limit"
                .to_owned(),
        })
    }))
}

fn too_deep(info: &DeviceInfo, program: &Program, depth: u32) -> GpuError {
    GpuError::Kernel(KernelError {
        label: None,
        kernel: program.interface().entry_point.clone(),
        device: info.name.clone(),
        driver: info.driver.clone(),
        problem: format!(
            "its control flow nests {depth} levels deep, counting early returns, `continue` and \
             the cases of `switch`, and the driver would drop the innermost conditions"
        ),
        limit: Some(format!(
            "{MAX_DEPTH} levels, of which the driver may need {DEPTH_MARGIN} itself"
        )),
        help: "nest less, look cases up in an array, or use the CPU device, which has no such \
                 limit"
            .to_owned(),
    })
}
