//! Buffers against what a plan declares, before anything is compiled or allocated.

use scry_ir::{Interface, Scalar};
use scry_ptx::PtxType;
use scry_ptx::kernels::{Access, Buffer, Plan};

use crate::binding::Binding;
use crate::check::{self, Argument};
use crate::device::Device;
use crate::encode;
use crate::error::{ArgumentError, GpuError, Result};
use crate::native::{NativeBinding, NativeInterface};

/// Checks number, types, lengths and overlaps of the buffers that a plan is given.
pub(super) fn arguments(
    device: &Device,
    name: &str,
    plan: &Plan,
    buffers: &[&dyn Binding],
) -> Result<()> {
    let views: Vec<_> = buffers.iter().map(|buffer| buffer.view()).collect();
    for view in &views {
        encode::same_device(&device.context, view.context, view.label)?;
    }
    let declared: Vec<_> = plan.arguments.iter().map(binding).collect();
    let mut interface = NativeInterface::new(declared, [1; 3]).reflect(name);
    let mut arguments: Vec<Argument<'_>> = views.into_iter().map(encode::argument).collect();
    check::signature(&interface, &arguments)?;
    for (declared, argument) in plan.arguments.iter().zip(&arguments) {
        length(name, declared, argument)?;
    }
    // What is empty may be so, and overlaps nothing.
    leave_out_empty(&mut interface, &mut arguments);
    check::native_arguments(&interface, device.info(), &arguments)
}

fn leave_out_empty(interface: &mut Interface, arguments: &mut Vec<Argument<'_>>) {
    let mut sizes = arguments.iter().map(|argument| argument.size);
    interface.bindings.retain(|_| sizes.next() != Some(0));
    arguments.retain(|argument| argument.size > 0);
}

/// A buffer of a plan as the core knows it.
fn binding(buffer: &Buffer) -> NativeBinding {
    match (scalar(buffer.element), buffer.access) {
        (Some(scalar), Access::Read) => NativeBinding::read(buffer.name, scalar),
        (Some(scalar), Access::Write) => NativeBinding::read_write(buffer.name, scalar),
        (None, Access::Read) => NativeBinding::read_bytes(buffer.name),
        (None, Access::Write) => NativeBinding::read_write_bytes(buffer.name),
    }
}

/// The element's type; none for blocks of bytes.
fn scalar(element: PtxType) -> Option<Scalar> {
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

fn length(name: &str, declared: &Buffer, argument: &Argument<'_>) -> Result<()> {
    let size = u64::from(declared.element.size());
    if declared.len.saturating_mul(size) <= argument.size {
        return Ok(());
    }
    let whose = match argument.label {
        "" => String::new(),
        label => format!(" (given buffer `{label}`)"),
    };
    let what = if scalar(declared.element).is_some() { "elements" } else { "bytes" };
    Err(GpuError::Argument(ArgumentError {
        kernel: name.to_owned(),
        argument: format!("`{}`{whose}", declared.name),
        problem: format!(
            "{} {what} were given, but these sizes take {}",
            argument.size / size,
            declared.len
        ),
        help: "give a buffer of that length at least, or smaller sizes".to_owned(),
    }))
}
