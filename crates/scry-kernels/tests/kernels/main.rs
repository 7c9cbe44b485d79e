//! Tests of every operation on every device, each variant against a reference on the host: odd
//! sizes, every element type, poisoned outputs, and values such as NaN and infinities.

mod conv;
mod gather;
mod gemv;
mod matmul;
mod pairwise;
mod pool;
mod random;
mod rope;
mod rows;
mod support;
mod transpose;
mod variants;
