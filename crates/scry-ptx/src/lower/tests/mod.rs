//! Tests of the translation.

mod copies;
mod support;
