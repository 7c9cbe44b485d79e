//! Rejects bindings that alias the same bytes if the kernel writes one of them: a data race.

use scry_ir::BindingInfo;

use super::arguments::{bound_size, describe_argument};
use super::binding::Argument;
use super::interface::KernelInterface;
use crate::api::error::{ArgumentError, GpuError, Result};
use crate::core::command::BufferRange;

/// Rejects overlapping bindings if at least one of them is written.
pub(super) fn overlaps(interface: KernelInterface<'_>, arguments: &[Argument<'_>]) -> Result<()> {
    // Quadratic, because bindings are few and a launch must not allocate here.
    let pairs = || interface.bindings.iter().zip(arguments);
    for (index, (binding, argument)) in pairs().enumerate() {
        for (other_binding, other) in pairs().take(index) {
            let written = binding.access.writes() || other_binding.access.writes();
            if written && argument.memory == other.memory {
                let (start, end) = overlap(binding, argument, other_binding, other);
                if start < end {
                    return Err(reject(interface, [other_binding, binding], argument, start, end));
                }
            }
        }
    }
    Ok(())
}

/// Rejects bindings that are written and overlap the workgroup counts of an indirect launch.
pub(crate) fn overwritten_counts(
    interface: KernelInterface<'_>,
    arguments: &[Argument<'_>],
    counts: BufferRange,
) -> Result<()> {
    let pairs = interface.bindings.iter().zip(arguments);
    for (binding, argument) in pairs.filter(|(binding, _)| binding.access.writes()) {
        let end = argument.offset.saturating_add(bound_size(binding, argument.size));
        let (start, end) = (argument.offset.max(counts.offset), end.min(counts.end()));
        if argument.memory == Some(counts.memory) && start < end {
            return Err(GpuError::Argument(ArgumentError {
                label: None,
                function: None,
                kernel: Some(interface.entry_point.clone()),
                argument: describe_argument(interface, binding, argument),
                problem: format!(
                    "it shares bytes {start} to {} of its memory with the counts of \
                     Launch::indirect, and the kernel writes it",
                    end - 1
                ),
                help: "give buffers or slices that do not overlap, or copy the counts first".into(),
            }));
        }
    }
    Ok(())
}

/// Returns the overlap of two bound ranges as (start, end) in bytes; empty if start ≥ end.
fn overlap(
    a: &BindingInfo,
    a_argument: &Argument<'_>,
    b: &BindingInfo,
    b_argument: &Argument<'_>,
) -> (u64, u64) {
    let end = |binding, argument: &Argument<'_>| {
        argument.offset.saturating_add(bound_size(binding, argument.size))
    };
    (a_argument.offset.max(b_argument.offset), end(a, a_argument).min(end(b, b_argument)))
}

fn reject(
    interface: KernelInterface<'_>,
    [first, second]: [&BindingInfo; 2],
    argument: &Argument<'_>,
    start: u64,
    end: u64,
) -> GpuError {
    let writer = match (first.access.writes(), second.access.writes()) {
        (true, true) => "the kernel writes both".to_owned(),
        (true, false) => format!("the kernel writes `{}`", first.name),
        _ => format!("the kernel writes `{}`", second.name),
    };
    GpuError::Argument(ArgumentError {
        label: None,
        function: None,
        kernel: Some(interface.entry_point.clone()),
        argument: describe_argument(interface, second, argument),
        problem: format!(
            "it shares bytes {start} to {} of its memory with {}, and {writer}",
            end - 1,
            interface.binding_name(first)
        ),
        help: "give buffers or slices that do not overlap, or declare one binding for both".into(),
    })
}
