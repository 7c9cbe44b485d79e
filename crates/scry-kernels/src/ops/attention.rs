//! Attention.

use scry_gpu::{Binding, NativeBinding, Result};
pub use scry_ptx::kernels::attention::{Attention, AttentionBias, Strides};

use crate::call::Call;
use crate::elements;
use crate::kernels::Kernels;
use crate::native;
use crate::op::Op;
use crate::operation::{Operation, Variant, VariantInfo};
use crate::ptx;

/// Attention with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attend {
    attention: Attention,
    arguments: Vec<NativeBinding>,
}

/// Attention.
impl Kernels {
    /// Prepares `out = softmax(scale * q * kᵀ + bias) * v` for each head of a batch, see
    /// [`Attention`]: of `f16`, `bf16` or `f32`, causal or not, with grouped-query attention.
    /// Buffers are `q`, `k`, `v`, the bias if there is one, and `out`; they may be longer than the
    /// operands. A row that sees no key, or none whose bias is above minus infinity, becomes 0.
    ///
    /// The flash variants keep the scores out of memory; with few queries and many keys, as in
    /// decoding, the keys are split over the whole device.
    ///
    /// ```no_run
    /// use scry_gpu::{BackendKind, Device, f16};
    /// use scry_kernels::{Attention, Kernels, PtxType};
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
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for invalid sizes or types, and buffers
    /// that are too short, of another type, or that overlap with `out`;
    /// [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device supports no variant
    /// for the type and the sizes.
    pub fn attention(&self, attention: &Attention, buffers: &[&dyn Binding]) -> Result<Op> {
        let declared = attention.buffers().map_err(|error| {
            let call = Call { function: "Kernels::attention".into(), sizes: sizes(attention) };
            ptx::plan_error(self.device().info(), &call, error)
        })?;
        let arguments = native::bindings(&declared);
        self.op(Attend { attention: *attention, arguments }, buffers)
    }
}

/// Returns the sizes of attention with their names, for errors.
fn sizes(attention: &Attention) -> Vec<(&'static str, u64)> {
    let sizes = [
        ("batch", attention.batch),
        ("heads", attention.heads),
        ("kv_heads", attention.kv_heads),
        ("queries", attention.queries),
        ("keys", attention.keys),
        ("head_dim", attention.head_dim),
    ];
    sizes.map(|(name, size)| (name, u64::from(size))).into()
}

impl Operation for Attend {
    fn function(&self) -> &'static str {
        "Kernels::attention"
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        sizes(&self.attention)
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        self.arguments.clone()
    }

    fn variants() -> &'static [Variant<Self>] {
        &[
            Variant {
                info: VariantInfo { name: "ptx", needs: "CUDA, sm_80", deterministic: true },
                obstacle: |it, kernels| ptx::obstacle(kernels, |gpu| it.attention.plan(gpu)),
                suits: |_, _| true,
                prepare: |it, preparation| {
                    preparation.plan(ptx::plan(preparation.kernels, |gpu| it.attention.plan(gpu)))
                },
            },
            Variant {
                info: VariantInfo { name: "ptx-naive", needs: "CUDA, sm_80", deterministic: true },
                obstacle: |it, kernels| ptx::obstacle(kernels, |_| it.attention.naive()),
                suits: |_, _| false,
                prepare: |it, preparation| preparation.plan(it.attention.naive()),
            },
        ]
    }

    fn is_empty(&self) -> bool {
        self.attention.is_empty()
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(ptx::dtype(self.attention.element))
    }
}
