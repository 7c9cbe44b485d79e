//! Tests of every operation on every device, each variant against a reference on the host: odd
//! sizes, every element type, poisoned outputs, and values such as NaN and infinities.

mod matmul;
mod numbers;
mod reduce;
mod rows;
mod scan;
mod sort;
mod support;
mod variants;
