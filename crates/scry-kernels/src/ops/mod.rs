//! The operations, one file each, with their variants.

mod attention;
mod matmul;
mod norm;
mod quantized;
mod reduce;
mod rows;
mod scan;
mod softmax;
mod sort;

pub use attention::{Attention, AttentionBias, Strides};
pub use matmul::{Activation, Epilogue, Gemm, Layout, MatrixLayout, Precision};
pub use quantized::BlockFormat;
pub use reduce::Reduction;
pub use scan::ScanKind;

use crate::operation::{OperationInfo, describe};

/// Returns every operation, in the order of the documentation.
pub(crate) fn list() -> Vec<OperationInfo> {
    const FLOATS: &str = "f32, f16, bf16";
    const NUMBERS: &str = "f32, f16, bf16, i32, u32";
    const WORDS: &str = "f32, i32, u32";
    vec![
        describe::<matmul::Product>("matmul", "product of matrices", FLOATS),
        describe::<matmul::Product>("gemm", "batched, strided product with epilogue", FLOATS),
        describe::<softmax::Softmax>("softmax", "softmax of rows", FLOATS),
        describe::<softmax::Softmax>("log_softmax", "logarithm of the softmax of rows", FLOATS),
        describe::<norm::RowNorm>("layer_norm", "layer norm of rows", FLOATS),
        describe::<norm::RowNorm>("rms_norm", "RMS norm of rows", FLOATS),
        describe::<reduce::Reduce>("reduce", "reduction of all elements", NUMBERS),
        describe::<reduce::Reduce>("reduce_rows", "reduction of each row", NUMBERS),
        describe::<reduce::Reduce>("reduce_columns", "reduction of each column", NUMBERS),
        describe::<reduce::Reduce>("reduce_dot", "inner product", NUMBERS),
        describe::<scan::Scan>("scan", "prefix sums of all elements", NUMBERS),
        describe::<scan::Scan>("scan_rows", "prefix sums of each row", NUMBERS),
        describe::<sort::Sort>("sort", "sort of keys", WORDS),
        describe::<sort::Sort>("sort_pairs", "sort of keys with values", WORDS),
        describe::<sort::Sort>("argsort", "positions in the order of keys", WORDS),
        describe::<attention::Attend>("attention", "attention of heads", FLOATS),
        describe::<quantized::Quantize>("quantize", "quantisation to GGUF blocks", "f32"),
        describe::<quantized::Dequantize>("dequantize", "dequantisation of GGUF blocks", FLOATS),
        describe::<quantized::QuantizedProduct>(
            "quantized_matmul",
            "product with quantised weights",
            FLOATS,
        ),
    ]
}
