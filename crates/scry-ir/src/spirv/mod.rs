//! SPIR-V of a program.

pub(crate) mod naga;
mod workarounds;
mod write;

pub use workarounds::SpirvWorkarounds;
pub use write::{ControlFlow, GridSource, LinearisedGrid, SpirvOptions, runnable_workgroups};
