//! Tests of the kernel library for NVIDIA GPUs: each kernel against a reference in f64, on random
//! data whose sizes need not be multiples of tiles, with poisoned outputs; and rejected arguments.
//!
//! They run on CUDA devices of compute capability 9.0, and print what is skipped. Rejections are
//! tested on every machine, on the null device.

mod attention;
mod chain;
mod custom_kernels;
mod harness;
mod products;
mod quantized;
mod rejections;
mod robustness;
mod rows;
