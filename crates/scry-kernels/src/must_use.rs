//! Doc tests that the compiler warns about unused values of `#[must_use]` types.

/// ```compile_fail
/// # use scry_gpu::{Buffer, Result};
/// # use scry_kernels::Kernels;
/// fn example(kernels: &Kernels, x: &Buffer<f32>, y: &Buffer<f32>) -> Result<()> {
///     kernels.softmax(x, y, 1, 1)?;
///     Ok(())
/// }
/// ```
///
/// ```
/// # use scry_gpu::{Buffer, Result};
/// # use scry_kernels::Kernels;
/// fn example(kernels: &Kernels, x: &Buffer<f32>, y: &Buffer<f32>) -> Result<()> {
///     let _op = kernels.softmax(x, y, 1, 1)?;
///     Ok(())
/// }
/// ```
struct UnusedOp;
