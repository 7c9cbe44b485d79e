//! What operations on the CPU device share: host functions and their operands.

use scry_gpu::{
    BackendKind, Binding, DType, HostArguments, Launch, NativeBinding, NativeInterface,
    PreparedLaunch, Result, bf16, f16,
};

use crate::kernels::Kernels;
use crate::operation::{Preparation, Variant, VariantInfo};

/// The variant of an operation that is a function of the host.
pub(crate) const INFO: VariantInfo =
    VariantInfo { name: "cpu", needs: "the CPU device", deterministic: true };

/// Returns why host functions cannot run; `None` on the CPU device.
pub(crate) fn obstacle(kernels: &Kernels) -> Option<String> {
    if !cfg!(feature = "cpu") {
        return Some("needs the feature `cpu`".to_owned());
    }
    (!is_cpu(kernels)).then(|| "needs the CPU device".to_owned())
}

/// Returns the variant of an operation that a function of the host always suits.
pub(crate) const fn variant<O>(
    prepare: fn(&O, &Preparation<'_>) -> Result<Vec<PreparedLaunch>>,
) -> Variant<O> {
    Variant { info: INFO, obstacle: |_, kernels| obstacle(kernels), suits: |_, _| true, prepare }
}

/// Returns whether a device is the CPU device.
pub(crate) fn is_cpu(kernels: &Kernels) -> bool {
    kernels.device().backend_kind() == BackendKind::Cpu
}

/// The fewest elements for which another thread is worth it.
pub(crate) const MIN_PART: usize = 1 << 14;

/// Calls a function with the position and the elements of each part of a result, on all threads of
/// the processor.
pub(crate) fn for_each_part<T: Send>(
    out: &mut [T],
    part_len: usize,
    function: impl Fn(usize, &mut [T]) + Send + Sync,
) {
    if out.len() <= part_len {
        return function(0, out);
    }
    #[cfg(feature = "cpu")]
    {
        use rayon::prelude::*;
        let parts = out.par_chunks_mut(part_len).enumerate();
        parts.for_each(|(nth, part)| function(nth * part_len, part));
    }
    // Not reached: without the feature there is no CPU device.
    #[cfg(not(feature = "cpu"))]
    for (nth, part) in out.chunks_mut(part_len).enumerate() {
        function(nth * part_len, part);
    }
}

/// A computation that is compiled for several sets of vector instructions. Its function, and all
/// that it calls, must be inlined (`#[inline(always)]`): what is not inlined is compiled for the
/// oldest processors.
pub(crate) trait Vectorised {
    /// Computes; `fused` is a constant, and true if the processor has fused multiply-add
    /// instructions.
    fn compute(self, fused: bool);
}

/// Computes with the vector instructions of the processor at hand.
pub(crate) fn vectorised(computation: impl Vectorised) {
    #[cfg(feature = "cpu")]
    {
        struct Adapter<C>(C);

        impl<C: Vectorised> pulp::WithSimd for Adapter<C> {
            type Output = ();

            #[inline(always)]
            fn with_simd<S: pulp::Simd>(self, _: S) {
                // Elsewhere, what is not scalar does not imply these instructions.
                let is_known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
                self.0.compute(is_known && !S::IS_SCALAR);
            }
        }

        pulp::Arch::new().dispatch(Adapter(computation));
    }
    // Not reached: without the feature there is no CPU device.
    #[cfg(not(feature = "cpu"))]
    computation.compute(false);
}

impl Preparation<'_> {
    /// Prepares one call of a host function with the buffers of the operation.
    pub(crate) fn host(
        &self,
        name: &str,
        declared: Vec<NativeBinding>,
        function: impl Fn(&mut HostArguments<'_>) + Send + Sync + 'static,
    ) -> Result<Vec<PreparedLaunch>> {
        let interface = NativeInterface::new(declared, [1; 3]);
        let kernel = self.kernels.device().host_kernel(name, &interface, function)?;
        let buffers: Vec<_> = self.buffers.iter().collect();
        let buffers = self.without_empty(&buffers)?;
        let bindings: Vec<&dyn Binding> = buffers.iter().map(|buffer| buffer as _).collect();
        Ok(vec![kernel.prepare(&bindings, Launch::workgroups([1; 3]))?])
    }
}

/// An operand as `f32`: the numbers of a buffer, or converted ones.
pub(crate) enum HostNumbers<'a> {
    Bound(&'a [f32]),
    Converted(Vec<f32>),
}

impl<'a> HostNumbers<'a> {
    /// Reads a buffer of `f32`, `f16` or `bf16`.
    pub(crate) fn read(arguments: &HostArguments<'a>, binding: usize, dtype: DType) -> Self {
        match dtype {
            DType::F16 => {
                let numbers = arguments.read::<f16>(binding).iter();
                Self::Converted(numbers.map(|x| x.to_f32()).collect())
            }
            DType::BF16 => {
                let numbers = arguments.read::<bf16>(binding).iter();
                Self::Converted(numbers.map(|x| x.to_f32()).collect())
            }
            _ => Self::Bound(arguments.read(binding)),
        }
    }

    /// Returns the numbers.
    pub(crate) fn as_slice(&self) -> &[f32] {
        match self {
            Self::Bound(numbers) => numbers,
            Self::Converted(numbers) => numbers,
        }
    }
}

/// Calls a function with the numbers of a written buffer of `f32`, `f16` or `bf16` as `f32`, and
/// rounds the results.
pub(crate) fn write_as_f32(
    arguments: &mut HostArguments<'_>,
    binding: usize,
    dtype: DType,
    compute: impl FnOnce(&mut [f32]),
) {
    match dtype {
        DType::F16 => {
            let out: &mut [f16] = arguments.write(binding);
            let mut wide: Vec<f32> = out.iter().map(|x| x.to_f32()).collect();
            compute(&mut wide);
            out.iter_mut().zip(wide).for_each(|(out, x)| *out = f16::from_f32(x));
        }
        DType::BF16 => {
            let out: &mut [bf16] = arguments.write(binding);
            let mut wide: Vec<f32> = out.iter().map(|x| x.to_f32()).collect();
            compute(&mut wide);
            out.iter_mut().zip(wide).for_each(|(out, x)| *out = bf16::from_f32(x));
        }
        _ => compute(arguments.write(binding)),
    }
}
