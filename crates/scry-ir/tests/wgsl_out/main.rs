//! Kernels as WGSL: the text is valid, and means the same.
//!
//! `SCRY_TINT` names the `tint` of Chromium's compiler, and `SCRY_CHROMIUM` the browser; without
//! them only naga checks the texts.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail by panicking, as the tests do"
)]

mod chromium;
mod corpus;
#[path = "../common/golden.rs"]
mod golden;
mod random;
mod refusals;
mod subgroups;
mod support;
mod text;
