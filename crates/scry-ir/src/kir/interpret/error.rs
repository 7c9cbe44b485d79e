//! Errors of the interpreter.

use super::{Invocation, MAX_SUBGROUP_SIZE};
use crate::kir::{AddressSpace, Value};

/// Errors of the interpreter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterpretError {
    /// An access beyond the end of its memory.
    #[error("{invocation:?} accesses {size} bytes at byte {byte} of {space:?}, which has {len}")]
    OutOfBounds {
        /// The invocation.
        invocation: Invocation,
        /// The memory.
        space: AddressSpace,
        /// The first byte of the access.
        byte: u64,
        /// Bytes of the access.
        size: u32,
        /// Bytes of the memory.
        len: u64,
    },
    /// An access to a byte that is not a multiple of its size.
    #[error(
        "{invocation:?} accesses {size} bytes at byte {byte} of {space:?}, which is misaligned"
    )]
    Misaligned {
        /// The invocation.
        invocation: Invocation,
        /// The memory.
        space: AddressSpace,
        /// The first byte of the access.
        byte: u64,
        /// Bytes of the access.
        size: u32,
    },
    /// A write to immediates or to a buffer that the kernel declares read-only.
    #[error("{invocation:?} writes {space:?}, which is read-only")]
    ReadOnly {
        /// The invocation.
        invocation: Invocation,
        /// The memory.
        space: AddressSpace,
    },
    /// A use of a value that is not visible.
    #[error("{invocation:?} uses {value} before it is computed in this or an enclosing block")]
    NotComputed {
        /// The invocation.
        invocation: Invocation,
        /// The value.
        value: Value,
    },
    /// A workgroup barrier that some invocations do not reach.
    #[error("{arrived} of {expected} invocations of workgroup {group:?} arrive at a barrier")]
    DivergentBarrier {
        /// Position of the workgroup.
        group: [u32; 3],
        /// Invocations that arrive.
        arrived: usize,
        /// Invocations that execute the kernel.
        expected: usize,
    },
    /// More loop iterations than [`Interpreter::iteration_limit`](super::Interpreter).
    #[error("workgroup {group:?} executes more than {limit} loop iterations")]
    IterationLimit {
        /// Position of the workgroup.
        group: [u32; 3],
        /// The limit.
        limit: u64,
    },
    /// The subgroup size is invalid.
    #[error("the subgroup size is {0}, but must be 1 to {MAX_SUBGROUP_SIZE}")]
    SubgroupSize(u32),
    /// The number of buffers or the size of the immediates is invalid.
    #[error("{what}: {found}, but the kernel needs {needed}")]
    Setup {
        /// What is invalid.
        what: &'static str,
        /// The number found.
        found: usize,
        /// The required number, or minimum number.
        needed: usize,
    },
}
