//! Tests of the translation.

mod arith;
mod copies;
mod divide;
mod machine;
mod support;
mod text;
