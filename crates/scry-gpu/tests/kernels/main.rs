//! The ready-made kernels for NVIDIA GPUs, each against a reference in 64 bits, on fresh random
//! data of odd sizes, with outputs poisoned first; and what is refused.
//!
//! They run on CUDA devices of compute capability 9.0, and name what they skip. What is refused is
//! tested on every machine, on a device that computes nothing.

mod attention;
mod chain;
mod harness;
mod hostile;
mod own;
mod products;
mod quantized;
mod refusals;
mod rows;

#[path = "../support/mod.rs"]
mod support;
