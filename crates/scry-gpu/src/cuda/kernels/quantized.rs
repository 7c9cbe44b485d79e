//! Quantised weights, in the block formats of GGUF files.

use scry_ptx::kernels::quant;
pub use scry_ptx::kernels::quant::BlockFormat;
use scry_ptx::kernels::quant::MatMul;

use super::check::Call;
use super::{Kernels, PreparedOp, element};
use crate::api::buffer::Buffer;
use crate::api::error::Result;
use crate::api::native::GemmElement;

/// Quantised weights: blocks of low-bit integers with scales, in byte buffers.
impl Kernels {
    /// Prepares the quantisation of the first `count` elements of `x` to `blocks`; `count` is a
    /// multiple of the block length.
    ///
    /// ```no_run
    /// # #[cfg(feature = "kernels")]
    /// # mod example {
    /// use scry_gpu::Buffer;
    /// use scry_gpu::cuda::kernels::Kernels;
    ///
    /// fn example(
    ///     kernels: &Kernels,
    ///     x: &Buffer<f32>,
    ///     blocks: &Buffer<u8>,
    /// ) -> scry_gpu::Result<()> {
    ///     use scry_gpu::cuda::kernels::BlockFormat;
    ///
    ///     // 256 weights are one block of Q4_K, 144 bytes.
    ///     kernels.quantize(BlockFormat::Q4K, x, blocks, 256)?.run()
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](crate::GpuError::Argument) for a count that is not a multiple of the
    /// block length, and buffers that are too short.
    pub fn quantize<'a>(
        &self,
        format: BlockFormat,
        x: &'a Buffer<f32>,
        blocks: &'a Buffer<u8>,
        count: usize,
    ) -> Result<PreparedOp<'a>> {
        let plan = quant::quantize_plan(format, count as u64);
        let call = Call { function: "Kernels::quantize", sizes: &[("count", count as u64)] };
        self.prepare_plan(call, plan, &[x, blocks])
    }

    /// Prepares the dequantisation of `count` weights in `blocks` to `y`: `f32`, `f16` or `bf16`.
    ///
    /// ```no_run
    /// # #[cfg(feature = "kernels")]
    /// # mod example {
    /// use scry_gpu::Buffer;
    /// use scry_gpu::cuda::kernels::Kernels;
    ///
    /// fn example(
    ///     kernels: &Kernels,
    ///     blocks: &Buffer<u8>,
    ///     y: &Buffer<f32>,
    /// ) -> scry_gpu::Result<()> {
    ///     use scry_gpu::cuda::kernels::BlockFormat;
    ///
    ///     kernels.dequantize(BlockFormat::Q4K, blocks, y, 256)?.run()
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::quantize`].
    pub fn dequantize<'a, T: GemmElement>(
        &self,
        format: BlockFormat,
        blocks: &'a Buffer<u8>,
        y: &'a Buffer<T>,
        count: usize,
    ) -> Result<PreparedOp<'a>> {
        let plan = quant::dequantize_plan(format, element::<T>(), count as u64);
        let call = Call { function: "Kernels::dequantize", sizes: &[("count", count as u64)] };
        self.prepare_plan(call, plan, &[blocks, y])
    }

    /// Prepares `y = weights × x`: row-major quantised weights (rows × k) times column-major
    /// activations (k × columns); `y` is column-major (rows × columns).
    ///
    /// Up to 8 columns with results in `f32` are multiplied without dequantising to memory, reading
    /// the weights once (twice or more where rows are short and there are more than 4 columns).
    /// Otherwise the weights are first dequantised to the activations' type, for tensor cores.
    ///
    /// ```no_run
    /// use scry_gpu::cuda::kernels::{BlockFormat, Kernels};
    /// use scry_gpu::{BackendKind, Device};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// let gpu = Device::with_backend(BackendKind::Cuda)?;
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
    /// [`GpuError::Argument`](crate::GpuError::Argument) for rows with partial blocks, sizes that
    /// are too large, and buffers that are too short or overlap with `y`;
    /// [`GpuError::Capability`](crate::GpuError::Capability) if the device lacks the instructions.
    pub fn quantized_matmul<'a, X: GemmElement, Y: GemmElement>(
        &self,
        format: BlockFormat,
        weights: &'a Buffer<u8>,
        x: &'a Buffer<X>,
        y: &'a Buffer<Y>,
        [rows, k]: [usize; 2],
        columns: usize,
    ) -> Result<PreparedOp<'a>> {
        let product = MatMul {
            format,
            rows: rows as u64,
            k: k as u64,
            columns: columns as u64,
            activations: element::<X>(),
            output: element::<Y>(),
        };
        let sizes = [("rows", product.rows), ("k", product.k), ("columns", product.columns)];
        let call = Call { function: "Kernels::quantized_matmul", sizes: &sizes };
        self.prepare_plan(call, product.plan(self.gpu_spec()), &[weights, x, y])
    }
}
