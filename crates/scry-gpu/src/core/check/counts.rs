//! The workgroup counts of an indirect launch.

use scry_ir::{Interface, Scalar, TypeLayout};

use super::binding::Argument;
use super::types;
use crate::api::error::{ArgumentError, GpuError, Result};
use crate::core::command::{BufferRange, Groups};

/// Checks that a range of a buffer begins with three `u32`, and returns their bytes. The elements
/// may be of any type that fits a binding `array<u32>`, such as bytes.
///
/// # Errors
/// [`GpuError::Argument`] if the elements are of another type, if there are too few, or if their
/// offset is not a multiple of 4 bytes.
pub(crate) fn counts(interface: &Interface, argument: &Argument<'_>) -> Result<BufferRange> {
    let reject = |problem: String, help: String| {
        Err(GpuError::Argument(ArgumentError {
            label: None,
            function: None,
            kernel: Some(interface.entry_point.clone()),
            argument: argument_name(argument),
            problem,
            help,
        }))
    };
    let host = types::Host {
        layout: &argument.layout,
        size: argument.element_size,
        type_name: argument.type_name,
    };
    let count = Box::new(TypeLayout::Scalar(Scalar::U32));
    let expected = TypeLayout::Array { element: count, len: Some(3), stride: 4 };
    if types::buffer(&host, &expected).is_err() {
        return reject(
            format!("its element type is {}, not u32", argument.element_name()),
            "give three u32: the workgroups along x, y and z".into(),
        );
    }
    let memory = match argument.memory {
        Some(memory) if argument.size >= Groups::SIZE => memory,
        _ => {
            return reject(
                format!("it has {} bytes, and three u32 have {}", argument.size, Groups::SIZE),
                "give the workgroups along x, y and z".into(),
            );
        }
    };
    if !argument.offset.is_multiple_of(4) {
        return reject(
            format!("the slice begins at byte {} of its memory", argument.offset),
            "begin it at a multiple of 4 bytes".into(),
        );
    }
    Ok(BufferRange { memory, offset: argument.offset, size: Groups::SIZE })
}

/// Returns the argument's name for errors.
fn argument_name(argument: &Argument<'_>) -> String {
    match argument.label {
        "" => "counts of Launch::indirect".into(),
        label => format!("counts of Launch::indirect (given buffer `{label}`)"),
    }
}
