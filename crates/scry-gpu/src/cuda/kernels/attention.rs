//! Attention.

pub use scry_ptx::kernels::attention::{Attention, AttentionBias, Strides};

use super::check::Call;
use super::{Kernels, PreparedOp};
use crate::api::binding::Binding;
use crate::api::error::Result;

/// Attention.
impl Kernels {
    /// Prepares `out = softmax(scale * q * kᵀ + bias) * v` for each head of a batch, see
    /// [`Attention`]: of `f16`, `bf16` or `f32`, causal or not, with grouped-query attention.
    /// Buffers are `q`, `k`, `v`, the bias if there is one, and `out`; they may be longer than the
    /// operands.
    ///
    /// The flash variants keep the scores out of memory; with few queries and many keys, as in
    /// decoding, the keys are split over the whole device.
    ///
    /// ```no_run
    /// use scry_gpu::cuda::kernels::{Attention, Kernels, PtxType};
    /// use scry_gpu::{BackendKind, Device, f16};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// let gpu = Device::with_backend(BackendKind::Cuda)?;
    /// let kernels = Kernels::new(&gpu)?;
    /// let (batch, heads, length, head_dim) = (2, 8, 1000, 64);
    /// let data = vec![f16::ONE; (batch * heads * length * head_dim) as usize];
    /// let (q, k, v) = (gpu.upload(&data)?, gpu.upload(&data)?, gpu.upload(&data)?);
    /// let out = gpu.alloc::<f16>(data.len())?;
    /// let all = Attention::new([batch, heads], length, length, head_dim, PtxType::F16);
    /// kernels.attention(&all.causal(), &[&q, &k, &v, &out])?.run()?;
    /// assert_eq!(out.download()?, data);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](crate::GpuError::Argument) for invalid sizes or types, and buffers
    /// that are too short, of another type, or that overlap with `out`;
    /// [`GpuError::Capability`](crate::GpuError::Capability) if the device lacks the instructions.
    pub fn attention<'a>(
        &self,
        attention: &Attention,
        buffers: &[&'a dyn Binding],
    ) -> Result<PreparedOp<'a>> {
        let call = Call { function: "Kernels::attention", sizes: &labelled_sizes(attention) };
        self.prepare_plan(call, attention.plan(self.gpu_spec()), buffers)
    }

    /// Prepares [`Kernels::attention`] with the naive kernel, which computes a query per warp. It
    /// is slow, and a reference for the other variants.
    ///
    /// ```no_run
    /// use scry_gpu::{Buffer, f16};
    /// use scry_gpu::cuda::kernels::Kernels;
    ///
    /// fn example(kernels: &Kernels, [q, k, v, out]: [&Buffer<f16>; 4]) -> scry_gpu::Result<()> {
    ///     use scry_gpu::cuda::kernels::{Attention, PtxType};
    ///
    ///     let attention = Attention::new([1, 8], 100, 100, 64, PtxType::F16);
    ///     kernels.simple_attention(&attention, &[q, k, v, out])?.run()
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::attention`].
    pub fn simple_attention<'a>(
        &self,
        attention: &Attention,
        buffers: &[&'a dyn Binding],
    ) -> Result<PreparedOp<'a>> {
        let call =
            Call { function: "Kernels::simple_attention", sizes: &labelled_sizes(attention) };
        self.prepare_plan(call, attention.naive(), buffers)
    }
}

/// Returns the sizes of attention with their names, for errors.
fn labelled_sizes(attention: &Attention) -> [(&'static str, u64); 6] {
    [
        ("batch", attention.batch),
        ("heads", attention.heads),
        ("kv_heads", attention.kv_heads),
        ("queries", attention.queries),
        ("keys", attention.keys),
        ("head_dim", attention.head_dim),
    ]
    .map(|(name, size)| (name, u64::from(size)))
}
