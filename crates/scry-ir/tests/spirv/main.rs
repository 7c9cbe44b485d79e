//! Kernels as SPIR-V: valid, unchanged, in bounds, bounded, and correct on linearised grids.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail by panicking, as the tests do"
)]

mod corpus;
mod from_kir;
#[path = "../common/golden.rs"]
mod golden;
mod matrices;
mod naga;
mod support;
mod writer;
