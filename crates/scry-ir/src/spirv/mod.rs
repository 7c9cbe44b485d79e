//! SPIR-V of a program.

mod emit;
#[cfg(feature = "naga-spirv")]
mod naga;
mod options;
mod workarounds;

pub use options::{ControlFlow, GridSource, LinearisedGrid, SpirvOptions, runnable_workgroups};
pub use workarounds::SpirvWorkarounds;
