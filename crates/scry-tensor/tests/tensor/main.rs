//! Tests of tensors on every device: operations and views against references on the host, hostile
//! inputs, and the texts of errors.

mod batches;
mod compilation;
mod creation;
mod display;
mod errors;
mod futures;
mod graphs;
mod hostile;
mod indexing;
mod operations;
mod products;
mod random;
mod reductions;
mod sharding;
mod sizes;
mod special;
mod support;
mod table;
mod views;
mod weights;
