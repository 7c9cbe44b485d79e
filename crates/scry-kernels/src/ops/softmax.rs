//! Softmax and its logarithm.

use scry_gpu::{BackendKind, Binding, NativeBinding, PreparedLaunch, Result};
use scry_ptx::kernels::softmax::{self, SoftmaxKind};

use super::rows::{RowKernel, RowMatrix};
use crate::elements;
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};

/// Softmax of each row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Softmax {
    kind: SoftmaxKind,
    matrix: RowMatrix,
}

/// Softmax of rows.
impl Kernels {
    /// Prepares the softmax of each row, `y = exp(x - max) / sum(exp(x - max))`. `x` and `y` are
    /// row-major matrices without padding, of `f32`, `f16` or `bf16`, computed in `f32`; buffers
    /// may be longer.
    ///
    /// A row that contains NaN or +∞, or only -∞, becomes NaN.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let kernels = Kernels::new(&gpu)?;
    /// let x = gpu.upload(&[1.0f32, 1.0, 3.0, 3.0])?;
    /// let y = gpu.alloc::<f32>(4)?;
    /// kernels.softmax(&x, &y, 2, 2)?.run()?;
    /// assert_eq!(y.download()?, [0.5; 4]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for buffers that are too short, of
    /// another type, or that overlap; [`GpuError::Capability`](scry_gpu::GpuError::Capability) if
    /// the device supports no variant for the type and the sizes.
    pub fn softmax(
        &self,
        x: &dyn Binding,
        y: &dyn Binding,
        rows: usize,
        columns: usize,
    ) -> Result<Op> {
        self.prepare_softmax(SoftmaxKind::Softmax, [x, y], [rows, columns])
    }

    /// Prepares the logarithm of the softmax of each row,
    /// `y = x - max - ln(sum(exp(x - max)))`. Matrices are those of [`Kernels::softmax`].
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, y) = (gpu.upload(&[7.0f32; 4])?, gpu.alloc::<f32>(4)?);
    /// Kernels::new(&gpu)?.log_softmax(&x, &y, 1, 4)?.run()?;
    /// assert!((y.get(0)? + 4f32.ln()).abs() < 1e-6);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::softmax`].
    pub fn log_softmax(
        &self,
        x: &dyn Binding,
        y: &dyn Binding,
        rows: usize,
        columns: usize,
    ) -> Result<Op> {
        self.prepare_softmax(SoftmaxKind::LogSoftmax, [x, y], [rows, columns])
    }

    fn prepare_softmax(
        &self,
        kind: SoftmaxKind,
        [x, y]: [&dyn Binding; 2],
        sizes: [usize; 2],
    ) -> Result<Op> {
        let matrix = RowMatrix::new(function(kind), x, sizes)?;
        self.op(Softmax { kind, matrix }, &[x, y])
    }
}

fn function(kind: SoftmaxKind) -> &'static str {
    match kind {
        SoftmaxKind::Softmax => "Kernels::softmax",
        SoftmaxKind::LogSoftmax => "Kernels::log_softmax",
    }
}

impl Operation for Softmax {
    fn function(&self) -> &'static str {
        function(self.kind)
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        self.matrix.sizes()
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        vec![self.matrix.read("x"), self.matrix.write("y")]
    }

    fn variants() -> &'static [Variant<Self>] {
        &[
            Variant {
                info: VariantInfo { name: "ptx", needs: "CUDA, sm_80", deterministic: true },
                obstacle: |it, kernels| {
                    it.matrix.ptx_obstacle(kernels, |rows, gpu| softmax::plan(it.kind, rows, gpu))
                },
                suits: |_, _| true,
                prepare: |it, preparation| {
                    let plan = |rows, gpu| softmax::plan(it.kind, rows, gpu);
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
    it: &Softmax,
    preparation: &Preparation<'_>,
    by_subgroups: bool,
) -> Result<Vec<PreparedLaunch>> {
    let kernel = RowKernel {
        name: "softmax",
        row: "softmax_row",
        declarations: match it.kind {
            SoftmaxKind::Softmax => "const LOGARITHM = false;\n",
            SoftmaxKind::LogSoftmax => "const LOGARITHM = true;\n",
        },
        body: include_str!("../shaders/rows/softmax.wgsl"),
        buffers: &[&preparation.buffers[0], &preparation.buffers[1]],
        epsilon: 0.0,
        by_subgroups,
    };
    it.matrix.launch(preparation, &kernel)
}
