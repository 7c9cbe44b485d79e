//! Checks buffers against the arguments of a plan, before anything is compiled or allocated.

use scry_ir::Scalar;
use scry_ptx::PtxType;
use scry_ptx::kernels::{BufferAccess, BufferParameter, Plan};

use crate::api::binding::Binding;
use crate::api::device::Device;
use crate::api::error::{ArgumentError, CapabilityError, GpuError, Result};
use crate::api::native::{NativeBinding, NativeInterface};
use crate::core::check::{self, Argument};
use crate::core::encode;
use crate::core::same_device::same_device_as;

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
    check_count(call, plan, buffers.len())?;
    let views: Vec<_> = buffers.iter().map(|buffer| buffer.view()).collect();
    let owners: Vec<_> = views.iter().map(|view| view.context).collect();
    let declared: Vec<_> = plan.arguments.iter().map(native_binding).collect();
    let interface = NativeInterface::new(declared, [1; 3]).reflect(call.function);
    let arguments: Vec<Argument<'_>> = views.into_iter().map(encode::argument).collect();
    for (nth, (declared, argument)) in plan.arguments.iter().zip(&arguments).enumerate() {
        let what = || buffer_name(declared, argument);
        same_device_as(&device.context, owners[nth], call.function, what)?;
        check_element(call, declared, &interface.bindings[nth], argument)?;
        check_length(call, declared, argument)?;
        check_alignment(call, device, declared, argument)?;
    }
    check_overlaps(call, plan, &arguments)
}

/// Rejects a slice whose address cannot be bound. Empty slices are never bound.
fn check_alignment(
    call: Call<'_>,
    device: &Device,
    declared: &BufferParameter,
    argument: &Argument<'_>,
) -> Result<()> {
    let multiple = device.info().binding_alignment.max(1);
    if argument.size == 0 || argument.offset.is_multiple_of(multiple) {
        return Ok(());
    }
    let problem = format!(
        "begins at byte {} of its memory, but slices must begin at multiples of {multiple} bytes",
        argument.offset
    );
    let help = "copy the slice to a buffer of its own, or pad the data";
    Err(call.argument_error(buffer_name(declared, argument), problem, help))
}

fn check_count(call: Call<'_>, plan: &Plan, passed: usize) -> Result<()> {
    let needed = plan.arguments.len();
    if passed == needed {
        return Ok(());
    }
    let list =
        plan.arguments.iter().map(|buffer| match (scalar_type(buffer.element), buffer.access) {
            (Some(element), BufferAccess::Read) => format!("`{}` ({element})", buffer.name),
            (Some(element), BufferAccess::Write) => {
                format!("`{}` ({element}, written)", buffer.name)
            }
            (None, BufferAccess::Read) => format!("`{}` (bytes)", buffer.name),
            (None, BufferAccess::Write) => format!("`{}` (bytes, written)", buffer.name),
        });
    let list = list.collect::<Vec<_>>().join(", ");
    let problem = format!("has length {passed}, but needs {needed}");
    Err(call.argument_error(
        "the list of buffers".to_owned(),
        problem,
        &format!("pass {list} in this order"),
    ))
}

/// Names a buffer by its parameter, and its label if it has one.
fn buffer_name(declared: &BufferParameter, argument: &Argument<'_>) -> String {
    match argument.label {
        "" => format!("buffer `{}`", declared.name),
        label if label == declared.name => format!("buffer `{label}`"),
        label => format!("buffer `{}` (labelled `{label}`)", declared.name),
    }
}

fn check_element(
    call: Call<'_>,
    declared: &BufferParameter,
    binding: &scry_ir::BindingInfo,
    argument: &Argument<'_>,
) -> Result<()> {
    if check::has_elements_of(binding, argument) {
        return Ok(());
    }
    let needed = scalar_type(declared.element).map_or_else(|| "u8".to_owned(), |it| it.to_string());
    let problem = format!("has elements of {}, but {needed} is needed", argument.element_name());
    Err(call.argument_error(
        buffer_name(declared, argument),
        problem,
        &format!("pass a buffer of {needed}"),
    ))
}

/// Rejects a written buffer that shares bytes with another one.
fn check_overlaps(call: Call<'_>, plan: &Plan, arguments: &[Argument<'_>]) -> Result<()> {
    let all: Vec<_> = plan.arguments.iter().zip(arguments).collect();
    let pairs = all.iter().enumerate().flat_map(|(nth, b)| all[..nth].iter().map(move |a| (a, b)));
    for ((first, a), (second, b)) in pairs {
        let start = a.offset.max(b.offset);
        let end = (a.offset + a.size).min(b.offset + b.size);
        let is_written =
            first.access == BufferAccess::Write || second.access == BufferAccess::Write;
        if a.memory.is_none() || a.memory != b.memory || start >= end || !is_written {
            continue;
        }
        let [(written, argument), (other, _)] = match second.access {
            BufferAccess::Write => [(second, b), (first, a)],
            BufferAccess::Read => [(first, a), (second, b)],
        };
        let problem = format!(
            "is written, but shares bytes {start}..{end} of its memory with buffer `{}`",
            other.name
        );
        let help = "pass buffers or slices that do not overlap";
        return Err(call.argument_error(buffer_name(written, argument), problem, help));
    }
    Ok(())
}

/// Converts a buffer of a plan to a binding of the core.
fn native_binding(buffer: &BufferParameter) -> NativeBinding {
    match (scalar_type(buffer.element), buffer.access) {
        (Some(scalar), BufferAccess::Read) => NativeBinding::read(buffer.name, scalar),
        (Some(scalar), BufferAccess::Write) => NativeBinding::read_write(buffer.name, scalar),
        (None, BufferAccess::Read) => NativeBinding::read_bytes(buffer.name),
        (None, BufferAccess::Write) => NativeBinding::read_write_bytes(buffer.name),
    }
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

fn check_length(call: Call<'_>, declared: &BufferParameter, argument: &Argument<'_>) -> Result<()> {
    let size = u64::from(declared.element.size());
    if declared.len.saturating_mul(size) <= argument.size {
        return Ok(());
    }
    let unit = if scalar_type(declared.element).is_some() { "elements" } else { "bytes" };
    let sizes = call.sizes_or_plan();
    let problem =
        format!("has {} {unit}, but {sizes} needs at least {}", argument.size / size, declared.len);
    Err(call.argument_error(
        buffer_name(declared, argument),
        problem,
        "pass a longer buffer, or smaller sizes",
    ))
}
