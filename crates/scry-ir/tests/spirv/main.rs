//! Kernels as SPIR-V: valid, the same as last time, in bounds, bounded, and folded rightly.

mod bounds;
mod corpus;
mod fold;
mod support;
mod writer;
