//! Tests of the verifier: each rule with a kernel that breaks it.

mod fuzz;
mod matrices;
mod memory;
mod structure;
mod support;
mod types;
