//! Converts errors of scry-ptx to errors of a device.

use scry_ptx::Target;
use scry_ptx::kernels::{BufferSlot, PlanError, PtxKernel};

use super::check::Call;
use crate::api::error::{ArgumentError, CapabilityError, GpuError, TooLargeError};
use crate::api::info::DeviceInfo;

/// Converts the error of planning to one that names the called function.
pub(super) fn plan_error(info: &DeviceInfo, call: Call<'_>, error: PlanError) -> GpuError {
    match error {
        PlanError::Target { kernel, needed, .. } => {
            call.for_function(missing_capability(info, kernel, needed))
        }
        PlanError::Argument { argument, problem, help, .. } => {
            call.argument_error(argument.to_owned(), problem, help)
        }
        // No other variant exists at present.
        other => call.argument_error(
            "the request".to_owned(),
            format!("is refused: {other}"),
            "change it",
        ),
    }
}

/// Returns the error for a device that lacks a feature of a kernel.
pub(super) fn missing_capability(info: &DeviceInfo, kernel: String, needed: Target) -> GpuError {
    let (major, minor) = (needed.sm() / 10, needed.sm() % 10);
    let (rest, help) = match needed.is_specific() {
        true => (
            format!(", no other ({needed})"),
            "run it on such a GPU (Device::list shows those present), or make the plan with \
             Kernels::gpu_spec",
        ),
        false => (
            format!(" or newer ({needed})"),
            "run it on such a GPU (Device::list shows those present)",
        ),
    };
    GpuError::Capability(CapabilityError {
        function: None,
        kernel: Some(kernel),
        needed: format!("compute capability {major}.{minor}{rest}"),
        device: info.title(),
        present: info.compute_capability.map_or_else(
            || "none".to_owned(),
            |[major, minor]| format!("compute capability {major}.{minor}"),
        ),
        help: help.to_owned(),
    })
}

/// The name of scratch memory in errors.
pub(super) const SCRATCH: &str = "scratch memory";

/// Replaces the help of the error for scratch memory above a limit: the program cannot divide that
/// memory, but the operation.
pub(super) fn scratch_too_large(error: GpuError) -> GpuError {
    match error {
        GpuError::TooLarge(error) => GpuError::TooLarge(TooLargeError {
            what: SCRATCH.to_owned(),
            help: "split the operation over several calls".to_owned(),
            ..error
        }),
        other => other,
    }
}

/// Returns the error for a step that uses a buffer which its plan does not have.
pub(super) fn missing_buffer(place: BufferSlot) -> GpuError {
    GpuError::Argument(ArgumentError {
        label: None,
        function: Some("Kernels::prepare".into()),
        kernel: None,
        argument: "`plan`".to_owned(),
        problem: format!("has a step that uses {place:?}, which the plan does not have"),
        help: "arguments and scratch buffers are counted from 0".to_owned(),
    })
}

/// Returns the error for a launch with a partial cluster, or without blocks.
pub(super) fn partial_cluster(kernel: &dyn PtxKernel, cluster: [u32; 3]) -> GpuError {
    let [x, y, z] = kernel.launch().grid;
    let [a, b, c] = cluster;
    GpuError::Argument(ArgumentError {
        label: None,
        function: None,
        kernel: Some(kernel.name()),
        argument: "grid".to_owned(),
        problem: format!(
            "{x} x {y} x {z} blocks, not a multiple of the cluster, {a} x {b} x {c} blocks"
        ),
        help: "launch a positive multiple of the cluster on each axis".to_owned(),
    })
}
