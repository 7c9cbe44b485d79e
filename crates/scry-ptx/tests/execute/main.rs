//! The PTX of kernels is executed without a GPU: by an interpreter that checks every access against
//! the memory that it belongs to, and whose results are compared with those of the CPU device.
//!
//! The interpreter reads the text and knows nothing of how it was made: `parse.rs` makes `code.rs`
//! of it, `grid.rs` executes blocks, `warp.rs` threads, `collective.rs` what a warp does together,
//! `alu.rs` arithmetic, and `memory.rs` checks accesses. An opcode that it does not know is an
//! error. `run.rs` launches kernels as the CUDA device does; the other files are tests.
//!
//! This is not the reference interpreter of the kernel IR, and shares no code with it, on purpose:
//! it executes PTX, and finds faults of the translation only if it does not share its view of what
//! the kernel means.
//!
//! `SCRY_FUZZ_SEEDS` says how many random kernels of each kind are executed, `SCRY_FUZZ_FIRST`
//! which seed is the first, and `SCRY_FUZZ_PROBLEMS` after how many problems a test ends.

#![expect(clippy::unwrap_used, reason = "the helpers of these tests fail by panicking too")]

#[path = "../../src/lower/tests/alu.rs"]
mod alu;
mod code;
mod collective;
mod compare;
mod corpus;
mod faults;
mod grid;
mod hostile;
mod indirect;
mod memory;
mod mutants;
mod parse;
mod polls;
mod random;
mod run;
mod warp;
