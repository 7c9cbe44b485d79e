//! Push constants against the kernel's `var<immediate>`.

use scry_ir::{Interface, TypeLayout};

use super::types;
use crate::element::ElementLayout;
use crate::error::{GpuError, Result};

/// Checks the push constants of a launch: layout, name of the Rust type, bytes. Returns the block
/// as the interface has it: as long as its type, padding at the end zero; empty without one.
///
/// # Errors
/// [`GpuError::Argument`] if a required block is missing, or one is given to a kernel without, or
/// if size or fields differ.
pub(crate) fn immediates(
    interface: &Interface,
    given: Option<(&ElementLayout, &'static str, &[u8])>,
) -> Result<Vec<u8>> {
    let refuse = |argument: &str, problem: String, remedy: String| {
        Err(GpuError::Argument {
            kernel: interface.entry_point.clone(),
            argument: argument.into(),
            problem,
            remedy,
        })
    };
    let (declared, (layout, type_name, bytes)) = match (&interface.immediates, given) {
        (None, None) => return Ok(Vec::new()),
        (None, Some((_, _, bytes))) => {
            return refuse(
                "push constants",
                format!(
                    "{} bytes were given, but the kernel uses no var<immediate>",
                    bytes.len()
                ),
                "declare `var<immediate> params: Params;` and use it, or launch without".into(),
            );
        }
        (Some(declared), None) => {
            return refuse(
                &format!("`{}`", declared.name),
                format!(
                    "the kernel needs a value of its var<immediate>, {}",
                    declared.layout
                ),
                "launch with run_with_push_constants, or set them on the Launch".into(),
            );
        }
        (Some(declared), Some(given)) => (declared, given),
    };
    let wgsl = &declared.layout;
    let name = format!("`{}` (var<immediate>)", declared.name);
    let host = types::Host {
        layout,
        size: bytes.len() as u64,
        type_name,
    };
    if let Err(mismatch) = types::value(&host, wgsl) {
        return refuse(&name, mismatch.problem, mismatch.remedy);
    }
    let (whole, used) = (wgsl.fixed_size(), used(wgsl));
    if host.size != whole && host.size != used {
        let without = match used == whole {
            true => String::new(),
            false => format!(", or {used} without the unused bytes at its end"),
        };
        return refuse(
            &name,
            format!(
                "{} bytes were given, but {wgsl} has {whole}{without}",
                host.size
            ),
            "give a #[repr(C)] struct with the same fields".into(),
        );
    }
    let mut block = bytes.to_vec();
    block.resize(
        usize::try_from(whole).expect("types are smaller than 4 GiB"),
        0,
    );
    Ok(block)
}

/// Bytes up to the end of the last scalar.
fn used(layout: &TypeLayout) -> u64 {
    match layout {
        TypeLayout::Struct { members, .. } => members
            .last()
            .map_or(0, |member| u64::from(member.offset) + used(&member.layout)),
        TypeLayout::Array {
            element,
            len: Some(len),
            stride,
        } if *len > 0 => u64::from(len - 1) * u64::from(*stride) + used(element),
        TypeLayout::Matrix {
            columns,
            rows,
            scalar,
            stride,
        } => u64::from(columns - 1) * u64::from(*stride) + u64::from(rows * scalar.width),
        _ => layout.fixed_size(),
    }
}
