//! From a program to the kernel IR: WGSL's meaning, instruction by instruction.

mod componentwise;
mod convert;
mod math;
mod operators;
mod shape;
