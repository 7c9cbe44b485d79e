//! SPIR-V of a program.

mod emit;
pub(crate) mod naga;
mod workarounds;
mod write;

pub use emit::NotEmitted;
pub use workarounds::SpirvWorkarounds;
pub use write::{ControlFlow, GridSource, LinearisedGrid, SpirvOptions, runnable_workgroups};
