//! Tests of the kernel library: plans, names, resources of the assembled code, and errors.
//!
//! `SCRY_PTXAS` names NVIDIA's assembler; without it nothing is assembled.

mod attention;
mod extreme_sizes;
mod hopper_gemm;
mod kernel_names;
mod portable_gemm;
mod quant;
mod resource_snapshot;
mod rows;
mod steps;
