//! SPIR-V of a program.

mod emit;
mod naga;
mod options;
mod workarounds;

pub use emit::NotEmitted;
pub use options::{ControlFlow, GridSource, LinearisedGrid, SpirvOptions, runnable_workgroups};
pub use workarounds::SpirvWorkarounds;
