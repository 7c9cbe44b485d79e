//! Products of matrices.

pub(super) mod host;
mod shaders;

use std::ops::RangeInclusive;
use std::sync::Arc;

use scry_gpu::{Binding, DType, NativeBinding, PreparedLaunch, Result};
use scry_ptx::kernels::gemm::Portfolio;
pub use scry_ptx::kernels::gemm::{Activation, Epilogue, Gemm, Layout, MatrixLayout, Precision};
use scry_ptx::kernels::{GpuSpec, Plan, PlanError};

use crate::call::Call;
use crate::elements::{self, FLOATS};
use crate::explanation::Explanation;
use crate::kernels::Kernels;
use crate::native;
use crate::op::Op;
use crate::operation::{self, Operation, Preparation, Variant, VariantInfo};
use crate::ptx;
use crate::wgsl::{Immediates, WgslLaunch};

/// The error function of magnitudes, for GELU: Abramowitz and Stegun, 7.1.26.
const ERF_OF_MAGNITUDE: &str = "
    fn erf_of_magnitude(x: f32) -> f32 {
        let t = 1.0 / (1.0 + 0.3275911 * x);
        let cubic = ((1.0614054 * t - 1.453152) * t + 1.4214138) * t - 0.28449674;
        return 1.0 - (cubic * t + 0.2548296) * t * exp(-x * x);
    }
";

/// A product of matrices.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Product {
    function: &'static str,
    /// The sizes of the call.
    sizes: Vec<(&'static str, u64)>,
    /// The product, with normalised strides.
    gemm: Gemm,
    /// The buffers that it binds.
    arguments: Vec<NativeBinding>,
}

/// Products of matrices.
impl Kernels {
    /// Prepares `out = a × b` of row-major matrices without padding: `a` is m × k, `b` k × n and
    /// `out` m × n, of `f32`, `f16` or `bf16`. Accumulators are `f32`, rounded once at the end;
    /// `f32` is multiplied as `f32`. Buffers may be longer than the matrices. If k is 0, `out`
    /// becomes 0.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let kernels = Kernels::new(&gpu)?;
    /// let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?; // 2 × 3
    /// let b = gpu.upload(&[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0])?; // 3 × 2
    /// let out = gpu.alloc::<f32>(4)?;
    /// kernels.matmul(&a, &b, &out, 2, 2, 3)?.run()?;
    /// assert_eq!(out.download()?, [4.0, 5.0, 10.0, 11.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::gemm`].
    #[doc(alias("sgemm", "cublasSgemm"))]
    pub fn matmul(
        &self,
        a: &dyn Binding,
        b: &dyn Binding,
        out: &dyn Binding,
        m: usize,
        n: usize,
        k: usize,
    ) -> Result<Op> {
        const FUNCTION: &str = "Kernels::matmul";
        let dtype = Call::new(FUNCTION).dtype("a", a, &FLOATS)?;
        let gemm = Gemm::new(m as u64, n as u64, k as u64, ptx::element(dtype));
        self.prepare_gemm(FUNCTION, gemm, &[a, b, out])
    }

    /// Prepares a general matrix product (GEMM): batched and strided, with row- or column-major
    /// operands, alpha, beta, a bias and an activation, see [`Gemm`]. Buffers are `a`, `b`, the
    /// bias if there is one, and `out`; they may be longer than the matrices.
    ///
    /// On NVIDIA GPUs, tensor cores multiply `f16` and `bf16`, and `f32` as [`Precision`]
    /// specifies; operands whose rows are not 16-byte aligned, as TMA requires, are repacked into
    /// cached scratch memory. Elsewhere `f32` is always multiplied as `f32`.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{Gemm, Kernels, Layout, PtxType};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
    /// let out = gpu.alloc::<f32>(4)?;
    /// // x × xᵀ
    /// let gemm = Gemm::new(2, 2, 2, PtxType::F32);
    /// let gemm = gemm.with_layouts(Layout::RowMajor, Layout::ColMajor);
    /// Kernels::new(&gpu)?.gemm(&gemm, &[&x, &x, &out])?.run()?;
    /// assert_eq!(out.download()?, [5.0, 11.0, 11.0, 25.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for invalid sizes or types, and buffers
    /// that are too short, of another type, or that overlap with `out`;
    /// [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device supports no variant
    /// for the types and the sizes.
    #[doc(alias = "cublasGemmEx")]
    pub fn gemm(&self, gemm: &Gemm, buffers: &[&dyn Binding]) -> Result<Op> {
        self.prepare_gemm("Kernels::gemm", *gemm, buffers)
    }

    /// Prepares a product for a function of the library.
    pub(crate) fn prepare_gemm(
        &self,
        function: &'static str,
        gemm: Gemm,
        buffers: &[&dyn Binding],
    ) -> Result<Op> {
        let declared = gemm.buffers().map_err(|error| {
            let call = Call { function: function.into(), sizes: sizes(&gemm) };
            ptx::plan_error(self.device().info(), &call, error)
        })?;
        let arguments = native::bindings(&declared);
        self.op(Product::new(function, gemm, arguments), buffers)
    }

    /// Compiles the kernels for a product with numbers of rows from the first to the last one,
    /// which [`Kernels::gemm`] would compile at their first use. Where the device has no PTX
    /// kernels, or unless [`KernelOptions::any_rows`](crate::KernelOptions::any_rows) requests few
    /// of them, it compiles none.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{Gemm, KernelOptions, Kernels, PtxType};
    ///
    /// let kernels = Kernels::new(&Device::open("cpu")?)?;
    /// let kernels = kernels.having(KernelOptions { any_rows: true, ..Default::default() });
    /// let gemm = Gemm::new(64, 384, 384, PtxType::F16);
    /// kernels.compile_gemm(&gemm, 1..=1000)?; // nothing, on the CPU
    /// assert_eq!(kernels.compiled_kernels(), 0);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Device::compile_ptx`](scry_gpu::Device::compile_ptx).
    pub fn compile_gemm(&self, gemm: &Gemm, rows: RangeInclusive<u64>) -> Result<()> {
        let product = Product::new("Kernels::compile_gemm", *gemm, Vec::new());
        let Some((gpu, portfolio)) = self.gpu_spec().zip(product.portfolio(self)) else {
            return Ok(());
        };
        let call = Operation::call(&product);
        let preparation = Preparation { kernels: self, call: &call, buffers: &[] };
        let all = product.gemm.portfolio_kernels(gpu, &portfolio, rows);
        preparation.compile_all(all).map_err(|error| call.for_function(error))
    }

    /// Returns which variant computes a product, and why, without preparing it.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{Gemm, Kernels, PtxType};
    ///
    /// let kernels = Kernels::new(&Device::open("cpu")?)?;
    /// let explanation = kernels.explain_gemm(&Gemm::new(64, 64, 64, PtxType::F32))?;
    /// assert_eq!(explanation.variant(), "cpu");
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device supports no variant
    /// for the types and the sizes.
    pub fn explain_gemm(&self, gemm: &Gemm) -> Result<Explanation> {
        let product = Product::new("Kernels::explain_gemm", *gemm, Vec::new());
        operation::choose(&product, self).map(|(_, explanation)| explanation)
    }
}

/// Returns the same product with the strides that variants for packed matrices look for. Those of
/// axes of length 1 have no effect: they become those of matrices without gaps. A batch that
/// multiplies one `b` by matrices whose rows follow one another is one product of all rows.
fn normalised(gemm: Gemm) -> Gemm {
    let mut gemm = with_joined_rows(gemm).unwrap_or(gemm);
    let Gemm { m, n, k, batch, .. } = gemm;
    for (layout, rows, columns) in [(&mut gemm.a, m, k), (&mut gemm.b, k, n), (&mut gemm.out, m, n)]
    {
        let (line, lines) = layout.lines(rows, columns);
        if lines == 1 {
            layout.ld = line;
        }
        if batch == 1 {
            layout.stride = layout.ld.saturating_mul(lines);
        }
    }
    gemm
}

/// Returns a batch that multiplies one `b` as one product, if the rows of all its elements follow
/// one another at one distance.
fn with_joined_rows(gemm: Gemm) -> Option<Gemm> {
    let Gemm { m, n, k, batch, a, b, out, .. } = gemm;
    if batch < 2 || m == 0 || b.stride != 0 {
        return None;
    }
    let joined = |layout: MatrixLayout, columns: u64| {
        let ld = if m == 1 { layout.stride } else { layout.ld };
        let is_joined = layout.order == Layout::RowMajor
            && ld >= columns
            && ld.checked_mul(m) == Some(layout.stride);
        is_joined.then_some(MatrixLayout { ld, ..layout })
    };
    let (a, out, m) = (joined(a, k)?, joined(out, n)?, m.checked_mul(batch)?);
    let joined = Gemm { m, batch: 1, a, out, ..gemm };
    // The number of rows is limited.
    joined.buffers().is_ok().then_some(joined)
}

/// Returns the sizes for errors. A batch of one is not mentioned.
fn sizes(gemm: &Gemm) -> Vec<(&'static str, u64)> {
    let mut sizes = vec![("m", gemm.m), ("n", gemm.n), ("k", gemm.k)];
    sizes.extend((gemm.batch != 1).then_some(("batch", gemm.batch)));
    sizes
}

impl Operation for Product {
    fn function(&self) -> &'static str {
        self.function
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        self.sizes.clone()
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        self.arguments.clone()
    }

    fn variants() -> &'static [Variant<Self>] {
        const {
            &[
                Variant {
                    info: VariantInfo { name: "ptx", needs: "CUDA, sm_80", deterministic: true },
                    obstacle: |it, kernels| ptx::obstacle(kernels, |gpu| it.plan(kernels, gpu)),
                    suits: |_, _| true,
                    prepare: ptx,
                },
                Variant {
                    info: VariantInfo {
                        name: "cublas",
                        needs: "CUDA, cuBLAS",
                        deterministic: true,
                    },
                    obstacle: |it, kernels| it.cublas_obstacle(kernels),
                    suits: |_, _| false,
                    prepare: cublas,
                },
                crate::host::variant(host::prepare),
                Variant {
                    info: VariantInfo {
                        name: "wgsl-cooperative",
                        needs: "cooperative matrices of f16",
                        deterministic: true,
                    },
                    obstacle: |it, kernels| shaders::cooperative_obstacle(it, kernels),
                    suits: |it, _| it.gemm.m * it.gemm.n >= 128 * 128,
                    prepare: shaders::cooperative,
                },
                Variant {
                    info: VariantInfo { name: "wgsl-packed", needs: "", deterministic: true },
                    obstacle: |it, kernels| shaders::packed_obstacle(it, kernels),
                    suits: |_, _| true,
                    prepare: shaders::packed,
                },
                Variant {
                    info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                    obstacle: |it, kernels| it.wgsl_obstacle(kernels),
                    suits: |_, _| true,
                    prepare: wgsl,
                },
            ]
        }
    }

    fn is_empty(&self) -> bool {
        self.gemm.is_empty()
    }

    fn tolerance(&self) -> f64 {
        let rounding = elements::tolerance(ptx::dtype(self.gemm.output));
        match self.gemm.precision {
            Precision::Tf32 => rounding.max(2e-3),
            _ => rounding,
        }
    }
}

impl Product {
    /// Creates the operation of a call, whose buffers are `arguments`.
    fn new(function: &'static str, gemm: Gemm, arguments: Vec<NativeBinding>) -> Self {
        Self { function, sizes: sizes(&gemm), gemm: normalised(gemm), arguments }
    }

    /// Returns the launches of PTX kernels, with the options of the library.
    fn plan(&self, kernels: &Kernels, gpu: GpuSpec) -> std::result::Result<Plan, PlanError> {
        match self.portfolio(kernels) {
            Some(portfolio) => self.gemm.plan_among(gpu, &portfolio),
            None => self.gemm.plan(gpu),
        }
    }

    /// Returns the kernels for any number of rows, if the options request them.
    fn portfolio(&self, kernels: &Kernels) -> Option<Arc<Portfolio>> {
        let gpu = kernels.gpu_spec().filter(|_| kernels.options().any_rows)?;
        kernels.shared.ptx.portfolio(&self.gemm, gpu)
    }

    /// Returns why cuBLAS cannot compute it; `None` if it can, provided that the library is there.
    fn cublas_obstacle(&self, kernels: &Kernels) -> Option<String> {
        let Gemm { m, n, k, element, .. } = self.gemm;
        if kernels.gpu_spec().is_none() {
            return Some("needs CUDA".to_owned());
        }
        (self.gemm != Gemm::new(m, n, k, element)).then(|| {
            "supports only packed row-major matrices of one type, multiplied in full precision, \
             without epilogue"
                .to_owned()
        })
    }

    /// Returns why WGSL cannot compute it; `None` if it can.
    fn wgsl_obstacle(&self, kernels: &Kernels) -> Option<String> {
        let Gemm { element, output, m, n, k, batch, a, b, out, .. } = self.gemm;
        // Positions as computed by the kernel, of elements that are loaded or stored.
        let extent = |layout: MatrixLayout, rows: u64, columns: u64| {
            let (line, lines) = layout.lines(rows, columns);
            let batches = layout.stride.saturating_mul(batch.saturating_sub(1));
            let matrix = layout.ld.saturating_mul(lines.saturating_sub(1)).saturating_add(line);
            batches.saturating_add(matrix)
        };
        elements::obstacle(ptx::dtype(element), kernels)
            .or_else(|| elements::obstacle(ptx::dtype(output), kernels))
            .or_else(|| elements::too_long(&[extent(a, m, k), extent(b, k, n), extent(out, m, n)]))
    }

    /// Returns the declarations that precede `gemm.wgsl`.
    fn declarations(&self) -> String {
        let Gemm { element, output, a, b, epilogue, .. } = self.gemm;
        let conversions = elements::output_prelude(element == output);
        let (bias, out) = match epilogue.bias {
            true => (
                "@group(0) @binding(2) var<storage, read> biases: array<Output>;\n\
                 fn bias(column: u32) -> f32 { return widen_output(biases[column]); }\n",
                3,
            ),
            false => ("fn bias(column: u32) -> f32 { return 0.0; }\n", 2),
        };
        let activation = match epilogue.activation {
            Activation::None => "x",
            // By its bits: drivers make `max` of a comparison, and 0 of NaN. Negative numbers are
            // those up to -infinity.
            Activation::Relu => {
                "select(x, 0.0, bitcast<u32>(x) > 0x80000000u && bitcast<u32>(x) <= 0xff800000u)"
            }
            Activation::Gelu => "x / (1.0 + exp(-1.5957691216 * x * (1.0 + 0.044715 * x * x)))",
            Activation::GeluErf => "0.5 * (x + abs(x) * erf_of_magnitude(abs(x) * 0.70710678))",
            Activation::Silu => "x / (1.0 + exp(-x))",
        };
        let functions = match epilogue.activation {
            Activation::GeluErf => ERF_OF_MAGNITUDE,
            _ => "",
        };
        format!(
            "{conversions}{bias}\
             @group(0) @binding(0) var<storage, read> a: array<Stored>;\n\
             @group(0) @binding(1) var<storage, read> b: array<Stored>;\n\
             @group(0) @binding({out}) var<storage, read_write> out: array<Output>;\n\
             const A_BY_ROWS = {};\nconst B_BY_COLUMNS = {};\n\
             {functions}\
             fn activate(x: f32) -> f32 {{ return {activation}; }}\n",
            a.order == Layout::ColMajor,
            b.order == Layout::RowMajor,
        )
    }
}

fn ptx(it: &Product, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let kernels = preparation.kernels;
    let plan = ptx::plan(kernels, |gpu| it.plan(kernels, gpu));
    preparation.plan(plan)
}

fn cublas(it: &Product, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let [a, b, out] = [0, 1, 2].map(|nth| &preparation.buffers[nth]);
    let device = preparation.kernels.device();
    let Gemm { m, n, k, .. } = it.gemm;
    if k == 0 {
        // There is nothing to multiply, which cuBLAS rejects: the result is filled with zeros.
        return ptx(it, preparation);
    }
    let product = match ptx::dtype(it.gemm.element) {
        DType::F16 => device.prepare_cublas_matmul::<scry_gpu::f16>(
            &a.typed()?,
            &b.typed()?,
            &out.typed()?,
            m,
            n,
            k,
        ),
        DType::BF16 => device.prepare_cublas_matmul::<scry_gpu::bf16>(
            &a.typed()?,
            &b.typed()?,
            &out.typed()?,
            m,
            n,
            k,
        ),
        _ => device.prepare_cublas_matmul::<f32>(&a.typed()?, &b.typed()?, &out.typed()?, m, n, k),
    };
    Ok(vec![product?])
}

fn wgsl(it: &Product, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let Gemm { m, n, k, batch, element, a, b, out, epilogue, .. } = it.gemm;
    let mut immediates = Immediates::default().u32(m as u32).u32(n as u32).u32(k as u32);
    for layout in [a, b, out] {
        let (row, column) = match layout.order {
            Layout::RowMajor => (layout.ld, 1),
            Layout::ColMajor => (1, layout.ld),
        };
        immediates = immediates.u32(row as u32).u32(column as u32).u32(layout.stride as u32);
    }
    let buffers: Vec<_> = preparation.buffers.iter().collect();
    let buffers = preparation.without_empty(&buffers)?;
    let launch = WgslLaunch {
        source: &[
            elements::prelude(ptx::dtype(element)),
            &it.declarations(),
            include_str!("../../shaders/gemm.wgsl"),
        ],
        buffers: &buffers.iter().collect::<Vec<_>>(),
        immediates: immediates.f32(epilogue.alpha).f32(epilogue.beta),
        workgroups: [n.div_ceil(64) as u32, m.div_ceil(64) as u32, batch as u32],
    };
    Ok(vec![preparation.wgsl(&launch)?])
}
