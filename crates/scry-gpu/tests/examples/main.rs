//! The results of the examples, on their own data.

mod digits;
mod photo;

#[path = "../../examples/shared/edges.rs"]
mod edges;
#[path = "../../examples/shared/image.rs"]
mod image;
#[path = "../../examples/shared/knn.rs"]
mod knn;
#[path = "../support/mod.rs"]
mod support;
