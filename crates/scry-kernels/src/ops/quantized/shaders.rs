//! Quantised weights in WGSL.

use scry_gpu::{PreparedLaunch, Result};
use scry_ptx::kernels::quant::{BlockFormat, MatMul};

use super::{Dequantize, QuantizedProduct};
use crate::elements;
use crate::kernels::Kernels;
use crate::operation::Preparation;
use crate::ptx;
use crate::wgsl::{Immediates, WgslLaunch};

/// Columns of activations for which a workgroup decodes its weights once.
const COLUMNS: u64 = 8;

/// Returns why WGSL cannot read the blocks of weights; `None` if it can.
fn blocks_obstacle(format: BlockFormat, weights: u64) -> Option<String> {
    let bytes = super::block_bytes(format, weights);
    let is_whole_words = bytes.is_multiple_of(4);
    let partial = || format!("reads whole words, but {bytes} bytes are not a multiple of 4");
    (!is_whole_words).then(partial).or_else(|| elements::too_long(&[bytes, weights]))
}

/// Returns the definition of `weight` for a format.
fn weight_function(format: BlockFormat) -> String {
    let bytes = format.block_bytes();
    let (constants, source) = match format {
        BlockFormat::Q4K => (
            "const LOW_BITS = 16u;\nconst HIGH_BITS = 0u;\n",
            include_str!("../../shaders/quantized/affine.wgsl"),
        ),
        BlockFormat::Q5K => (
            "const LOW_BITS = 48u;\nconst HIGH_BITS = 16u;\n",
            include_str!("../../shaders/quantized/affine.wgsl"),
        ),
        BlockFormat::Q6K => ("", include_str!("../../shaders/quantized/q6k.wgsl")),
        BlockFormat::Q8_0 => ("", include_str!("../../shaders/quantized/q8_0.wgsl")),
    };
    let reader = include_str!("../../shaders/quantized/bytes.wgsl");
    format!("const BLOCK_BYTES = {bytes}u;\n{constants}{reader}{source}")
}

pub(super) fn dequantize_obstacle(it: &Dequantize, kernels: &Kernels) -> Option<String> {
    elements::obstacle(it.dtype, kernels).or_else(|| blocks_obstacle(it.format, it.count))
}

pub(super) fn dequantize(
    it: &Dequantize,
    preparation: &Preparation<'_>,
) -> Result<Vec<PreparedLaunch>> {
    let launch = WgslLaunch {
        source: &[
            elements::prelude(it.dtype),
            &weight_function(it.format),
            include_str!("../../shaders/quantized/dequantize.wgsl"),
        ],
        buffers: &preparation.buffers.iter().collect::<Vec<_>>(),
        immediates: Immediates::default().u32(it.count as u32),
        workgroups: [it.count.div_ceil(256) as u32, 1, 1],
    };
    Ok(vec![preparation.wgsl(&launch)?])
}

pub(super) fn matmul_obstacle(it: &QuantizedProduct, kernels: &Kernels) -> Option<String> {
    let MatMul { format, rows, k, columns, activations, output } = it.product;
    elements::obstacle(ptx::dtype(activations), kernels)
        .or_else(|| elements::obstacle(ptx::dtype(output), kernels))
        .or_else(|| blocks_obstacle(format, rows * k))
        .or_else(|| elements::too_long(&[columns * k, columns * rows]))
}

pub(super) fn matmul(
    it: &QuantizedProduct,
    preparation: &Preparation<'_>,
) -> Result<Vec<PreparedLaunch>> {
    let MatMul { format, rows, k, columns, activations, output } = it.product;
    let buffers: Vec<_> = preparation.buffers.iter().collect();
    let buffers = preparation.without_empty(&buffers)?;
    let launch = WgslLaunch {
        source: &[
            elements::prelude(ptx::dtype(activations)),
            elements::output_prelude(activations == output),
            &weight_function(format),
            include_str!("../../shaders/quantized/matmul.wgsl"),
        ],
        buffers: &buffers.iter().collect::<Vec<_>>(),
        immediates: Immediates::default().u32(rows as u32).u32(k as u32).u32(columns as u32),
        workgroups: [rows as u32, columns.div_ceil(COLUMNS) as u32, 1],
    };
    Ok(vec![preparation.wgsl(&launch)?])
}
