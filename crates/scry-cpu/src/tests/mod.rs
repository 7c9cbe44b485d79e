//! Kernels made by hand and at random, run whole, and compared with an interpreter of one
//! invocation at a time.

mod oracle;
mod races;
mod support;
