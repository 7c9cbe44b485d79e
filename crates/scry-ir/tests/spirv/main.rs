//! Tests of emitted SPIR-V: validity, golden files, effects of the options, and matrices.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail by panicking, as the tests do"
)]

mod corpus;
mod from_kir;
mod matrices;
mod naga;
mod support;
mod writer;
