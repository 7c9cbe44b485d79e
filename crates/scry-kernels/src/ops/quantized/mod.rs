//! Quantised weights, in the block formats of GGUF files.

mod host;
mod host_product;
mod rows;
mod shaders;

use scry_gpu::{Binding, DType, NativeBinding, Result};
use scry_ptx::kernels::quant;
pub use scry_ptx::kernels::quant::BlockFormat;
use scry_ptx::kernels::quant::{MatMul, MatVec, Prologue};
use scry_ptx::kernels::{GpuSpec, Plan, PlanError};

pub(super) use self::rows::DequantizeRows;
use crate::arguments;
use crate::call::Call;
use crate::elements::{self, FLOATS};
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Variant, VariantInfo};
use crate::plain;
use crate::ptx;

/// Quantised weights: blocks of low-bit integers with scales, in byte buffers.
impl Kernels {
    /// Prepares the quantisation of the first `count` elements of `x`, which are `f32`, to
    /// `blocks`, which are bytes; `count` is a multiple of the block length.
    ///
    /// The blocks are the same, byte by byte, on every device and with every variant, but for the
    /// sign of a scale of 0 if all weights of a block are subnormal. Those of `Q4_0` and `Q4_1` are
    /// GGML's. The scales of `Q4K`, `Q5K` and `Q6K` are searched by least squares, those of the
    /// others follow from the largest weights. Scales beyond the range of `f16` are clamped; NaN
    /// does not change scales, and becomes the lowest integer.
    ///
    /// ```
    /// use scry_gpu::Buffer;
    /// use scry_kernels::{BlockFormat, Kernels};
    ///
    /// fn example(
    ///     kernels: &Kernels,
    ///     x: &Buffer<f32>,
    ///     blocks: &Buffer<u8>,
    /// ) -> scry_gpu::Result<()> {
    ///     // 256 weights are one block of Q4_K, 144 bytes.
    ///     kernels.quantize(BlockFormat::Q4K, x, blocks, 256)?.run()
    /// }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for a count that is not a multiple of
    /// the block length, and buffers that are too short or of another type;
    /// [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device supports no variant.
    pub fn quantize(
        &self,
        format: BlockFormat,
        x: &dyn Binding,
        blocks: &dyn Binding,
        count: usize,
    ) -> Result<Op> {
        let operation = Quantize { format, count: count as u64 };
        check_blocks("Kernels::quantize", "count", count, format)?;
        self.op(operation, &[x, blocks])
    }

    /// Prepares the dequantisation of `count` weights in `blocks` to `y`: `f32`, `f16` or `bf16`.
    ///
    /// ```
    /// use scry_gpu::Buffer;
    /// use scry_kernels::{BlockFormat, Kernels};
    ///
    /// fn example(
    ///     kernels: &Kernels,
    ///     blocks: &Buffer<u8>,
    ///     y: &Buffer<f32>,
    /// ) -> scry_gpu::Result<()> {
    ///     kernels.dequantize(BlockFormat::Q4K, blocks, y, 256)?.run()
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::quantize`].
    pub fn dequantize(
        &self,
        format: BlockFormat,
        blocks: &dyn Binding,
        y: &dyn Binding,
        count: usize,
    ) -> Result<Op> {
        const FUNCTION: &str = "Kernels::dequantize";
        let dtype = Call::new(FUNCTION).dtype("y", y, &FLOATS)?;
        check_blocks(FUNCTION, "count", count, format)?;
        self.op(Dequantize { format, dtype, count: count as u64 }, &[blocks, y])
    }

    /// Prepares `y = weights × x`: row-major quantised weights (rows × k) times column-major
    /// activations (k × columns); `y` is column-major (rows × columns), of the type of `x` or
    /// `f32`.
    ///
    /// On NVIDIA GPUs, up to 8 columns with results in `f32` are multiplied without dequantising to
    /// memory, reading the weights once (twice or more where rows are short and there are more than
    /// 4 columns). Otherwise the weights are first dequantised to the activations' type, for tensor
    /// cores. The CPU device multiplies up to 4 columns without dequantising to memory.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{BlockFormat, Kernels};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// let gpu = Device::open("cpu")?;
    /// let kernels = Kernels::new(&gpu)?;
    /// let (format, rows, k) = (BlockFormat::Q4K, 100, 512);
    /// let weights = gpu.upload(&vec![0.5f32; rows * k])?;
    /// let blocks = gpu.alloc::<u8>(rows * k / format.block_len() * format.block_bytes())?;
    /// kernels.quantize(format, &weights, &blocks, rows * k)?.run()?;
    /// let x = gpu.upload(&vec![1.0f32; k])?;
    /// let y = gpu.alloc::<f32>(rows)?;
    /// kernels.quantized_matmul(format, &blocks, &x, &y, [rows, k], 1)?.run()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for rows with partial blocks, sizes
    /// that are too large, and buffers that are too short, of another type, or that overlap with
    /// `y`; [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device supports no
    /// variant for the types and the sizes.
    pub fn quantized_matmul(
        &self,
        format: BlockFormat,
        weights: &dyn Binding,
        x: &dyn Binding,
        y: &dyn Binding,
        [rows, k]: [usize; 2],
        columns: usize,
    ) -> Result<Op> {
        let sizes = [rows, k, columns];
        self.quantized_product(Prologue::None, format, [weights, x, y], sizes)
    }

    /// Prepares `y = weights × (silu(gate) * up)`, the last product of a feed-forward network with
    /// SwiGLU, as [`Kernels::quantized_matmul`]. A column of `x` has `k` elements of the gate, and
    /// after them `k` others: the results of a product whose weights are joined.
    ///
    /// On NVIDIA GPUs, up to 8 columns with results in `f32` are one launch, or two if they are
    /// long.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{BlockFormat, Kernels};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// let gpu = Device::open("cpu")?;
    /// let kernels = Kernels::new(&gpu)?;
    /// let (format, rows, k) = (BlockFormat::Q8_0, 10, 64);
    /// let blocks = gpu.alloc::<u8>(rows * k / 32 * 34)?;
    /// let x = gpu.upload(&vec![1.0f32; 2 * k])?;
    /// let y = gpu.alloc::<f32>(rows)?;
    /// kernels.quantized_matmul_swiglu(format, &blocks, &x, &y, [rows, k], 1)?.run()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::quantized_matmul`].
    pub fn quantized_matmul_swiglu(
        &self,
        format: BlockFormat,
        weights: &dyn Binding,
        x: &dyn Binding,
        y: &dyn Binding,
        [rows, k]: [usize; 2],
        columns: usize,
    ) -> Result<Op> {
        let sizes = [rows, k, columns];
        self.quantized_product(Prologue::SwiGlu, format, [weights, x, y], sizes)
    }

    fn quantized_product(
        &self,
        prologue: Prologue,
        format: BlockFormat,
        [weights, x, y]: [&dyn Binding; 3],
        sizes: [usize; 3],
    ) -> Result<Op> {
        let function = function(prologue);
        let activations = Call::new(function).dtype("x", x, &FLOATS)?;
        let output = Call::new(function).dtype("y", y, &[activations, DType::F32])?;
        check_blocks(function, "k", sizes[1], format)?;
        let [rows, k, columns] = sizes.map(|size| size as u64);
        let sizes = vec![("rows", rows), ("k", k), ("columns", columns)];
        let call = Call { function: function.into(), sizes };
        call.product("buffer `weights`", &[rows, k])?;
        call.product("buffer `x`", &[columns, prologue.inputs().into(), k])?;
        call.product("buffer `y`", &[columns, rows])?;
        let product = MatMul {
            format,
            rows,
            k,
            columns,
            activations: ptx::element(activations),
            output: ptx::element(output),
        };
        self.op(QuantizedProduct { product, prologue }, &[weights, x, y])
    }
}

/// Returns the function that multiplies after a prologue.
const fn function(prologue: Prologue) -> &'static str {
    match prologue {
        Prologue::None => "Kernels::quantized_matmul",
        Prologue::SwiGlu => "Kernels::quantized_matmul_swiglu",
    }
}

/// Rejects counts of weights that are not whole blocks.
fn check_blocks(
    function: &'static str,
    name: &str,
    count: usize,
    format: BlockFormat,
) -> Result<()> {
    let block = format.block_len();
    if count.is_multiple_of(block) {
        return Ok(());
    }
    Err(Call::new(function).argument_error(
        format!("`{name}`"),
        format!("is {count}, not a multiple of the {block} weights of a block"),
        format!("pass a multiple of {block}"),
    ))
}

/// Returns the bytes of the blocks of weights.
fn block_bytes(format: BlockFormat, weights: u64) -> u64 {
    (weights / format.block_len() as u64).saturating_mul(format.block_bytes() as u64)
}

/// Returns the blocks of weights as an argument.
fn blocks(name: &str, format: BlockFormat, weights: u64, is_written: bool) -> NativeBinding {
    let bytes = block_bytes(format, weights);
    let binding = match is_written {
        true => NativeBinding::read_write_bytes(name),
        false => NativeBinding::read_bytes(name),
    };
    binding.with_min_len(bytes)
}

/// Quantisation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quantize {
    format: BlockFormat,
    count: u64,
}

impl Operation for Quantize {
    fn function(&self) -> &'static str {
        "Kernels::quantize"
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        vec![("count", self.count)]
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        vec![
            arguments::read("x", DType::F32, self.count),
            blocks("blocks", self.format, self.count, true),
        ]
    }

    fn variants() -> &'static [Variant<Self>] {
        const {
            &[
                Variant {
                    info: VariantInfo { name: "ptx", needs: "CUDA", deterministic: true },
                    obstacle: |it, kernels| {
                        ptx::obstacle(kernels, |_| quant::quantize_plan(it.format, it.count))
                    },
                    suits: |_, _| true,
                    prepare: |it, preparation| {
                        preparation.plan(quant::quantize_plan(it.format, it.count))
                    },
                },
                crate::host::variant(host::quantize),
                Variant {
                    info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                    obstacle: shaders::quantize_obstacle,
                    suits: |_, _| true,
                    prepare: shaders::quantize,
                },
            ]
        }
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn tolerance(&self) -> f64 {
        0.0
    }
}

/// Dequantisation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dequantize {
    format: BlockFormat,
    dtype: DType,
    count: u64,
}

impl Operation for Dequantize {
    fn function(&self) -> &'static str {
        "Kernels::dequantize"
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        vec![("count", self.count)]
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        vec![
            blocks("blocks", self.format, self.count, false),
            arguments::write("y", self.dtype, self.count),
        ]
    }

    fn variants() -> &'static [Variant<Self>] {
        const {
            &[
                Variant {
                    info: VariantInfo { name: "ptx", needs: "CUDA", deterministic: true },
                    obstacle: |it, kernels| ptx::obstacle(kernels, |_| it.plan()),
                    suits: |_, _| true,
                    prepare: |it, preparation| preparation.plan(it.plan()),
                },
                crate::host::variant(host::dequantize),
                Variant {
                    info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                    obstacle: shaders::dequantize_obstacle,
                    suits: |_, _| true,
                    prepare: shaders::dequantize,
                },
            ]
        }
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(self.dtype)
    }
}

impl Dequantize {
    fn plan(&self) -> Result<Plan, PlanError> {
        quant::dequantize_plan(self.format, ptx::element(self.dtype), self.count)
    }
}

/// A product with quantised weights.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QuantizedProduct {
    product: MatMul,
    prologue: Prologue,
}

impl QuantizedProduct {
    /// Returns the number of elements of `x`.
    fn activations(&self) -> u64 {
        self.product.columns * self.product.k * u64::from(self.prologue.inputs())
    }
}

impl Operation for QuantizedProduct {
    fn function(&self) -> &'static str {
        function(self.prologue)
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        let MatMul { rows, k, columns, .. } = self.product;
        vec![("rows", rows), ("k", k), ("columns", columns)]
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        let MatMul { format, rows, k, columns, activations, output } = self.product;
        vec![
            blocks("weights", format, rows * k, false),
            arguments::read("x", ptx::dtype(activations), self.activations()),
            arguments::write("y", ptx::dtype(output), columns * rows),
        ]
    }

    fn variants() -> &'static [Variant<Self>] {
        const {
            &[
                Variant {
                    info: VariantInfo { name: "ptx", needs: "CUDA, sm_80", deterministic: true },
                    obstacle: |it, kernels| ptx::obstacle(kernels, |gpu| it.plan(gpu)),
                    suits: |_, _| true,
                    prepare: |it, preparation| {
                        preparation.plan(ptx::plan(preparation.kernels, |gpu| it.plan(gpu)))
                    },
                },
                crate::host::variant(host_product::prepare),
                Variant {
                    info: plain::INFO,
                    obstacle: shaders::matmul_obstacle,
                    suits: |it, kernels| shaders::suits_plain(it, kernels),
                    prepare: shaders::plain_matmul,
                },
                Variant {
                    info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                    obstacle: shaders::matmul_obstacle,
                    suits: |_, _| true,
                    prepare: shaders::matmul,
                },
            ]
        }
    }

    fn is_empty(&self) -> bool {
        self.product.rows == 0 || self.product.columns == 0
    }

    fn tolerance(&self) -> f64 {
        // Activations are quantised too, to 16 bits.
        elements::tolerance(ptx::dtype(self.product.output)).max(1e-4)
    }
}

impl QuantizedProduct {
    /// Returns the launches on a GPU. A prologue is computed with few columns of results in `f32`.
    fn plan(&self, gpu: GpuSpec) -> Result<Plan, PlanError> {
        let MatMul { format, rows, k, columns, activations, output } = self.product;
        if self.prologue == Prologue::None {
            return self.product.plan(gpu);
        }
        if output != scry_ptx::PtxType::F32 {
            return Err(PlanError::Argument {
                kernel: "matvec".to_owned(),
                argument: "output",
                problem: format!("is {}, with a prologue", output.name()),
                help: "use f32",
            });
        }
        let columns = u32::try_from(columns).unwrap_or(u32::MAX);
        MatVec { format, rows, k, columns, activations, prologue: self.prologue }.plan(gpu)
    }
}
