//! Features of CUDA devices only.

#[cfg(feature = "kernels")]
pub mod kernels;
