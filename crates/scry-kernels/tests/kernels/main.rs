//! Tests of every operation on every device, each variant against a reference on the host: odd
//! sizes, every element type, poisoned outputs, and values such as NaN and infinities.

mod attention;
mod bad_input;
mod conv;
mod gather;
mod gemv;
mod histogram;
mod large;
mod matmul;
mod numbers;
mod pairwise;
mod parallel;
mod parallel_errors;
mod pool;
mod quantized;
mod random;
mod reduce;
mod rope;
mod rows;
mod scan;
mod sort;
mod support;
mod top_k;
mod transpose;
mod variants;
