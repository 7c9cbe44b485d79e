//! Tests of the translation.

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
