//! Checks of the immediates of a launch against those that the kernel declares.

use scry_ir::{Immediates, TypeLayout};

use super::describe;
use super::interface::KernelInterface;
use super::types::{self, Host, Mismatch};
use crate::api::element::ElementLayout;
use crate::api::error::{ArgumentError, GpuError, Result};
use crate::api::native::is_opaque;

/// The immediates of a launch, or one of their members: layout, name of the Rust type, bytes.
type GivenValue<'a> = (&'a ElementLayout, &'static str, &'a [u8]);

/// Checks the immediates of a launch. Returns the block with the size of the interface's type,
/// zero-padded at the end; empty if the kernel has none.
///
/// # Errors
/// [`GpuError::Argument`] if a required block is missing, if the kernel has none, or if size or
/// fields differ.
pub(crate) fn immediates<'a>(
    interface: impl Into<KernelInterface<'a>>,
    given: Option<GivenValue<'_>>,
) -> Result<Vec<u8>> {
    let interface = interface.into();
    let block = match (&interface.immediates, given) {
        (None, None) => Ok(Vec::new()),
        (None, Some((_, _, bytes))) => Err(unexpected_immediates(interface, bytes.len())),
        (Some(declared), None) => Err(missing_immediates(interface, declared)),
        (Some(declared), Some(given)) if interface.is_native() => native_block(declared, given),
        (Some(declared), Some(given)) => block(declared, given),
    };
    block.map_err(|rejection| reject(interface, rejection))
}

/// Checks the value of one member of the immediates. Returns its bytes.
///
/// # Errors
/// As [`immediates`].
pub(crate) fn immediate(
    interface: KernelInterface<'_>,
    member: &Immediates,
    given: GivenValue<'_>,
) -> Result<Vec<u8>> {
    block(member, given).map_err(|rejection| reject(interface, rejection))
}

fn reject(interface: KernelInterface<'_>, (argument, mismatch): Rejection) -> GpuError {
    GpuError::Argument(ArgumentError {
        label: None,
        function: None,
        kernel: Some(interface.entry_point.clone()),
        argument,
        problem: mismatch.problem,
        help: mismatch.help,
    })
}

/// The rejected argument and the reason.
type Rejection = (String, Mismatch);

fn unexpected_immediates(interface: KernelInterface<'_>, len: usize) -> Rejection {
    let none = interface.term("declares no immediates", "uses no var<immediate>");
    let mismatch = Mismatch {
        problem: format!("{len} bytes were given, but the kernel {none}"),
        help: interface
            .term(
                "declare their size with NativeInterface::immediates, or launch without",
                "declare `var<immediate> params: Params;` and use it, or launch without",
            )
            .into(),
    };
    ("immediates".into(), mismatch)
}

fn missing_immediates(interface: KernelInterface<'_>, declared: &Immediates) -> Rejection {
    let help = "launch with run_with_immediates, or set them on the Launch".to_owned();
    if interface.is_native() {
        let size = declared.layout.fixed_size();
        let problem = format!("the kernel needs {size} bytes, but none were given");
        return ("immediates".into(), Mismatch { problem, help });
    }
    let problem = format!("the kernel needs a value of its var<immediate>, {}", declared.layout);
    (format!("`{}`", declared.name), Mismatch { problem, help })
}

/// Checks the size of the immediates of a native kernel, which may be of any type.
fn native_block(
    declared: &Immediates,
    (_, _, bytes): GivenValue<'_>,
) -> Result<Vec<u8>, Rejection> {
    let (given, size) = (bytes.len() as u64, declared.layout.fixed_size());
    if given == size {
        return Ok(bytes.to_vec());
    }
    let mismatch = Mismatch {
        problem: format!("{given} bytes were given, but the kernel declares {size}"),
        help: "give a #[repr(C)] struct with the kernel's parameters after its buffers".into(),
    };
    Err(("immediates".into(), mismatch))
}

/// Checks the bytes of a declared block and pads them.
fn block(
    declared: &Immediates,
    (layout, type_name, bytes): GivenValue<'_>,
) -> Result<Vec<u8>, Rejection> {
    let wgsl = &declared.layout;
    let rejected = |mismatch| (format!("`{}` (var<immediate>)", declared.name), mismatch);
    let host = Host { layout, size: bytes.len() as u64, type_name };
    types::value(&host, wgsl).map_err(rejected)?;
    let (full_size, used_size) = (wgsl.fixed_size(), used_size(wgsl));
    if host.size != full_size && host.size != used_size {
        return Err(rejected(size_mismatch(host.size, declared, full_size, used_size)));
    }
    let mut block = bytes.to_vec();
    block.resize(usize::try_from(full_size).expect("types are smaller than 4 GiB"), 0);
    Ok(block)
}

fn size_mismatch(given: u64, declared: &Immediates, full_size: u64, used_size: u64) -> Mismatch {
    let without = match used_size == full_size {
        true => String::new(),
        false => format!(", or {used_size} without the unused bytes at its end"),
    };
    let help = match describe::host_type(&declared.layout) {
        Some(host_type) => format!("give data of type {host_type}"),
        None => "give a #[repr(C)] struct with the same fields".into(),
    };
    let problem =
        format!("{given} bytes were given, but {} has {full_size}{without}", declared.layout);
    Mismatch { problem, help }
}

/// Returns the size up to the end of the last scalar.
fn used_size(layout: &TypeLayout) -> u64 {
    match layout {
        _ if is_opaque(layout) => layout.fixed_size(),
        TypeLayout::Struct { members, .. } => {
            members.last().map_or(0, |member| u64::from(member.offset) + used_size(&member.layout))
        }
        TypeLayout::Array { element, len: Some(len), stride } if *len > 0 => {
            u64::from(len - 1) * u64::from(*stride) + used_size(element)
        }
        TypeLayout::Matrix { columns, rows, scalar, stride } => {
            u64::from(columns - 1) * u64::from(*stride) + u64::from(rows * scalar.width)
        }
        _ => layout.fixed_size(),
    }
}
