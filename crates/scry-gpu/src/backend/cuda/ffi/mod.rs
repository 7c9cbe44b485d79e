//! The CUDA driver's interface, its errors, and the libraries of NVIDIA's toolkit.

pub(super) mod calls;
pub(super) mod driver_api;
pub(super) mod error;
pub(super) mod library;
pub(super) mod library_status;
pub(super) mod nccl;
pub(super) mod toolkit;
pub(super) mod types;
