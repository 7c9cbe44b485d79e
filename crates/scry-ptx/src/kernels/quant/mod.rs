//! Quantised weights in the block formats of GGUF files.

mod blocks;
mod fit;
mod format;
#[cfg(test)]
mod tests;

pub use blocks::{dequantize, quantize};
pub use format::BlockFormat;
