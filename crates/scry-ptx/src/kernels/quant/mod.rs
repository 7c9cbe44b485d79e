//! Quantised weights in the block formats of GGUF files.

mod activations;
mod blocks;
mod dot;
mod eighth;
mod fit;
mod format;
mod matmul;
mod matvec;
mod pack;
mod prepare;
mod search;
mod stream;
#[cfg(test)]
mod tests;
mod unpack;

pub use blocks::{dequantize, quantize};
pub use format::BlockFormat;
pub use matmul::MatMul;
pub use matvec::MatVec;
pub use pack::quantize_plan;
pub use unpack::dequantize_plan;

use crate::typed::Val;

/// A number of 32 bits as one of 64.
fn wide(number: Val<'_, u32>) -> Val<'_, u64> {
    number.convert("")
}
