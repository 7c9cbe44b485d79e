//! Layouts and numbers of the bindings.

mod layouts;
mod numbers;
