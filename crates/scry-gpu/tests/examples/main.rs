//! What the examples compute, on the data that they use.

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
