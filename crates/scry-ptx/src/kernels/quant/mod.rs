//! Quantised weights in the block formats of GGUF files: quantisation and dequantisation on the
//! host and on the GPU, and matrix products.
//!
//! | function | method | bound by |
//! | --- | --- | --- |
//! | [`quantize`], [`dequantize`] | on the host: the reference | |
//! | [`quantize_plan`] | a thread fits each scale; the same bytes as on the host | arithmetic |
//! | [`dequantize_plan`] | 8 weights per lane; the same values as on the host | memory |
//! | [`MatVec`], `sm_90` on | weights stream through shared memory to int8 tensor cores | memory |
//! | [`MatVec`], others | two rows per warp, `dp4a` | |
//! | [`MatMul`] | weights are dequantised to scratch memory, then a [`Gemm`] | tensor cores |
//!
//! Activations of a [`MatVec`] are quantised with a scale for each 256 of them: to about 15 bits
//! (two int8 limbs) with up to 4 columns, where columns are short, and before `sm_90`; otherwise to
//! 8 bits.
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
pub use matvec_shape::{MatVec, Prologue};
pub use pack::quantize_plan;
pub use unpack::dequantize_plan;

use crate::typed::Val;

/// Zero-extends to 64 bits.
fn to_u64(number: Val<'_, u32>) -> Val<'_, u64> {
    number.convert("")
}
