//! Quantised weights in the block formats of GGUF files: to blocks and back, on the host and on the
//! device, and products with them.
//!
//! | what | how | roof |
//! | --- | --- | --- |
//! | [`quantize`], [`dequantize`] | on the host: the reference | |
//! | [`quantize_plan`] | a thread fits each scale; the same bytes as on the host | arithmetic |
//! | [`dequantize_plan`] | a lane for 8 weights; the same numbers as on the host | memory |
//! | [`MatVec`], Hopper | weights stream through shared memory to integer tensor cores | memory |
//! | [`MatVec`], others | a warp for two rows, dot products of four bytes | |
//! | [`MatMul`] | weights become numbers in scratch memory, then a [`Gemm`] | tensor cores |
//!
//! Activations of a [`MatVec`] are integers with a scale for each 256 of them: of about 15 bits
//! with up to 4 columns, or where columns are short, otherwise of 8 bits.
//!
//! [`Gemm`]: super::gemm::Gemm

mod activations;
mod device_scale_search;
mod dot;
mod format;
mod host_reference;
mod lane_weights;
mod matmul;
mod matvec;
mod matvec_shape;
mod pack;
mod quantize_activations;
mod scale_search;
mod stream;
#[cfg(test)]
mod tests;
mod unpack;

pub use format::BlockFormat;
pub use host_reference::{dequantize, quantize};
pub use matmul::MatMul;
pub use matvec_shape::MatVec;
pub use pack::quantize_plan;
pub use unpack::dequantize_plan;

use crate::typed::Val;

/// A number of 32 bits as one of 64.
fn wide(number: Val<'_, u32>) -> Val<'_, u64> {
    number.convert("")
}
