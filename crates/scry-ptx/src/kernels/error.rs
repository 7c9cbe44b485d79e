//! Errors of planning kernels.

use std::fmt;

use crate::target::Target;

/// The reason why a plan cannot be made, or a kernel not be emitted for a target.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// The kernel does not support the target.
    Target {
        /// The kernel.
        kernel: String,
        /// The lowest target that the kernel supports.
        needed: Target,
        /// The requested target.
        target: Target,
    },
    /// A size or an option that the kernel does not support.
    Argument {
        /// The kernel, or the function on the host.
        kernel: String,
        /// The argument.
        argument: &'static str,
        /// The problem: the predicate of a sentence whose subject is the argument.
        problem: String,
        /// How to fix it.
        help: &'static str,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target { kernel, needed, target } => {
                let newer = if needed.is_specific() { "" } else { " or newer" };
                write!(
                    f,
                    "kernel `{kernel}` needs {needed}{newer}; the target is {target}; help: pass \
                     {needed}{newer} as the target"
                )
            }
            Self::Argument { kernel, argument, problem, help } => {
                write!(f, "`{kernel}`: {argument} {problem}; help: {help}")
            }
        }
    }
}

impl std::error::Error for PlanError {}
