//! Kernels for GPUs and CPUs with one API on every device.
#![doc = include_str!("../README.md")]
#![doc(test(attr(deny(unused_must_use))))]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod arguments;
mod call;
mod compiled;
mod elements;
mod explanation;
pub mod guide;
mod host;
mod host_gemm;
mod kernels;
mod lookback;
#[cfg(doctest)]
mod must_use;
mod native;
mod occupancy;
mod op;
mod operation;
mod ops;
mod ordering;
#[cfg(not(target_arch = "wasm32"))]
mod parallel;
mod plain;
mod ptx;
mod scratch;
mod tuning;
mod wgsl;

pub use explanation::Explanation;
pub use kernels::{KernelOptions, Kernels};
pub use op::Op;
pub use operation::{OperationInfo, VariantInfo};
pub use ops::*;
#[cfg(not(target_arch = "wasm32"))]
pub use parallel::{ColumnParallelLinear, ParallelOp, RowParallelLinear, shard};
pub use scry_ptx::kernels::{GpuSpec, Plan, PlanError, PtxKernel};
pub use scry_ptx::{PtxType, Target};
