//! Tests of the examples' code: results against references in plain Rust.
//!
//! `Cargo.toml` names this file as the test `examples`, so that the modules are those beside it.

mod digits;
mod fused;
mod photo;

mod edges;
mod expression;
mod fusion;
mod image;
mod knn;
