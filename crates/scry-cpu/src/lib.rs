//! Compute kernels on host threads.
//!
//! A kernel's IR is compiled to [`Code`] for a lockstep machine: each operation is executed for all
//! invocations of a workgroup before the next one, with SIMD instructions. A [`Machine`] runs it on
//! a thread pool.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod access;
mod cancellation;
mod code;
mod compile;
mod exec;
mod lanes;
mod launch;
mod machine;
mod math;
mod memory;
mod ops;
mod pool;
mod scheduling;
mod strided;
#[cfg(test)]
mod tests;
mod vector_atomics;

pub use cancellation::{CancelToken, Cancelled};
pub use code::{Code, LimitExceeded};
pub use launch::Launch;
pub use machine::Machine;
pub use memory::{Memory, MemoryRange};

/// Invocations of a subgroup.
pub const SUBGROUP_SIZE: u32 = 32;
