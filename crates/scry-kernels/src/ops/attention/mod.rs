//! Attention.

mod host;

use scry_gpu::{Binding, NativeBinding, PreparedLaunch, Result};
pub use scry_ptx::kernels::attention::{Attention, AttentionBias, Strides};

use crate::call::Call;
use crate::elements;
use crate::kernels::Kernels;
use crate::native;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::plain;
use crate::ptx;
use crate::wgsl::{Immediates, WgslLaunch};

/// Attention with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attend {
    attention: Attention,
    arguments: Vec<NativeBinding>,
}

/// Attention.
impl Kernels {
    /// Prepares scaled dot-product attention, `out = softmax(scale * q * kᵀ + bias) * v`, for each
    /// head of a batch, see [`Attention`]: of `f16`, `bf16` or `f32`, causal or not, with
    /// grouped-query attention. Buffers are `q`, `k`, `v`, the bias if there is one, and `out`;
    /// they may be longer than the operands. A row that sees no key, or none whose bias is above
    /// minus infinity, becomes 0.
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
    #[doc(alias("scaled_dot_product_attention", "flash_attention"))]
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
        const {
            &[
                Variant {
                    info: VariantInfo { name: "ptx", needs: "CUDA, sm_80", deterministic: true },
                    obstacle: |it, kernels| ptx::obstacle(kernels, |gpu| it.attention.plan(gpu)),
                    suits: |_, _| true,
                    prepare: |it, preparation| {
                        preparation
                            .plan(ptx::plan(preparation.kernels, |gpu| it.attention.plan(gpu)))
                    },
                },
                Variant {
                    info: VariantInfo {
                        name: "ptx-naive",
                        needs: "CUDA, sm_80",
                        deterministic: true,
                    },
                    obstacle: |it, kernels| ptx::obstacle(kernels, |_| it.attention.naive()),
                    suits: |_, _| false,
                    prepare: |it, preparation| preparation.plan(it.attention.naive()),
                },
                crate::host::variant(host::prepare),
                Variant {
                    info: plain::INFO,
                    obstacle: |it, kernels| it.wgsl_obstacle(kernels),
                    suits: |it, kernels| it.suits_plain(kernels),
                    prepare: plain_launch,
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
        self.attention.is_empty()
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(ptx::dtype(self.attention.element))
    }
}

impl Attend {
    /// Returns why WGSL cannot compute it; `None` if it can.
    fn wgsl_obstacle(&self, kernels: &Kernels) -> Option<String> {
        let Attention { element, bias, .. } = self.attention;
        let lens: Vec<_> = self.attention.buffers().ok()?.iter().map(|it| it.len).collect();
        elements::obstacle(ptx::dtype(element), kernels)
            .or_else(|| bias.and_then(|it| elements::obstacle(ptx::dtype(it.element), kernels)))
            .or_else(|| elements::too_long(&lens))
    }

    /// Returns whether a plain kernel is expected to be the fastest: each query is one invocation.
    fn suits_plain(&self, kernels: &Kernels) -> bool {
        let Attention { queries, keys, head_dim, .. } = self.attention;
        // Two loops over columns for each key, with the evaluations that end them.
        let iterations = u64::from(keys) * (2 * u64::from(head_dim) + 3) + u64::from(head_dim);
        plain::is_software(kernels) && queries >= 8 && iterations < plain::MAX_ITERATIONS
    }

    /// Returns the declarations that precede `attention.wgsl`.
    fn declarations(&self) -> String {
        let Attention { head_dim, element, causal, bias, .. } = self.attention;
        let dim = head_dim.next_power_of_two().max(16);
        let keys = (2048 / dim).min(32);
        let constants = format!(
            "const HEAD_DIM = {head_dim}u;\nconst DIM = {dim}u;\nconst QUERIES = {}u;\n\
             const KEYS = {keys}u;\nconst CAUSAL = {causal};\n",
            1024 / dim,
        );
        let Some(bias) = bias else {
            return constants + "fn bias(position: vec4<u32>) -> f32 { return 0.0; }\n";
        };
        let (stored, widen) = match bias.element == element {
            true => ("Stored", "widen"),
            false => ("f32", ""),
        };
        format!(
            "{constants}\
             @group(0) @binding(5) var<storage, read> biases: array<{stored}>;\n\
             fn bias(position: vec4<u32>) -> f32 {{\n\
             return {widen}(biases[start_of(sizes.bias, position.x, position.y)\n\
             + position.z * sizes.bias.row + position.w * sizes.bias_column]);\n}}\n"
        )
    }

    /// Returns the words of `Sizes` in `attention.wgsl`.
    fn words(&self) -> Vec<u32> {
        let it = &self.attention;
        let none = Strides { batch: 0, head: 0, row: 0 };
        let bias = it.bias.map_or(none, |bias| bias.strides);
        // Strides that are not 0 or unused are less than the lengths, which fit in 32 bits.
        let strides = [it.q, it.k, it.v, it.out, bias].into_iter();
        let mut words: Vec<_> = strides
            .flat_map(|strides| [strides.batch, strides.head, strides.row])
            .map(|stride| stride as u32)
            .collect();
        words.extend([
            it.bias.map_or(0, |bias| bias.column_stride),
            it.heads,
            it.heads / it.kv_heads.max(1),
            it.queries,
            it.keys,
            it.scale.to_bits(),
        ]);
        words
    }
}

fn plain_launch(it: &Attend, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    launch(it, preparation, include_str!("../../shaders/plain/attention.wgsl"), 64)
}

fn wgsl(it: &Attend, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let rows = 1024 / it.attention.head_dim.next_power_of_two().max(16);
    launch(it, preparation, include_str!("../../shaders/attention.wgsl"), rows)
}

/// Prepares a kernel whose workgroups have this many queries.
fn launch(
    it: &Attend,
    preparation: &Preparation<'_>,
    kernel: &str,
    rows: u32,
) -> Result<Vec<PreparedLaunch>> {
    let Attention { batch, heads, queries, element, .. } = it.attention;
    let words: Vec<u8> = it.words().into_iter().flat_map(u32::to_ne_bytes).collect();
    let sizes = preparation.kernels.device().upload_bytes(None, &words)?;
    let [q, k, v] = [0, 1, 2].map(|nth| &preparation.buffers[nth]);
    let out = preparation.buffers.last().expect("the last buffer is out");
    let mut buffers = vec![q, k, v, out, &sizes];
    buffers.extend(it.attention.bias.map(|_| &preparation.buffers[3]));
    let buffers = preparation.without_empty(&buffers)?;
    let launch = WgslLaunch {
        source: &[
            elements::prelude(ptx::dtype(element)),
            &it.declarations(),
            include_str!("../../shaders/attention_operands.wgsl"),
            kernel,
        ],
        buffers: &buffers.iter().collect::<Vec<_>>(),
        immediates: Immediates::default(),
        workgroups: [queries.div_ceil(rows), heads, batch],
    };
    Ok(vec![preparation.wgsl(&launch)?])
}
