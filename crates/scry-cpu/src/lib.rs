//! Compute kernels on host threads.
//!
//! A kernel's IR is compiled to [`Code`] for a lockstep machine: each operation is executed for all
//! invocations of a workgroup before the next one, over vectors that the processor works on many
//! lanes at a time. A [`Machine`] runs it on a small pool of threads.

mod claims;
mod code;
mod exec;
mod machine;
#[cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "what executes code takes these up one by one")
)]
pub(crate) mod math;
mod memory;
mod pool;
mod stop;

pub use code::{Code, Refusal};
pub use machine::{Job, Machine};
pub use memory::{Memory, Span};
pub use stop::{Stop, Stopped};

/// Invocations of a subgroup.
pub const SUBGROUP_SIZE: u32 = 32;
