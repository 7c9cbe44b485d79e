//! The operations, one file each, with their variants.

mod attention;
mod conv;
mod cpu;
mod gather;
mod gemv;
mod histogram;
mod matmul;
mod norm;
mod pairwise;
mod plain_chunks;
mod pool;
mod quantized;
mod random;
mod reduce;
mod rope;
mod rows;
mod scan;
mod scatter_add;
mod softmax;
mod sort;
mod taps;
mod top_k;
mod transpose;

pub use attention::{Attention, AttentionBias, Strides};
pub use conv::{Conv1d, Conv2d};
pub use gemv::Gemv;
pub use matmul::{Activation, Epilogue, Gemm, Layout, MatrixLayout, Precision};
pub use pairwise::{Metric, Nearest};
pub use pool::{Pool, Pool2d};
pub use quantized::BlockFormat;
pub use reduce::Reduction;
pub use rope::Rope;
pub use scan::ScanKind;

use crate::operation::{OperationInfo, describe};

/// Returns every operation of the library, with its variants.
///
/// ```
/// let softmax = scry_kernels::operations().into_iter().find(|it| it.name == "softmax").unwrap();
/// assert_eq!(softmax.variants.last().unwrap().name, "wgsl");
/// ```
#[must_use]
pub fn operations() -> Vec<OperationInfo> {
    list()
}

/// Returns every operation, in the order of the documentation.
fn list() -> Vec<OperationInfo> {
    const FLOATS: &str = "f32, f16, bf16";
    const NUMBERS: &str = "f32, f16, bf16, i32, u32";
    const WORDS: &str = "f32, i32, u32";
    vec![
        describe::<matmul::Product>("matmul", "matrix product", FLOATS),
        describe::<matmul::Product>("gemm", "batched, strided GEMM with epilogue", FLOATS),
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
        describe::<sort::Sort>("sort_pairs", "sort of key-value pairs", WORDS),
        describe::<sort::Sort>("argsort", "indices that sort keys", WORDS),
        describe::<histogram::Histogram>("histogram", "counts of bins", "u32"),
        describe::<histogram::Compact>("compact", "stream compaction", NUMBERS),
        describe::<top_k::TopK>("top_k", "`k` largest elements of rows", NUMBERS),
        describe::<attention::Attend>("attention", "scaled dot-product attention", FLOATS),
        describe::<quantized::Quantize>("quantize", "quantisation to GGUF blocks", "f32"),
        describe::<quantized::Dequantize>("dequantize", "dequantisation of GGUF blocks", FLOATS),
        describe::<quantized::DequantizeRows>(
            "dequantize_rows",
            "dequantised rows selected by indices",
            FLOATS,
        ),
        describe::<quantized::QuantizedProduct>(
            "quantized_matmul",
            "product with quantised weights",
            FLOATS,
        ),
        describe::<quantized::QuantizedProduct>(
            "quantized_matmul_swiglu",
            "product with quantised weights, after SwiGLU",
            FLOATS,
        ),
        describe::<transpose::Permute>("transpose", "transpose of a matrix", NUMBERS),
        describe::<transpose::Permute>(
            "transpose_batch",
            "transposes of a batch of matrices",
            NUMBERS,
        ),
        describe::<transpose::Permute>("permute", "permutation of axes", NUMBERS),
        describe::<gather::MoveRows>("gather_rows", "rows selected by indices", NUMBERS),
        describe::<gather::MoveRows>("gather", "elements selected by indices", NUMBERS),
        describe::<gather::MoveRows>("scatter_rows", "copies to rows by indices", NUMBERS),
        describe::<scatter_add::ScatterAdd>(
            "scatter_add_rows",
            "additions to rows by indices",
            "f32, i32, u32",
        ),
        describe::<rope::Rotate>("rope", "rotary position embedding", FLOATS),
        describe::<conv::Convolution>("conv2d", "2-D convolution", FLOATS),
        describe::<conv::Convolution>("conv1d", "1-D convolution", FLOATS),
        describe::<pool::Pooling>("pool2d", "2-D max or average pooling", FLOATS),
        describe::<pairwise::Pairwise>(
            "pairwise_distances",
            "pairwise distances of points",
            FLOATS,
        ),
        describe::<pairwise::NearestPoints>("nearest", "nearest neighbours of queries", FLOATS),
        describe::<gemv::Product>("gemv", "matrix-vector product", FLOATS),
        describe::<gemv::Product>("gemv_transposed", "transposed matrix-vector product", FLOATS),
        describe::<gemv::Product>("gemv_batch", "batch of matrix-vector products", FLOATS),
        describe::<random::Random>("random_bits", "random bits", "i32, u32"),
        describe::<random::Random>("random_uniform", "uniform random numbers", FLOATS),
        describe::<random::Random>("random_normal", "normal random numbers", FLOATS),
    ]
}
