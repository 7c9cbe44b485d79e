//! The user guide of tensors; that of scry-gpu is `scry_gpu::guide`. Each module is a chapter
//! without items.
//!
//! | chapter | content |
//! | --- | --- |
//! | [`using_tensors`] | indexing, choosing operations, graphs, random numbers, special values |
//!
//! All programs of the guide are documentation tests, and run on the CPU device.

// Link targets of the chapters.
#[cfg(doc)]
use crate::{DType, Error, Graph, Plan, Seed, Tensor, operations};

#[doc = include_str!("using_tensors.md")]
pub mod using_tensors {}
