//! Tests of plans that need their memory, or their kernels as data.

mod canaries;
mod portable;
mod recordings;
