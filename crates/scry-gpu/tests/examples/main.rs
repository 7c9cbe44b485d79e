//! Tests of the examples' code: results against references in plain Rust.

mod digits;
mod fused;
mod photo;

#[path = "../../examples/shared/edges.rs"]
mod edges;
#[path = "../../examples/shared/expression.rs"]
mod expression;
#[path = "../../examples/shared/fusion.rs"]
mod fusion;
#[path = "../../examples/shared/image.rs"]
mod image;
#[path = "../../examples/shared/knn.rs"]
mod knn;
#[path = "../support/mod.rs"]
mod support;
