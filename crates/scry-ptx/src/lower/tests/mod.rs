//! Tests of the translation.

mod arith;
mod copies;
mod divide;
mod machine;
pub(super) mod support;
mod text;
