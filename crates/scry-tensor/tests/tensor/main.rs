//! Tests of tensors on every device: operations and views against references on the host, hostile
//! inputs, and the texts of errors.

mod compilation;
mod creation;
mod display;
mod errors;
mod hostile;
mod indexing;
mod operations;
mod reductions;
mod support;
mod views;
