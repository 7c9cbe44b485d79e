//! Checks buffers against the arguments of a plan, before anything is compiled or allocated.

use scry_ir::Scalar;
use scry_ptx::PtxType;
use scry_ptx::kernels::{BufferAccess, BufferParameter, Plan};

use crate::api::binding::Binding;
use crate::api::device::Device;
use crate::api::error::{ArgumentError, CapabilityError, GpuError, Result};
use crate::api::native::{NativeBinding, NativeInterface};

/// The function that the program called, and the sizes that it passed, for errors.
#[derive(Clone, Copy)]
pub(super) struct Call<'c> {
    pub(super) function: &'c str,
    pub(super) sizes: &'c [(&'static str, u64)],
}

impl Call<'_> {
    /// Returns the error for an argument of the call; `problem` is the predicate of the sentence.
    pub(super) fn argument_error(self, argument: String, problem: String, help: &str) -> GpuError {
        GpuError::Argument(ArgumentError {
            label: None,
            function: Some(self.function.to_owned().into()),
            kernel: None,
            argument,
            problem,
            help: help.to_owned(),
        })
    }

    /// Converts the error of a library kernel to one of the function that chose it.
    pub(super) fn for_function(self, error: GpuError) -> GpuError {
        match error {
            GpuError::Capability(error) => {
                let function = Some(self.function.to_owned().into());
                GpuError::Capability(CapabilityError { function, kernel: None, ..error })
            }
            other => other.in_function(self.function.to_owned()),
        }
    }

    /// Returns what determines the lengths of buffers: the sizes as in `m=3, n=5`, or "the plan".
    fn sizes_or_plan(self) -> String {
        if self.sizes.is_empty() { "the plan".to_owned() } else { self.list_sizes() }
    }

    /// Returns the function with its sizes, as in `Kernels::matmul (m=3, n=5, k=3)`.
    pub(super) fn description(self) -> String {
        match self.sizes {
            [] => self.function.to_owned(),
            _ => format!("{} ({})", self.function, self.list_sizes()),
        }
    }

    /// Returns the sizes, as in `m=3, n=5, k=3`.
    fn list_sizes(self) -> String {
        let sizes: Vec<_> =
            self.sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
        sizes.join(", ")
    }
}

/// Checks number, devices, types, lengths, alignment and overlaps of the buffers of a plan.
pub(super) fn check_arguments(
    device: &Device,
    call: Call<'_>,
    plan: &Plan,
    buffers: &[&dyn Binding],
) -> Result<()> {
    let declared: Vec<_> = plan.arguments.iter().map(native_binding).collect();
    let interface = NativeInterface::new(declared, [1; 3]);
    interface.check_for(device, call.function, Some(&call.sizes_or_plan()), buffers)
}

/// Converts a buffer of a plan to a binding of the core.
fn native_binding(buffer: &BufferParameter) -> NativeBinding {
    let scalar = scalar_type(buffer.element);
    let binding = match (scalar, buffer.access) {
        (Some(scalar), BufferAccess::Read) => NativeBinding::read(buffer.name, scalar),
        (Some(scalar), BufferAccess::Write) => NativeBinding::read_write(buffer.name, scalar),
        (None, BufferAccess::Read) => NativeBinding::read_bytes(buffer.name),
        (None, BufferAccess::Write) => NativeBinding::read_write_bytes(buffer.name),
    };
    let unit = if scalar.is_some() { 1 } else { u64::from(buffer.element.size()) };
    binding.with_min_len(buffer.len.saturating_mul(unit))
}

/// Returns the scalar type; `None` for blocks of bytes.
fn scalar_type(element: PtxType) -> Option<Scalar> {
    match element {
        PtxType::F16 => Some(Scalar::F16),
        PtxType::Bf16 => Some(Scalar::BF16),
        PtxType::F32 => Some(Scalar::F32),
        PtxType::F64 => Some(Scalar::F64),
        PtxType::U32 | PtxType::B32 => Some(Scalar::U32),
        PtxType::S32 => Some(Scalar::I32),
        _ => None,
    }
}
