//! From a program to the kernel IR: WGSL's meaning, instruction by instruction.

mod componentwise;
mod convert;
mod math;
#[cfg(test)]
mod meaning;
mod operators;
mod shape;
