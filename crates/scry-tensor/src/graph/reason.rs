//! Why values are stored, for reports; limits of fused kernels.

use std::fmt;

/// Why the value of a node is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It is an output of the plan.
    Output,
    /// Several nodes use it, and loading it costs less than computing it again.
    Shared(usize),
    /// An operation of the kernel library, or a custom kernel, reads it.
    Operand(&'static str),
    /// The fused kernel would have too many inputs.
    Inputs,
    /// The fused kernel would have too many steps.
    Steps,
    /// Strides do not describe a view of its operands.
    View,
    /// It depends on coordinates, which a view changes.
    Coordinates,
    /// Elements are selected from it, or a kernel can select along one axis only.
    Gather,
    /// It would be computed again for each repetition of a broadcast.
    Broadcast,
    /// It is the result of an operation of the kernel library.
    Library,
    /// It is the result of a product that is not fused with what follows, and why.
    Product(&'static str),
    /// It is the result of a custom kernel.
    Custom,
    /// It is a state, or a value that is read from one before a write.
    State,
    /// Fusion is disabled.
    Disabled,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output => f.write_str("an output"),
            Self::Shared(uses) => write!(f, "{uses} uses, and loading costs less than computing"),
            Self::Operand(reader) => write!(f, "an operand of {reader}"),
            Self::Inputs => write!(f, "the fused kernel would have more than {MAX_INPUTS} inputs"),
            Self::Steps => write!(f, "the fused kernel would have more than {MAX_STEPS} steps"),
            Self::View => f.write_str("no strides describe the view of its operands"),
            Self::Coordinates => f.write_str("it depends on coordinates, which a view changes"),
            Self::Gather => f.write_str("elements are selected from it, or twice in one kernel"),
            Self::Broadcast => f.write_str("it would be computed for each repetition"),
            Self::Library => f.write_str("computed by the kernel library"),
            Self::Product(why) => {
                write!(f, "computed by the kernel library, without what follows: {why}")
            }
            Self::Custom => f.write_str("computed by a custom kernel"),
            Self::State => f.write_str("a state, or read from one before a write"),
            Self::Disabled => f.write_str("fusion is disabled"),
        }
    }
}

/// The largest number of inputs of a fused kernel: with the result, WebGPU's guaranteed limit of
/// storage buffers.
pub(crate) const MAX_INPUTS: usize = 7;

/// The largest number of steps of a fused kernel.
pub(crate) const MAX_STEPS: usize = 256;
