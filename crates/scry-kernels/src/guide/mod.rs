//! The user guide of the kernel library; that of scry-gpu is `scry_gpu::guide`. Each module is a
//! chapter without items.
//!
//! | chapter | content |
//! | --- | --- |
//! | [`using_operations`] | batches, variants, tuning, precision, special values |
//!
//! All programs of the guide are documentation tests, and run on the CPU device.

// Link targets of the chapters.
#[cfg(doc)]
use scry_gpu::GpuError;

#[cfg(doc)]
use crate::{KernelOptions, Kernels, Metric, Op, Precision, Reduction, VariantInfo, operations};

#[doc = include_str!("using_operations.md")]
pub mod using_operations {}
