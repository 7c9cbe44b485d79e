//! What the plans of scry-ptx need of a device, and their errors.

use scry_gpu::{CapabilityError, DType, DeviceInfo, GpuError};
use scry_ptx::kernels::{BufferSlot, GpuSpec, Plan, PlanError, PtxKernel};
use scry_ptx::{PtxType, Target};

use crate::call::Call;
use crate::kernels::Kernels;

/// Returns why a device cannot run a plan, as the predicate of a sentence; `None` if it can.
pub(crate) fn obstacle(
    kernels: &Kernels,
    plan: impl FnOnce(GpuSpec) -> Result<Plan, PlanError>,
) -> Option<String> {
    let Some(spec) = kernels.gpu_spec() else {
        return Some("needs CUDA".to_owned());
    };
    match plan(spec) {
        Ok(_) => None,
        Err(PlanError::Target { needed, .. }) => Some(format!("needs {}", capability(needed))),
        Err(PlanError::Argument { argument, problem, help, .. }) => {
            Some(format!("rejects an argument: {argument} {problem} ({help})"))
        }
        Err(other) => Some(format!("does not support it: {other}")),
    }
}

/// Returns the plan for the device of a library that runs PTX.
pub(crate) fn plan(
    kernels: &Kernels,
    plan: impl FnOnce(GpuSpec) -> Result<Plan, PlanError>,
) -> Result<Plan, PlanError> {
    let needed = Target::SM_80;
    let spec = kernels.gpu_spec().ok_or_else(|| PlanError::Target {
        kernel: "the kernel library".to_owned(),
        needed,
        target: needed,
    })?;
    plan(spec)
}

/// Returns the PTX type of an element type that PTX kernels support.
pub(crate) fn element(dtype: DType) -> PtxType {
    match dtype {
        DType::F16 => PtxType::F16,
        DType::BF16 => PtxType::Bf16,
        _ => PtxType::F32,
    }
}

/// Returns the element type of a PTX type, the inverse of [`element`].
pub(crate) fn dtype(element: PtxType) -> DType {
    match element {
        PtxType::F16 => DType::F16,
        PtxType::Bf16 => DType::BF16,
        _ => DType::F32,
    }
}

/// Converts the error of planning to one that names the called function.
pub(crate) fn plan_error(info: &DeviceInfo, call: &Call, error: PlanError) -> GpuError {
    match error {
        PlanError::Target { needed, .. } => {
            GpuError::Capability(missing_capability(info, call, needed))
        }
        PlanError::Argument { argument, problem, help, .. } => {
            call.argument_error(argument, problem, help)
        }
        // No other variant exists at present.
        other => call.argument_error("the request", format!("is rejected: {other}"), "change it"),
    }
}

/// Returns the error for a device that lacks a feature of a kernel.
pub(crate) fn missing_capability(
    info: &DeviceInfo,
    call: &Call,
    needed: Target,
) -> CapabilityError {
    let help = match needed.is_specific() {
        true => {
            "run it on such a GPU (Device::list shows those present), or make the plan with \
             Kernels::gpu_spec"
        }
        false => "run it on such a GPU (Device::list shows those present)",
    };
    let present = info.compute_capability.map_or_else(
        || "none".to_owned(),
        |[major, minor]| format!("compute capability {major}.{minor}"),
    );
    let needed = capability(needed);
    CapabilityError::new(&call.description(), needed, info.name.clone(), present, help)
}

/// Describes a target as `compute capability 9.0, no other (sm_90a)`.
fn capability(needed: Target) -> String {
    let (major, minor) = (needed.sm() / 10, needed.sm() % 10);
    let rest = if needed.is_specific() { ", no other" } else { " or newer" };
    format!("compute capability {major}.{minor}{rest} ({needed})")
}

/// Returns the error for a step that uses a buffer which its plan does not have.
pub(crate) fn missing_buffer(call: &Call, slot: BufferSlot) -> GpuError {
    call.argument_error(
        "`plan`",
        format!("has a step that uses {slot:?}, which the plan does not have"),
        "arguments and scratch buffers are counted from 0",
    )
}

/// Returns the error for a launch with a partial cluster, or without blocks.
pub(crate) fn partial_cluster(call: &Call, kernel: &dyn PtxKernel, cluster: [u32; 3]) -> GpuError {
    let [x, y, z] = kernel.launch().grid;
    let [a, b, c] = cluster;
    call.argument_error(
        format!("the grid of kernel `{}`", kernel.name()),
        format!(
            "has {x} x {y} x {z} blocks, not a multiple of the cluster, {a} x {b} x {c} blocks"
        ),
        "launch a positive multiple of the cluster on each axis",
    )
}
