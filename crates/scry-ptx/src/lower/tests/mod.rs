//! Tests of the translation.

#[path = "../../../tests/execute/alu.rs"]
mod alu;
mod arith;
mod copies;
mod divide;
mod machine;
mod memory;
mod subgroup;
pub(super) mod support;
mod text;
mod unroll;
mod warp;
