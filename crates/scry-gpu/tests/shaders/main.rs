//! The kernels of the crate, each against a reference in plain Rust, on every present device.
//! References compute in f64; outputs are poisoned with NaN before each launch.

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
#[cfg(feature = "vulkan")]
mod spirv_from_kir;
mod transpose;

#[path = "../support/mod.rs"]
mod support;
