//! Compiles programs to SPIR-V, and disassembles it.

mod emit;
#[cfg(feature = "naga-spirv")]
mod naga;
mod options;
mod text;
mod workarounds;

pub(crate) use options::Lowered;
pub use options::{ControlFlow, FloatTypes, SpirvOptions};
pub use text::spirv_text;
pub use workarounds::SpirvWorkarounds;
