//! Executes the PTX of kernels without a GPU, by an interpreter that checks every access against
//! its memory region, and compares the results with those of the CPU device.
//!
//! The interpreter reads only the text: `parse.rs` parses it into the form of `code.rs`, `grid.rs`
//! executes blocks, `warp.rs` threads, `collective.rs` the collective instructions of a warp,
//! `scry_test_support::alu` arithmetic, and `memory.rs` checks accesses. An unknown opcode is an
//! error. `run.rs` launches kernels as the CUDA device does, and `compare.rs` compares results; the
//! other files are tests.
//!
//! This is not the reference interpreter of the kernel IR, and deliberately shares no code with it:
//! only an independent reading of PTX finds faults of the translation.
//!
//! `SCRY_FUZZ_SEEDS` is the number of random kernels of each kind, `SCRY_FUZZ_FIRST` the first
//! seed, and `SCRY_FUZZ_PROBLEMS` the number of problems after which a test ends.

#![expect(clippy::unwrap_used, reason = "the helpers of these tests fail by panicking too")]

#[cfg(feature = "kernels")]
mod attention;
mod code;
mod collective;
mod compare;
mod corpus;
mod faults;
mod grid;
mod hostile;
mod indirect;
mod matrices;
mod memory;
mod mutants;
mod parse;
#[cfg(feature = "kernels")]
mod plans;
mod polls;
#[cfg(feature = "kernels")]
mod quant;
mod random;
mod run;
mod warp;
