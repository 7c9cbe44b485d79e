//! Products of matrices.

use scry_ptx::PtxType;
pub use scry_ptx::kernels::gemm::{Activation, Epilogue, Gemm, Layout, MatrixLayout, Precision};

use super::check::Call;
use super::error::plan_error;
use super::{Kernels, Plan, PreparedOp, check, element, sizes};
use crate::api::binding::Binding;
use crate::api::buffer::Buffer;
use crate::api::error::Result;
use crate::api::launch::Count;
use crate::api::native::{GemmElement, Routine, cublas};

/// The implementation of a matrix product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Engine {
    /// The kernel library of this crate.
    #[default]
    Scry,
    /// NVIDIA's cuBLAS, if it is installed.
    Cublas,
}

/// Products of matrices.
impl Kernels {
    /// Prepares `out = a × b` of row-major matrices without padding: `a` is m × k, `b` k × n and
    /// `out` m × n, of `f32`, `f16` or `bf16`. Accumulators are `f32`, rounded once at the end;
    /// `f32` is multiplied as `f32`.
    ///
    /// ```no_run
    /// use scry_gpu::cuda::kernels::Kernels;
    /// use scry_gpu::{BackendKind, Device, bf16};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// let gpu = Device::with_backend(BackendKind::Cuda)?;
    /// let kernels = Kernels::new(&gpu)?;
    /// let a = gpu.upload(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(bf16::from_f32))?; // 2 × 3
    /// let b = gpu.upload(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0].map(bf16::from_f32))?; // 3 × 2
    /// let out = gpu.alloc::<bf16>(4)?;
    /// kernels.matmul(&a, &b, &out, 2, 2, 3)?.run()?;
    /// assert_eq!(out.download()?, [4.0, 5.0, 10.0, 11.0].map(bf16::from_f32));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::gemm`].
    pub fn matmul<'a, T: GemmElement>(
        &self,
        a: &'a Buffer<T>,
        b: &'a Buffer<T>,
        out: &'a Buffer<T>,
        m: impl Count,
        n: impl Count,
        k: impl Count,
    ) -> Result<PreparedOp<'a>> {
        let named_sizes = [("m", m.count()), ("n", n.count()), ("k", k.count())];
        let [m, n, k] = sizes("Kernels::matmul", named_sizes)?;
        let gemm = Gemm::new(m, n, k, element::<T>());
        self.prepare_gemm("Kernels::matmul", &gemm, &[a, b, out])
    }

    /// Prepares [`Kernels::matmul`] with the given engine.
    ///
    /// ```no_run
    /// # #[cfg(feature = "kernels")]
    /// # mod example {
    /// use scry_gpu::{Buffer, bf16};
    /// use scry_gpu::cuda::kernels::Kernels;
    ///
    /// fn example(
    ///     kernels: &Kernels,
    ///     a: &Buffer<bf16>,
    ///     b: &Buffer<bf16>,
    ///     c: &Buffer<bf16>,
    /// ) -> scry_gpu::Result<()> {
    ///     use scry_gpu::cuda::kernels::Engine;
    ///
    ///     // Computes `c = a × b`, all of 64 × 64 elements.
    ///     kernels.matmul_with(Engine::default(), a, b, c, 64, 64, 64)?.run()
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::gemm`]; for cuBLAS as [`Device::cublas_matmul`](crate::Device::cublas_matmul).
    #[expect(clippy::too_many_arguments, reason = "every matrix product has these")]
    pub fn matmul_with<'a, T: GemmElement>(
        &self,
        engine: Engine,
        a: &'a Buffer<T>,
        b: &'a Buffer<T>,
        out: &'a Buffer<T>,
        m: impl Count,
        n: impl Count,
        k: impl Count,
    ) -> Result<PreparedOp<'a>> {
        let named_sizes = [("m", m.count()), ("n", n.count()), ("k", k.count())];
        let [m, n, k] = sizes("Kernels::matmul_with", named_sizes)?;
        let buffers: [&'a dyn Binding; 3] = [a, b, out];
        let gemm = Gemm::new(m, n, k, element::<T>());
        match engine {
            // If k is 0 or the result is empty, there is no product for cuBLAS: the kernel library
            // fills the result with zeros, or does nothing.
            Engine::Cublas if !gemm.is_empty() && k > 0 => {
                self.prepare_cublas(&gemm, buffers, [m, n, k])
            }
            _ => self.prepare_gemm("Kernels::matmul_with", &gemm, &buffers),
        }
    }

    /// Prepares a general matrix product (GEMM): batched and strided, with row- or column-major
    /// operands, alpha, beta, a bias and an activation, see [`Gemm`]. Buffers are `a`, `b`, the
    /// bias if there is one, and `out`; they may be longer than the matrices.
    ///
    /// Tensor cores multiply `f16` and `bf16`, and `f32` as [`Precision`] specifies. Operands whose
    /// rows are not 16-byte aligned, as TMA requires, are repacked into cached scratch memory.
    ///
    /// ```no_run
    /// use scry_gpu::{Buffer, bf16};
    /// use scry_gpu::cuda::kernels::Kernels;
    ///
    /// fn example(
    ///     kernels: &Kernels,
    ///     a: &Buffer<bf16>,
    ///     b: &Buffer<bf16>,
    ///     c: &Buffer<bf16>,
    /// ) -> scry_gpu::Result<()> {
    ///     use scry_gpu::cuda::kernels::{Gemm, PtxType};
    ///
    ///     kernels.gemm(&Gemm::new(64, 64, 64, PtxType::Bf16), &[a, b, c])?.run()
    /// }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](crate::GpuError::Argument) for invalid sizes or types, and buffers
    /// that are too short, of another type, or that overlap with `out`;
    /// [`GpuError::Capability`](crate::GpuError::Capability) if the device lacks the instructions.
    pub fn gemm<'a>(&self, gemm: &Gemm, buffers: &[&'a dyn Binding]) -> Result<PreparedOp<'a>> {
        self.prepare_gemm("Kernels::gemm", gemm, buffers)
    }

    /// Prepares [`Kernels::gemm`]; errors name `function` as the called function.
    fn prepare_gemm<'a>(
        &self,
        function: &str,
        gemm: &Gemm,
        buffers: &[&'a dyn Binding],
    ) -> Result<PreparedOp<'a>> {
        let named_sizes = [("m", gemm.m), ("n", gemm.n), ("k", gemm.k), ("batch", gemm.batch)];
        // A batch of one is not mentioned.
        let sizes = if gemm.batch == 1 { &named_sizes[..3] } else { &named_sizes[..] };
        self.prepare_plan(Call { function, sizes }, gemm.plan(self.gpu_spec()), buffers)
    }

    /// Prepares a product of row-major matrices without padding with cuBLAS.
    fn prepare_cublas<'a>(
        &self,
        gemm: &Gemm,
        buffers: [&'a dyn Binding; 3],
        sizes: [u64; 3],
    ) -> Result<PreparedOp<'a>> {
        let named_sizes = [("m", gemm.m), ("n", gemm.n), ("k", gemm.k)];
        let call = Call { function: "Kernels::matmul_with", sizes: &named_sizes };
        let device = &self.shared.device;
        let arguments = gemm.buffers().map_err(|error| plan_error(device.info(), call, error))?;
        let plan = Plan { arguments, ..Plan::default() };
        check::check_arguments(device, call, &plan, &buffers)?;
        let routine = match gemm.element {
            PtxType::F16 => Routine::F16,
            PtxType::Bf16 => Routine::Bf16,
            _ => Routine::F32,
        };
        // `Gemm::buffers` rejects sizes that do not fit in 31 bits.
        let sizes = sizes.map(|size| size as u32);
        let (kernel, launch) = cublas::product(&device.context, routine, sizes)?;
        Ok(PreparedOp::single(device, call, kernel, &buffers, launch))
    }
}
