//! Row-wise functions: softmax and norms.

use scry_ptx::PtxType;
pub use scry_ptx::kernels::norm::{Norm, NormKind};
pub use scry_ptx::kernels::rows::Rows;
pub use scry_ptx::kernels::softmax::SoftmaxKind;
use scry_ptx::kernels::{norm, softmax};

use super::check::Call;
use super::{Kernels, PreparedOp, element};
use crate::api::binding::Binding;
use crate::api::buffer::Buffer;
use crate::api::error::{GpuError, Result};
use crate::api::native::GemmElement;

/// Functions of the rows of a row-major matrix without padding: `f32`, `f16` or `bf16`, computed in
/// `f32`. A `shape` is the number of rows and the number of columns (`length`). Buffers may be
/// longer than the matrix. The output must not overlap an input.
impl Kernels {
    /// Prepares the softmax of each row, `y = exp(x - max) / sum(exp(x - max))`. `x` and `y` are
    /// matrices of `shape`, which is `[rows, columns]`.
    ///
    /// ```no_run
    /// use scry_gpu::cuda::kernels::Kernels;
    /// use scry_gpu::{BackendKind, Device};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// let gpu = Device::with_backend(BackendKind::Cuda)?;
    /// let kernels = Kernels::new(&gpu)?;
    /// let x = gpu.upload(&[1.0f32, 1.0, 3.0, 3.0])?;
    /// let y = gpu.alloc::<f32>(4)?;
    /// kernels.softmax(&x, &y, [2, 2])?.run()?;
    /// assert_eq!(y.download()?, [0.5; 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::norm`].
    pub fn softmax<'a, T: GemmElement>(
        &self,
        x: &'a Buffer<T>,
        y: &'a Buffer<T>,
        shape: [usize; 2],
    ) -> Result<PreparedOp<'a>> {
        self.prepare_softmax(SoftmaxKind::Softmax, row_matrix(element::<T>(), shape), &[x, y])
    }

    /// Prepares the logarithm of the softmax of each row, `y = x - max - ln(sum(exp(x - max)))`.
    /// `x` and `y` are matrices of `shape`, which is `[rows, columns]`.
    ///
    /// ```no_run
    /// # #[cfg(feature = "kernels")]
    /// # mod example {
    /// use scry_gpu::Buffer;
    /// use scry_gpu::cuda::kernels::Kernels;
    ///
    /// fn example(kernels: &Kernels, x: &Buffer<f32>, y: &Buffer<f32>) -> scry_gpu::Result<()> {
    ///     kernels.log_softmax(x, y, [1024, 4096])?.run() // 1024 rows of 4096
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::norm`].
    pub fn log_softmax<'a, T: GemmElement>(
        &self,
        x: &'a Buffer<T>,
        y: &'a Buffer<T>,
        shape: [usize; 2],
    ) -> Result<PreparedOp<'a>> {
        self.prepare_softmax(SoftmaxKind::LogSoftmax, row_matrix(element::<T>(), shape), &[x, y])
    }

    fn prepare_softmax<'a>(
        &self,
        softmax: SoftmaxKind,
        rows: Rows,
        buffers: &[&'a dyn Binding],
    ) -> Result<PreparedOp<'a>> {
        let name = match softmax {
            SoftmaxKind::Softmax => "Kernels::softmax",
            SoftmaxKind::LogSoftmax => "Kernels::log_softmax",
        };
        let call = Call { function: name, sizes: &labelled_sizes(rows) };
        self.prepare_plan(call, softmax::plan(softmax, rows, self.gpu_spec()), buffers)
    }

    /// Prepares layer norm of each row,
    /// `y = (x - mean) / sqrt(variance + epsilon) * weight + bias`. `x` and `y` are matrices of
    /// `shape`, which is `[rows, columns]`; `weight` and `bias` have an element per column. `None`
    /// omits the factor or the term; a bias requires a weight.
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
    ///     weight: &Buffer<f32>,
    ///     y: &Buffer<f32>,
    /// ) -> scry_gpu::Result<()> {
    ///     kernels.layer_norm(x, Some(weight), None, y, [1024, 4096], 1e-5)?.run()
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`] for a bias without a weight; the errors of [`Kernels::norm`].
    pub fn layer_norm<'a, T: GemmElement>(
        &self,
        x: &'a Buffer<T>,
        weight: Option<&'a Buffer<T>>,
        bias: Option<&'a Buffer<T>>,
        y: &'a Buffer<T>,
        shape: [usize; 2],
        epsilon: f32,
    ) -> Result<PreparedOp<'a>> {
        let kind = match (weight, bias) {
            (None, None) => NormKind::Layer,
            (Some(_), None) => NormKind::LayerWeight,
            (Some(_), Some(_)) => NormKind::LayerWeightBias,
            (None, Some(_)) => return Err(bias_without_weight()),
        };
        let buffers: Vec<&'a dyn Binding> =
            [Some(x), weight, bias, Some(y)].into_iter().flatten().map(|it| it as _).collect();
        let (norm, rows) = (Norm { kind, epsilon }, row_matrix(element::<T>(), shape));
        self.prepare_norm("Kernels::layer_norm", norm, rows, &buffers)
    }

    /// Prepares RMS norm of each row, `y = x / sqrt(mean(x²) + epsilon) * weight`. `x` and `y` are
    /// matrices of `shape`, which is `[rows, columns]`; `weight` has an element per column, and
    /// `None` omits it.
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
    ///     weight: &Buffer<f32>,
    ///     y: &Buffer<f32>,
    /// ) -> scry_gpu::Result<()> {
    ///     kernels.rms_norm(x, Some(weight), y, [1024, 4096], 1e-6)?.run()
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::norm`].
    pub fn rms_norm<'a, T: GemmElement>(
        &self,
        x: &'a Buffer<T>,
        weight: Option<&'a Buffer<T>>,
        y: &'a Buffer<T>,
        shape: [usize; 2],
        epsilon: f32,
    ) -> Result<PreparedOp<'a>> {
        let kind = if weight.is_some() { NormKind::RmsWeight } else { NormKind::Rms };
        let buffers: Vec<&'a dyn Binding> =
            [Some(x), weight, Some(y)].into_iter().flatten().map(|it| it as _).collect();
        let (norm, rows) = (Norm { kind, epsilon }, row_matrix(element::<T>(), shape));
        self.prepare_norm("Kernels::rms_norm", norm, rows, &buffers)
    }

    /// Prepares a norm of each row, see [`Norm`]. Buffers are `x`, `weight` and `bias` if the kind
    /// has them, and `y`.
    ///
    /// ```no_run
    /// use scry_gpu::Buffer;
    /// use scry_gpu::cuda::kernels::Kernels;
    ///
    /// fn example(kernels: &Kernels, x: &Buffer<f32>, y: &Buffer<f32>) -> scry_gpu::Result<()> {
    ///     use scry_gpu::cuda::kernels::{Norm, NormKind, PtxType, Rows};
    ///
    ///     let norm = Norm { kind: NormKind::Rms, epsilon: 1e-6 };
    ///     let rows = Rows { count: 1024, length: 4096, element: PtxType::F32 };
    ///     kernels.norm(norm, rows, &[x, y])?.run()
    /// }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`] for empty rows, rows of more than 2³¹ − 2¹⁶ elements, and buffers
    /// that are too short, of another type, or that overlap with `y`; [`GpuError::Capability`] if
    /// the device lacks the instructions.
    pub fn norm<'a>(
        &self,
        norm: Norm,
        rows: Rows,
        buffers: &[&'a dyn Binding],
    ) -> Result<PreparedOp<'a>> {
        self.prepare_norm("Kernels::norm", norm, rows, buffers)
    }

    /// Prepares [`Kernels::norm`]; errors name `function` as the called function.
    fn prepare_norm<'a>(
        &self,
        function: &str,
        norm: Norm,
        rows: Rows,
        buffers: &[&'a dyn Binding],
    ) -> Result<PreparedOp<'a>> {
        let call = Call { function, sizes: &labelled_sizes(rows) };
        self.prepare_plan(call, norm::plan(norm, rows, self.gpu_spec()), buffers)
    }
}

/// Returns the matrix of a shape.
fn row_matrix(element: PtxType, [count, length]: [usize; 2]) -> Rows {
    Rows { count: count as u64, length: length as u64, element }
}

/// Returns the sizes of a matrix with their names, for errors.
fn labelled_sizes(rows: Rows) -> [(&'static str, u64); 2] {
    [("rows", rows.count), ("length", rows.length)]
}

fn bias_without_weight() -> GpuError {
    let call = Call { function: "Kernels::layer_norm", sizes: &[] };
    let problem = "is given without a weight".to_owned();
    call.argument_error("`bias`".to_owned(), problem, "pass a weight of ones as well")
}
