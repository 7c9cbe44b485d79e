//! The lengths of buffers that a native interface declares, and the errors of its checks.

use super::{NativeBinding, NativeInterface};
use crate::api::error::{ArgumentError, GpuError, Result};
use crate::core::check::Argument;

impl NativeBinding {
    pub(super) fn element_name(&self) -> String {
        self.element.map_or_else(|| "u8".to_owned(), |scalar| scalar.to_string())
    }
}

/// Rejects buffers of a launch that are shorter than their bindings declare.
pub(crate) fn check_lengths(
    kernel: &str,
    interface: &NativeInterface,
    arguments: &[Argument<'_>],
) -> Result<()> {
    let pairs = interface.bindings.0.iter().zip(arguments);
    pairs.into_iter().try_for_each(|(declared, argument)| check_length(kernel, declared, argument))
}

/// Rejects a buffer that is shorter than its binding declares.
pub(super) fn check_length(
    function: &str,
    declared: &NativeBinding,
    argument: &Argument<'_>,
) -> Result<()> {
    let given = argument.size / u64::from(declared.stride());
    if given >= declared.min_len {
        return Ok(());
    }
    let unit = if declared.element.is_some() { "elements" } else { "bytes" };
    let problem = format!("has {given} {unit}, but needs at least {}", declared.min_len);
    Err(argument_error(
        function,
        describe_buffer(declared, argument),
        problem,
        "pass a longer buffer",
    ))
}

/// Names a buffer by its binding, and by its label if that differs.
pub(super) fn describe_buffer(declared: &NativeBinding, argument: &Argument<'_>) -> String {
    match argument.label {
        label if label.is_empty() || label == declared.name => {
            format!("buffer `{}`", declared.name)
        }
        label => format!("buffer `{}` (labelled `{label}`)", declared.name),
    }
}

/// Returns the error for an argument of a function.
pub(super) fn argument_error(
    function: &str,
    argument: String,
    problem: String,
    help: &str,
) -> GpuError {
    GpuError::Argument(ArgumentError {
        label: None,
        kernel: function.to_owned(),
        argument,
        problem,
        help: help.to_owned(),
    })
}
