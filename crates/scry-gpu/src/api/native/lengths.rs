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
    let mut pairs = interface.bindings.0.iter().zip(arguments);
    pairs.try_for_each(|(declared, argument)| {
        let Some(problem) = length_problem(None, declared, argument) else { return Ok(()) };
        Err(GpuError::Argument(ArgumentError {
            label: None,
            function: None,
            kernel: Some(kernel.to_owned()),
            argument: describe_buffer(declared, argument),
            problem,
            help: "pass a longer buffer".to_owned(),
        }))
    })
}

/// Rejects a buffer that is shorter than its binding declares, because of `sizes` if given.
pub(super) fn check_length(
    function: &str,
    sizes: Option<&str>,
    declared: &NativeBinding,
    argument: &Argument<'_>,
) -> Result<()> {
    let Some(problem) = length_problem(sizes, declared, argument) else { return Ok(()) };
    let help = match sizes {
        Some(_) => "pass a longer buffer, or smaller sizes",
        None => "pass a longer buffer",
    };
    Err(argument_error(function, describe_buffer(declared, argument), problem, help))
}

/// Returns what is wrong with a buffer that is shorter than its binding declares.
fn length_problem(
    sizes: Option<&str>,
    declared: &NativeBinding,
    argument: &Argument<'_>,
) -> Option<String> {
    let given = argument.size / u64::from(declared.stride());
    if given >= declared.min_len {
        return None;
    }
    let unit = if declared.element.is_some() { "elements" } else { "bytes" };
    let needs = sizes.map_or_else(|| "needs".to_owned(), |sizes| format!("{sizes} needs"));
    Some(format!("has {given} {unit}, but {needs} at least {}", declared.min_len))
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
        function: Some(function.to_owned().into()),
        kernel: None,
        argument,
        problem,
        help: help.to_owned(),
    })
}
