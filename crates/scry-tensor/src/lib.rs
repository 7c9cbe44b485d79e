//! Tensors for GPUs and CPUs, on every device of scry-gpu.
#![doc = include_str!("../README.md")]
#![doc(test(attr(deny(unused_must_use))))]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod batch;
mod dtype;
mod eager;
mod element;
mod error;
mod expr;
mod graph;
pub mod guide;
mod lower;
mod op;
mod operators;
mod ops;
mod result_pool;
mod runtime;
mod scalar;
mod shape;
mod sharding;
mod stored;
mod tensor;
#[doc(hidden)]
pub mod waiting;

pub use batch::{BatchHandle, TensorBatch};
pub use dtype::DType;
pub use element::Element;
pub use error::{Error, ErrorKind, Result};
pub use graph::{
    BoundPlan, Dim, DimShape, Fusion, Graph, KernelReport, LargeResult, Plan, PlanReport, Scope,
    State,
};
#[doc(hidden)]
pub use ops::{Array, Case, Draw, Value};
pub use ops::{
    Attention, Conv1d, Conv2d, KernelSource, Metric, Operand, Operation, Seed, operations,
};
pub use runtime::{compiled_kernels, compiled_library_kernels};
pub use scalar::Scalar;
pub use scry_gpu::{Device, bf16, f16};
pub use shape::{Axes, Dims, Shape};
pub use tensor::{Ellipsis, Index, IntoIndices, Nested, NewAxis, Step, StepRange, Tensor, step};
