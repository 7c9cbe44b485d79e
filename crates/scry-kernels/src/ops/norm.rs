//! Layer norm and RMS norm.

use scry_gpu::{BackendKind, Binding, NativeBinding, PreparedLaunch, Result};
use scry_ptx::kernels::norm::{self, Norm, NormKind};

use super::rows::{RowKernel, RowMatrix};
use crate::arguments;
use crate::call::Call;
use crate::elements;
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};

/// A norm of each row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RowNorm {
    function: &'static str,
    norm: Norm,
    matrix: RowMatrix,
}

/// Norms of rows.
impl Kernels {
    /// Prepares layer norm of each row,
    /// `y = (x - mean) / sqrt(variance + epsilon) * weight + bias`. `x` and `y` are row-major
    /// matrices without padding, of `f32`, `f16` or `bf16`, computed in `f32`; `weight` and `bias`
    /// have an element per column. `None` omits the factor or the term; a bias requires a weight.
    /// Buffers may be longer.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, y) = (gpu.upload(&[1.0f32, 3.0])?, gpu.alloc::<f32>(2)?);
    /// Kernels::new(&gpu)?.layer_norm(&x, None, None, &y, 1, 2, 0.0)?.run()?;
    /// assert_eq!(y.download()?, [-1.0, 1.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for a bias without a weight, and
    /// buffers that are too short, of another type, or that overlap with `y`;
    /// [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device supports no variant
    /// for the type and the sizes.
    #[expect(clippy::too_many_arguments, reason = "a norm has these")]
    pub fn layer_norm(
        &self,
        x: &dyn Binding,
        weight: Option<&dyn Binding>,
        bias: Option<&dyn Binding>,
        y: &dyn Binding,
        rows: usize,
        columns: usize,
        epsilon: f32,
    ) -> Result<Op> {
        const FUNCTION: &str = "Kernels::layer_norm";
        let kind = match (weight, bias) {
            (None, None) => NormKind::Layer,
            (Some(_), None) => NormKind::LayerWeight,
            (Some(_), Some(_)) => NormKind::LayerWeightBias,
            (None, Some(_)) => {
                return Err(Call::new(FUNCTION).argument_error(
                    "`bias`",
                    "is given without a weight",
                    "pass a weight of ones as well",
                ));
            }
        };
        let buffers: Vec<_> = [Some(x), weight, bias, Some(y)].into_iter().flatten().collect();
        self.prepare_norm(FUNCTION, Norm { kind, epsilon }, &buffers, [rows, columns])
    }

    /// Prepares RMS norm of each row, `y = x / sqrt(mean(x²) + epsilon) * weight`. Matrices are
    /// those of [`Kernels::layer_norm`]; `None` omits the weight.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, y) = (gpu.upload(&[2.0f32, -2.0])?, gpu.alloc::<f32>(2)?);
    /// Kernels::new(&gpu)?.rms_norm(&x, None, &y, 1, 2, 0.0)?.run()?;
    /// assert_eq!(y.download()?, [1.0, -1.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::layer_norm`].
    pub fn rms_norm(
        &self,
        x: &dyn Binding,
        weight: Option<&dyn Binding>,
        y: &dyn Binding,
        rows: usize,
        columns: usize,
        epsilon: f32,
    ) -> Result<Op> {
        let kind = if weight.is_some() { NormKind::RmsWeight } else { NormKind::Rms };
        let buffers: Vec<_> = [Some(x), weight, Some(y)].into_iter().flatten().collect();
        let norm = Norm { kind, epsilon };
        self.prepare_norm("Kernels::rms_norm", norm, &buffers, [rows, columns])
    }

    fn prepare_norm(
        &self,
        function: &'static str,
        norm: Norm,
        buffers: &[&dyn Binding],
        sizes: [usize; 2],
    ) -> Result<Op> {
        let matrix = RowMatrix::new(function, buffers[0], sizes)?;
        self.op(RowNorm { function, norm, matrix }, buffers)
    }
}

impl RowNorm {
    fn has_weight(&self) -> bool {
        !matches!(self.norm.kind, NormKind::Layer | NormKind::Rms)
    }

    fn has_bias(&self) -> bool {
        self.norm.kind == NormKind::LayerWeightBias
    }

    fn is_centered(&self) -> bool {
        !matches!(self.norm.kind, NormKind::Rms | NormKind::RmsWeight)
    }

    /// Returns the declarations that precede `norm.wgsl`.
    fn declarations(&self) -> String {
        let mut text = format!(
            "const CENTERED = {};\n\
             @group(0) @binding(0) var<storage, read> x: array<StoredChunk>;\n\
             @group(0) @binding(1) var<storage, read_write> y: array<StoredChunk>;\n",
            self.is_centered()
        );
        for (name, binding, is_present, neutral) in [
            ("weight", 2, self.has_weight(), "Chunk(1.0)"),
            ("bias", 3, self.has_bias(), "Chunk(0.0)"),
        ] {
            let body =
                if is_present { format!("widen_chunk({name}s[at])") } else { neutral.into() };
            if is_present {
                text += &format!(
                    "@group(0) @binding({binding})\n\
                     var<storage, read> {name}s: array<StoredChunk>;\n"
                );
            }
            text += &format!("fn {name}(at: u32) -> Chunk {{ return {body}; }}\n");
        }
        text
    }
}

impl Operation for RowNorm {
    fn function(&self) -> &'static str {
        self.function
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        self.matrix.sizes()
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        let RowMatrix { columns, dtype, .. } = self.matrix;
        let mut arguments = vec![self.matrix.read("x")];
        arguments.extend(self.has_weight().then(|| arguments::read("weight", dtype, columns)));
        arguments.extend(self.has_bias().then(|| arguments::read("bias", dtype, columns)));
        arguments.push(self.matrix.write("y"));
        arguments
    }

    fn variants() -> &'static [Variant<Self>] {
        &[
            Variant {
                info: VariantInfo { name: "ptx", needs: "CUDA, sm_80", deterministic: true },
                obstacle: |it, kernels| {
                    it.matrix.ptx_obstacle(kernels, |rows, gpu| norm::plan(it.norm, rows, gpu))
                },
                suits: |_, _| true,
                prepare: |it, preparation| {
                    let plan = |rows, gpu| norm::plan(it.norm, rows, gpu);
                    it.matrix.prepare_ptx(preparation, plan)
                },
            },
            Variant {
                info: VariantInfo {
                    name: "wgsl-subgroups",
                    needs: "subgroups",
                    deterministic: true,
                },
                obstacle: |it, kernels| it.matrix.subgroups_obstacle(kernels),
                // The CPU has its own kind of subgroups, which workgroup memory is as fast as.
                suits: |_, kernels| kernels.device().backend_kind() != BackendKind::Cpu,
                prepare: |it, preparation| wgsl(it, preparation, true),
            },
            Variant {
                info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                obstacle: |it, kernels| it.matrix.wgsl_obstacle(kernels),
                suits: |_, _| true,
                prepare: |it, preparation| wgsl(it, preparation, false),
            },
        ]
    }

    fn is_empty(&self) -> bool {
        self.matrix.len() == 0
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(self.matrix.dtype)
    }
}

fn wgsl(
    it: &RowNorm,
    preparation: &Preparation<'_>,
    by_subgroups: bool,
) -> Result<Vec<PreparedLaunch>> {
    // `x` and `y`, then the others.
    let mut buffers: Vec<_> = preparation.buffers.iter().collect();
    let y = buffers.pop().expect("the last buffer is y");
    buffers.insert(1, y);
    let kernel = RowKernel {
        name: "norm",
        row: "norm_row",
        declarations: &it.declarations(),
        body: include_str!("../shaders/rows/norm.wgsl"),
        buffers: &buffers,
        epsilon: it.norm.epsilon,
        by_subgroups,
    };
    it.matrix.launch(preparation, &kernel)
}
