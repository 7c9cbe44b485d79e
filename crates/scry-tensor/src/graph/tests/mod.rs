//! Tests of plans that need their memory.

mod canaries;
