//! The user guide of the kernel library; that of scry-gpu is `scry_gpu::guide`. Each module is a
//! chapter without items.
//!
//! | chapter | content |
//! | --- | --- |
//! | [`using_operations`] | batches, variants, tuning, precision, special values |
//! | [`tensor_parallelism`] | linear layers split over several devices |
//!
//! All programs of the guide are documentation tests, and run on the CPU device.

// Link targets of the chapters.
#[cfg(doc)]
use scry_gpu::{DeviceGroup, GpuError};

#[cfg(doc)]
use crate::{
    KernelOptions, Kernels, Metric, Op, ParallelOp, Precision, Reduction, VariantInfo, operations,
    shard,
};

#[doc = include_str!("using_operations.md")]
pub mod using_operations {}

#[doc = include_str!("tensor_parallelism.md")]
pub mod tensor_parallelism {}
