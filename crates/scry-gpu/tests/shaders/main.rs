//! The kernels that the crate ships, each against a reference in plain Rust, on every device
//! present. References compute in 64 bits; outputs are poisoned with NaN before each launch.

mod backward;
mod cuda;
mod elementwise;
mod extremes;
mod harness;
mod matmul;
mod pairwise;
mod promises;
mod reduce;
mod saxpy;
mod transpose;

#[path = "../support/mod.rs"]
mod support;
