//! Quantised weights in WGSL.

use scry_gpu::{DType, Features, PreparedLaunch, Result, UntypedBuffer};
use scry_ptx::kernels::quant::{BlockFormat, MatMul, Prologue};

use super::{Dequantize, DequantizeRows, Quantize, QuantizedProduct};
use crate::elements;
use crate::kernels::Kernels;
use crate::operation::Preparation;
use crate::plain;
use crate::ptx;
use crate::wgsl::{Immediates, WgslLaunch};

/// Columns of activations for which a workgroup decodes its weights once.
const COLUMNS: u64 = 8;

/// Threads of a workgroup that quantises, as in the WGSL source.
const QUANTIZE_THREADS: u64 = 64;

/// Returns why WGSL cannot access the blocks of weights; `None` if it can.
fn blocks_obstacle(format: BlockFormat, weights: u64, kernels: &Kernels) -> Option<String> {
    let bytes = super::block_bytes(format, weights);
    let has_units =
        bytes.is_multiple_of(4) || kernels.device().info().features.contains(Features::I16);
    let partial = || {
        format!(
            "accesses whole words, but {bytes} bytes of blocks are not a multiple of 4, and the \
             device lacks 16-bit integers"
        )
    };
    (!has_units).then(partial).or_else(|| elements::too_long(&[bytes, weights]))
}

/// The integers by which blocks are accessed.
struct Units {
    bytes: u64,
    /// The directive that they need, before anything else.
    enable: &'static str,
    definition: &'static str,
    /// How many there are.
    count: u64,
}

impl Units {
    fn new(format: BlockFormat, weights: u64) -> Self {
        let bytes = super::block_bytes(format, weights);
        match bytes.is_multiple_of(4) {
            true => Self {
                bytes: 4,
                count: bytes / 4,
                enable: "",
                definition: "alias Unit = u32;\nconst UNIT_BYTES = 4u;\n",
            },
            false => Self {
                bytes: 2,
                count: bytes / 2,
                enable: "enable wgpu_int16;\n",
                definition: "alias Unit = u16;\nconst UNIT_BYTES = 2u;\n",
            },
        }
    }

    /// Returns a buffer of blocks as the kernel declares it.
    fn view(&self, blocks: &UntypedBuffer) -> Result<UntypedBuffer> {
        let bytes = usize::try_from(self.count * self.bytes).unwrap_or(usize::MAX);
        let dtype = if self.bytes == 4 { DType::U32 } else { DType::U16 };
        blocks.slice(..bytes)?.view_as(dtype)
    }
}

/// Returns the definition of `weight` for a format.
fn weight_function(format: BlockFormat) -> String {
    let bytes = format.block_bytes();
    let (constants, source) = match format {
        BlockFormat::Q4_0 => ("", include_str!("../../shaders/quantized/q4_0.wgsl")),
        BlockFormat::Q4_1 => ("", include_str!("../../shaders/quantized/q4_1.wgsl")),
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
    let float16 = include_str!("../../shaders/quantized/float16.wgsl");
    let reader = include_str!("../../shaders/quantized/bytes.wgsl");
    format!("const BLOCK_BYTES = {bytes}u;\n{constants}{float16}{reader}{source}")
}

pub(super) fn quantize_obstacle(it: &Quantize, kernels: &Kernels) -> Option<String> {
    blocks_obstacle(it.format, it.count, kernels)
}

/// Returns the parts of the kernel that differ by format: the weights that an invocation fits,
/// constants, and sources.
fn quantizer(format: BlockFormat) -> (u64, &'static str, [&'static str; 2]) {
    let search = include_str!("../../shaders/quantized/search.wgsl");
    let affine = include_str!("../../shaders/quantized/quantize_affine.wgsl");
    let nibbles = include_str!("../../shaders/quantized/quantize_nibbles.wgsl");
    match format {
        BlockFormat::Q4_0 => (32, "const HAS_OFFSET = false;\nconst HEADER = 2u;\n", ["", nibbles]),
        BlockFormat::Q4_1 => (32, "const HAS_OFFSET = true;\nconst HEADER = 4u;\n", ["", nibbles]),
        BlockFormat::Q4K => {
            let bits = "const LEVELS = 15.0;\nconst LOW_BITS = 16u;\nconst HIGH_BITS = 0u;\n";
            (32, bits, [search, affine])
        }
        BlockFormat::Q5K => {
            let bits = "const LEVELS = 31.0;\nconst LOW_BITS = 48u;\nconst HIGH_BITS = 16u;\n";
            (32, bits, [search, affine])
        }
        BlockFormat::Q6K => {
            (16, "", [search, include_str!("../../shaders/quantized/quantize_q6k.wgsl")])
        }
        BlockFormat::Q8_0 => {
            (32, "", ["", include_str!("../../shaders/quantized/quantize_q8_0.wgsl")])
        }
    }
}

/// Prepares the quantisation. Devices would round products, sums and quotients differently, so the
/// kernel prevents contraction and divides by integers: its blocks are those of the host.
pub(super) fn quantize(
    it: &Quantize,
    preparation: &Preparation<'_>,
) -> Result<Vec<PreparedLaunch>> {
    let (group, constants, [search, format]) = quantizer(it.format);
    let units = Units::new(it.format, it.count);
    let (len, bytes) = (it.format.block_len(), it.format.block_bytes());
    let lens = format!("const BLOCK_LEN = {len}u;\nconst BLOCK_BYTES = {bytes}u;\n");
    let launch = WgslLaunch {
        source: &[
            units.enable,
            units.definition,
            &format!("{lens}const GROUP = {group}u;\n{constants}"),
            include_str!("../../shaders/quantized/quantize.wgsl"),
            include_str!("../../shaders/quantized/float16.wgsl"),
            include_str!("../../shaders/quantized/exact.wgsl"),
            search,
            format,
        ],
        buffers: &[&preparation.buffers[0], &units.view(&preparation.buffers[1])?],
        immediates: Immediates::default().u32(it.count as u32).u32(units.count as u32).u32(0),
        workgroups: [it.count.div_ceil(group * QUANTIZE_THREADS) as u32, 1, 1],
    };
    Ok(vec![preparation.wgsl(&launch)?])
}

pub(super) fn dequantize_obstacle(it: &Dequantize, kernels: &Kernels) -> Option<String> {
    elements::obstacle(it.dtype, kernels).or_else(|| blocks_obstacle(it.format, it.count, kernels))
}

pub(super) fn dequantize(
    it: &Dequantize,
    preparation: &Preparation<'_>,
) -> Result<Vec<PreparedLaunch>> {
    let units = Units::new(it.format, it.count);
    let launch = WgslLaunch {
        source: &[
            units.enable,
            elements::prelude(it.dtype),
            units.definition,
            &weight_function(it.format),
            include_str!("../../shaders/quantized/dequantize.wgsl"),
        ],
        buffers: &[&units.view(&preparation.buffers[0])?, &preparation.buffers[1]],
        immediates: Immediates::default().u32(it.count as u32),
        workgroups: [it.count.div_ceil(256) as u32, 1, 1],
    };
    Ok(vec![preparation.wgsl(&launch)?])
}

pub(super) fn dequantize_rows_obstacle(it: &DequantizeRows, kernels: &Kernels) -> Option<String> {
    elements::obstacle(it.dtype, kernels)
        .or_else(|| blocks_obstacle(it.format, it.rows.table_len(), kernels))
        .or_else(|| it.rows.too_long())
}

pub(super) fn dequantize_rows(
    it: &DequantizeRows,
    preparation: &Preparation<'_>,
) -> Result<Vec<PreparedLaunch>> {
    let units = Units::new(it.format, it.rows.table_len());
    let blocks = units.view(&preparation.buffers[0])?;
    let buffers = [blocks, preparation.words(1, it.rows.count)?, preparation.buffers[2].clone()];
    let buffers = preparation.without_empty(&buffers.each_ref())?;
    let sizes = [it.rows.rows, it.rows.columns, it.rows.count].map(|size| size as u32);
    let launch = WgslLaunch {
        source: &[
            units.enable,
            elements::prelude(it.dtype),
            units.definition,
            &weight_function(it.format),
            include_str!("../../shaders/quantized/dequantize_rows.wgsl"),
        ],
        buffers: &buffers.iter().collect::<Vec<_>>(),
        immediates: Immediates::default().u32(sizes[0]).u32(sizes[1]).u32(sizes[2]),
        workgroups: [it.rows.selected_len().div_ceil(256) as u32, 1, 1],
    };
    Ok(vec![preparation.wgsl(&launch)?])
}

pub(super) fn matmul_obstacle(it: &QuantizedProduct, kernels: &Kernels) -> Option<String> {
    let MatMul { format, rows, k, columns, activations, output } = it.product;
    elements::obstacle(ptx::dtype(activations), kernels)
        .or_else(|| elements::obstacle(ptx::dtype(output), kernels))
        .or_else(|| blocks_obstacle(format, rows * k, kernels))
        .or_else(|| elements::too_long(&[it.activations(), columns * rows]))
}

pub(super) fn matmul(
    it: &QuantizedProduct,
    preparation: &Preparation<'_>,
) -> Result<Vec<PreparedLaunch>> {
    let MatMul { rows, columns, .. } = it.product;
    let kernel = include_str!("../../shaders/quantized/matmul.wgsl");
    product(it, preparation, kernel, [rows as u32, columns.div_ceil(COLUMNS) as u32, 1])
}

/// Returns whether a plain kernel suits: it decodes weights for each column again.
pub(super) fn suits_plain(it: &QuantizedProduct, kernels: &Kernels) -> bool {
    let MatMul { rows, k, columns, .. } = it.product;
    let is_small = columns <= 2 || rows * k * columns < 1 << 17;
    plain::is_software(kernels) && is_small && rows >= 8 && k <= plain::MAX_ITERATIONS / 2
}

pub(super) fn plain_matmul(
    it: &QuantizedProduct,
    preparation: &Preparation<'_>,
) -> Result<Vec<PreparedLaunch>> {
    let MatMul { rows, columns, .. } = it.product;
    let kernel = include_str!("../../shaders/plain/quantized_matmul.wgsl");
    product(it, preparation, kernel, [rows.div_ceil(64) as u32, columns as u32, 1])
}

fn product(
    it: &QuantizedProduct,
    preparation: &Preparation<'_>,
    kernel: &str,
    workgroups: [u32; 3],
) -> Result<Vec<PreparedLaunch>> {
    let MatMul { format, rows, k, columns, activations, output } = it.product;
    let units = Units::new(format, rows * k);
    let blocks = units.view(&preparation.buffers[0])?;
    let buffers = [&blocks, &preparation.buffers[1], &preparation.buffers[2]];
    let buffers = preparation.without_empty(&buffers)?;
    let launch = WgslLaunch {
        source: &[
            units.enable,
            elements::prelude(ptx::dtype(activations)),
            units.definition,
            elements::output_prelude(activations == output),
            &weight_function(format),
            match it.prologue {
                Prologue::None => include_str!("../../shaders/quantized/activation.wgsl"),
                Prologue::SwiGlu => include_str!("../../shaders/quantized/swiglu.wgsl"),
            },
            kernel,
        ],
        buffers: &buffers.iter().collect::<Vec<_>>(),
        immediates: Immediates::default().u32(rows as u32).u32(k as u32).u32(columns as u32),
        workgroups,
    };
    Ok(vec![preparation.wgsl(&launch)?])
}
