//! The user guide of tensors; that of scry-gpu is `scry_gpu::guide`. Each module is a chapter
//! without items.
//!
//! | chapter | content |
//! | --- | --- |
//! | [`using_tensors`] | indexing, choosing operations, graphs, random numbers, special values |
//! | [`async_tensors`] | async forms of all that blocks, for tasks and browsers |
//! | [`migrating`] | from PyTorch and NumPy: names, and what differs |
//!
//! All programs of the guide are documentation tests, and run on the CPU device.

// Link targets of the chapters.
#[cfg(doc)]
use crate::{
    BoundPlan, DType, Device, Error, Graph, Plan, Seed, State, Tensor, TensorBatch, operations,
};

#[doc = include_str!("async_tensors.md")]
pub mod async_tensors {}
#[doc = include_str!("migrating.md")]
pub mod migrating {}
#[doc = include_str!("using_tensors.md")]
pub mod using_tensors {}
