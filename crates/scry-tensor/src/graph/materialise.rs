//! Which values are stored in memory, and why: all others are computed where they are used.

use std::fmt;

use super::fused::Fused;

/// Why the value of a node is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It is an output of the plan.
    Output,
    /// Several nodes use it, and computing it again costs more than loading it.
    Shared(usize),
    /// An operation of the kernel library, or a kernel of the program, reads it.
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
    /// Fusion is disabled.
    Disabled,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output => f.write_str("an output"),
            Self::Shared(uses) => write!(f, "{uses} uses, and loading is cheaper than computing"),
            Self::Operand(reader) => write!(f, "an operand of {reader}"),
            Self::Inputs => write!(f, "the fused kernel would have more than {MAX_INPUTS} inputs"),
            Self::Steps => write!(f, "the fused kernel would have more than {MAX_STEPS} steps"),
            Self::View => f.write_str("no strides describe the view of its operands"),
            Self::Coordinates => f.write_str("it depends on coordinates, which a view changes"),
            Self::Gather => f.write_str("elements are selected from it, or twice in one kernel"),
            Self::Broadcast => f.write_str("it would be computed for each repetition"),
            Self::Library => f.write_str("computed by the kernel library"),
            Self::Disabled => f.write_str("fusion is disabled"),
        }
    }
}

/// The largest number of inputs of a fused kernel: with the result, WebGPU's guaranteed limit of
/// storage buffers.
pub(crate) const MAX_INPUTS: usize = 7;

/// The largest number of steps of a fused kernel.
pub(crate) const MAX_STEPS: usize = 256;

/// Returns why a value that several nodes use is stored; `None` if each computes it.
pub(crate) fn shared(fused: &Fused, uses: usize, bytes: &dyn Fn(&Fused) -> u64) -> Option<Reason> {
    if uses < 2 {
        return None;
    }
    let (own, operands) = (fused.bytes(), bytes(fused));
    let uses_bytes = uses as u64 * operands;
    let stored_bytes = operands + own + uses as u64 * own;
    let is_cheap = !fused.is_expensive() && uses_bytes <= stored_bytes;
    (!is_cheap).then_some(Reason::Shared(uses))
}

/// Returns why a value is stored before it is broadcast; `None` if it need not be.
pub(crate) fn broadcast(fused: &Fused, count: usize) -> Option<Reason> {
    let own = fused.shape.count().unwrap_or(usize::MAX);
    (own < count && fused.is_expensive()).then_some(Reason::Broadcast)
}
