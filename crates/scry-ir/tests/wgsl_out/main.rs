//! Tests of emitted WGSL: the text is valid, and computes what the kernel's source computes.
//!
//! The environment variables `SCRY_TINT` and `SCRY_CHROMIUM` are the paths of Chromium's compiler
//! `tint` and of the browser. Without them only naga checks the texts.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail by panicking, as the tests do"
)]

mod chromium;
mod corpus;
mod for_device;
mod random;
mod records;
mod rejections;
mod subgroups;
mod support;
mod text;
