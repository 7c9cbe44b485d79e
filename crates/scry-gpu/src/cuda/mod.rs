//! What only CUDA devices have.

#[cfg(feature = "kernels")]
pub mod kernels;
