//! Why there is no kernel for what was asked.

use std::fmt;

use crate::target::Target;

/// Why there is no kernel for what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// A target lacks what the kernel uses.
    Target {
        /// The kernel.
        kernel: String,
        /// The oldest target that has it.
        needed: Target,
        /// The target that was asked for.
        target: Target,
    },
    /// A size or an option that the kernel does not take.
    Argument {
        /// The kernel.
        kernel: String,
        /// Which argument.
        argument: &'static str,
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        help: &'static str,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target { kernel, needed, target } => write!(
                f,
                "kernel `{kernel}` uses instructions of {needed}, which {target} lacks; ask for a \
                 variant that needs less, or for code for {needed}"
            ),
            Self::Argument { kernel, argument, problem, help } => {
                write!(f, "kernel `{kernel}`: {argument} is {problem}; {help}")
            }
        }
    }
}

impl std::error::Error for PlanError {}
