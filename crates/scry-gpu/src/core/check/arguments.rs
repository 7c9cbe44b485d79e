//! Checks of the buffers of a launch against the bindings of a kernel.

use std::fmt::Write as _;

use scry_ir::{Access, BindingInfo, BufferBindingType};

use super::binding::Argument;
use super::interface::KernelInterface;
use super::limits::binding_limit;
use super::{aliasing, types};
use crate::api::error::{ArgumentError, GpuError, Result, TooLargeError};
use crate::api::info::DeviceInfo;

/// Checks the arguments of a launch with at least one workgroup: number, types, sizes, offsets,
/// limits, overlaps.
///
/// # Errors
/// [`GpuError::Argument`] that names the binding; [`GpuError::TooLarge`].
pub(crate) fn arguments<'a>(
    interface: impl Into<KernelInterface<'a>>,
    info: &DeviceInfo,
    arguments: &[Argument<'_>],
) -> Result<()> {
    let interface = interface.into();
    signature(interface, arguments)?;
    for (binding, argument) in interface.bindings.iter().zip(arguments) {
        check_extent(interface, info, binding, argument)?;
        check_limit(interface, info, binding, argument)?;
    }
    aliasing::overlaps(interface, arguments)
}

/// Checks the arguments of a native kernel as [`arguments`], but without the device's limits of
/// binding sizes: native kernels use 64-bit addresses.
///
/// # Errors
/// [`GpuError::Argument`], as [`arguments`].
pub(crate) fn native_arguments<'a>(
    interface: impl Into<KernelInterface<'a>>,
    info: &DeviceInfo,
    arguments: &[Argument<'_>],
) -> Result<()> {
    let interface = interface.into();
    signature(interface, arguments)?;
    for (binding, argument) in interface.bindings.iter().zip(arguments) {
        check_extent(interface, info, binding, argument)?;
    }
    aliasing::overlaps(interface, arguments)
}

/// Checks only number and types, for launches without workgroups: their buffers may be empty.
pub(crate) fn signature<'a>(
    interface: impl Into<KernelInterface<'a>>,
    arguments: &[Argument<'_>],
) -> Result<()> {
    let interface = interface.into();
    check_count(interface, arguments)?;
    for (index, (binding, argument)) in interface.bindings.iter().zip(arguments).enumerate() {
        let Err(mismatch) = compare_types(binding, argument) else {
            continue;
        };
        let help = match swapped_with(interface, arguments, index) {
            Some(other) => format!(
                "it fits `{}`: buffers are given in the order of the bindings",
                interface.bindings[other].name
            ),
            None => mismatch.help,
        };
        return Err(reject(interface, binding, argument, mismatch.problem, help));
    }
    Ok(())
}

/// Returns the bytes of an argument that a kernel can access: the whole elements of a runtime-sized
/// array, otherwise the size of the type. Drivers bind only these, so that every backend rounds
/// `arrayLength` down and bytes after the last element are out of bounds.
pub(crate) fn bound_size(binding: &BindingInfo, size: u64) -> u64 {
    let fixed = binding.layout.fixed_size();
    match binding.layout.runtime_array() {
        Some((head, stride)) => {
            let elements = size.saturating_sub(head) / stride.max(1);
            (head + elements * stride).max(fixed).min(size)
        }
        None => size.min(fixed),
    }
}

fn check_count(interface: KernelInterface<'_>, arguments: &[Argument<'_>]) -> Result<()> {
    let expected = interface.bindings.len();
    if arguments.len() == expected {
        return Ok(());
    }
    let mut help = String::from(if expected == 0 { "give none" } else { "in order, give" });
    for (index, binding) in interface.bindings.iter().enumerate() {
        let usage = match (binding.ty, binding.access) {
            (BufferBindingType::Uniform, _) => "uniform",
            (BufferBindingType::Storage, Access::Read) => "read",
            (BufferBindingType::Storage, Access::ReadWrite) => "read_write",
        };
        let separator = if index == 0 { "" } else { ";" };
        write!(
            help,
            "{separator} {}: {}, {usage}",
            interface.binding_name(binding),
            binding.layout
        )
        .expect("writing to a string never fails");
    }
    Err(GpuError::Argument(ArgumentError {
        label: None,
        function: None,
        kernel: Some(interface.entry_point.clone()),
        argument: "buffers".into(),
        problem: format!(
            "the kernel uses {expected}, but {} given",
            count_with_verb(arguments.len())
        ),
        help,
    }))
}

fn count_with_verb(count: usize) -> String {
    match count {
        0 => "none was".into(),
        1 => "1 was".into(),
        n => format!("{n} were"),
    }
}

fn compare_types(binding: &BindingInfo, argument: &Argument<'_>) -> Result<(), types::Mismatch> {
    let host = types::Host {
        layout: &argument.layout,
        size: argument.element_size,
        type_name: argument.type_name,
    };
    types::buffer(&host, &binding.layout)
}

/// Returns whether the elements of an argument match the binding's type.
pub(crate) fn has_elements_of(binding: &BindingInfo, argument: &Argument<'_>) -> bool {
    compare_types(binding, argument).is_ok()
}

/// Returns the binding whose argument was swapped with argument `index`, if each matches the other.
fn swapped_with(
    interface: KernelInterface<'_>,
    arguments: &[Argument<'_>],
    index: usize,
) -> Option<usize> {
    let bindings = &interface.bindings;
    (0..bindings.len()).filter(|other| *other != index).find(|other| {
        compare_types(&bindings[*other], &arguments[index]).is_ok()
            && compare_types(&bindings[index], &arguments[*other]).is_ok()
    })
}

/// Checks the offset against the device's binding alignment, and the size against the binding's
/// type.
fn check_extent(
    interface: KernelInterface<'_>,
    info: &DeviceInfo,
    binding: &BindingInfo,
    argument: &Argument<'_>,
) -> Result<()> {
    let reject =
        |problem: String, help: String| Err(reject(interface, binding, argument, problem, help));
    if argument.size == 0 {
        return reject(
            "the buffer is empty, but a binding needs at least one element".into(),
            "skip the launch if there is no data, or launch 0 invocations".into(),
        );
    }
    if !argument.offset.is_multiple_of(info.binding_alignment.max(1)) {
        return reject(
            format!("the slice begins at byte {} of its memory", argument.offset),
            format!(
                "on {} bindings begin at multiples of {} bytes; copy the slice to a buffer of \
                 its own, or pad the data",
                info.name, info.binding_alignment
            ),
        );
    }
    check_size(argument, binding, reject)
}

fn check_size(
    argument: &Argument<'_>,
    binding: &BindingInfo,
    reject: impl Fn(String, String) -> Result<()>,
) -> Result<()> {
    let given = argument.size;
    let needed = binding.layout.min_binding_size();
    if given >= needed {
        return Ok(());
    }
    let elements = needed.div_ceil(argument.element_size.max(1));
    reject(
        format!("{given} bytes were given, but {} needs at least {needed}", binding.layout),
        format!("give at least {elements} elements of {}", argument.element_name()),
    )
}

fn check_limit(
    interface: KernelInterface<'_>,
    info: &DeviceInfo,
    binding: &BindingInfo,
    argument: &Argument<'_>,
) -> Result<()> {
    let (limit, limit_name) = binding_limit(&info.limits, binding.ty);
    // The bound size is at most the argument's size, but computing it needs a division.
    if argument.size <= limit {
        return Ok(());
    }
    let bound = bound_size(binding, argument.size);
    if bound <= limit {
        return Ok(());
    }
    Err(GpuError::TooLarge(TooLargeError {
        label: None,
        function: None,
        what: format!(
            "kernel `{}`, {}",
            interface.entry_point,
            describe_argument(interface, binding, argument)
        ),
        requested: format!("{bound} bytes"),
        device: info.name.clone(),
        limit: format!("{limit} bytes"),
        limit_name,
        help: match binding.ty {
            BufferBindingType::Uniform => "declare it as var<storage, read>".into(),
            BufferBindingType::Storage => {
                "launch on slices of the buffer, one after the other".into()
            }
        },
    }))
}

/// Formats a binding and the label of its argument for errors.
pub(super) fn describe_argument(
    interface: KernelInterface<'_>,
    binding: &BindingInfo,
    argument: &Argument<'_>,
) -> String {
    let name = interface.binding_name(binding);
    match argument.label {
        "" => name,
        label if interface.is_native() && label == binding.name => name,
        label if interface.is_native() => format!("{name} (labelled `{label}`)"),
        label => format!("{name} (given buffer `{label}`)"),
    }
}

fn reject(
    interface: KernelInterface<'_>,
    binding: &BindingInfo,
    argument: &Argument<'_>,
    problem: String,
    help: String,
) -> GpuError {
    GpuError::Argument(ArgumentError {
        label: None,
        function: None,
        kernel: Some(interface.entry_point.clone()),
        argument: describe_argument(interface, binding, argument),
        problem,
        help,
    })
}
