//! Random numbers.

use scry_gpu::{Binding, DType, Features, NativeBinding, PreparedLaunch, Result};

use crate::arguments;
use crate::call::Call;
use crate::elements::{self, FLOATS};
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::wgsl::{Immediates, WgslLaunch};

/// Random numbers of a distribution.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Random {
    distribution: Distribution,
    dtype: DType,
    len: u64,
    seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distribution {
    Bits,
    Uniform,
    Normal,
}

/// Random numbers.
impl Kernels {
    /// Prepares random bits for all elements of `y`, of `u32` or `i32`, by the counter-based generator
    /// Philox 4×32-10 of Random123.
    ///
    /// An element depends only on the seed and its index, so that numbers are the same on every
    /// device: element i is word i mod 4 of the counter i / 4 (64 bits, followed by zeros) with the
    /// seed as key, lower words first. A different seed yields independent numbers.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let y = gpu.alloc::<u32>(4)?;
    /// Kernels::new(&gpu)?.random_bits(&y, 0)?.run()?;
    /// assert_eq!(y.download()?, [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for a buffer of another type;
    /// [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device lacks the element type,
    /// or if there are more than 2^32 - 1 elements.
    pub fn random_bits(&self, y: &dyn Binding, seed: u64) -> Result<Op> {
        self.random(Distribution::Bits, &[DType::U32, DType::I32], y, seed)
    }

    /// Prepares random numbers that are uniformly distributed from 0, inclusive, to 1, exclusive, for
    /// all elements of `y`, of `f32`, `f16` or `bf16`.
    ///
    /// A number consists of the upper 24 bits (`f16`: 11, `bf16`: 8) of the random bits of
    /// [`Kernels::random_bits`] for its index, divided by 2^24 (2^11, 2^8): it is exactly the same on
    /// every device.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let y = gpu.alloc::<f32>(1000)?;
    /// Kernels::new(&gpu)?.random_uniform(&y, 7)?.run()?;
    /// let average = y.download()?.iter().sum::<f32>() / 1000.0;
    /// assert!((average - 0.5).abs() < 0.05);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::random_bits`].
    pub fn random_uniform(&self, y: &dyn Binding, seed: u64) -> Result<Op> {
        self.random(Distribution::Uniform, &FLOATS, y, seed)
    }

    /// Prepares random numbers that are normally distributed with mean 0 and variance 1 for all
    /// elements of `y`, of `f32`, `f16` or `bf16`. No number is larger than 6.8.
    ///
    /// The method is that of Box and Muller: with the words a and b that
    /// [`Kernels::random_bits`] has for the indices 2 i and 2 i + 1, `u = (a + 1/2) / 2^32` and
    /// `v = b / 2^32`, elements 2 i and 2 i + 1 are `sqrt(-2 ln u) cos(2 π v)` and
    /// `sqrt(-2 ln u) sin(2 π v)`. They are computed in `f32`, with an error of about 1e-6: on
    /// different devices they differ in their last places.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let y = gpu.alloc::<f32>(1000)?;
    /// Kernels::new(&gpu)?.random_normal(&y, 7)?.run()?;
    /// let average = y.download()?.iter().sum::<f32>() / 1000.0;
    /// assert!(average.abs() < 0.1);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::random_bits`].
    pub fn random_normal(&self, y: &dyn Binding, seed: u64) -> Result<Op> {
        self.random(Distribution::Normal, &FLOATS, y, seed)
    }

    fn random(
        &self,
        distribution: Distribution,
        types: &[DType],
        y: &dyn Binding,
        seed: u64,
    ) -> Result<Op> {
        let dtype = Call::new(distribution.function()).dtype("y", y, types)?;
        let len = Binding::len(y) as u64;
        self.op(Random { distribution, dtype, len, seed }, &[y])
    }
}

impl Distribution {
    fn function(self) -> &'static str {
        match self {
            Self::Bits => "Kernels::random_bits",
            Self::Uniform => "Kernels::random_uniform",
            Self::Normal => "Kernels::random_normal",
        }
    }
}

impl Operation for Random {
    fn function(&self) -> &'static str {
        self.distribution.function()
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        vec![("len", self.len)]
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        vec![arguments::write("y", self.dtype, self.len)]
    }

    fn variants() -> &'static [Variant<Self>] {
        &[
            Variant {
                info: VariantInfo {
                    name: "wgsl-u64",
                    needs: "64-bit integers",
                    deterministic: true,
                },
                obstacle: |it, kernels| {
                    let missing = !kernels.device().info().features.contains(Features::I64);
                    let missing = missing.then(|| "needs 64-bit integers".to_owned());
                    missing.or_else(|| it.obstacle(kernels))
                },
                // Elsewhere a 64-bit product may be slower than four 32-bit ones.
                suits: |_, kernels| kernels.gpu_spec().is_some(),
                prepare: |it, preparation| {
                    it.launch(preparation, include_str!("../shaders/mul_high_u64.wgsl"))
                },
            },
            Variant {
                info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
                obstacle: |it, kernels| it.obstacle(kernels),
                suits: |_, _| true,
                prepare: |it, preparation| {
                    it.launch(preparation, include_str!("../shaders/mul_high.wgsl"))
                },
            },
        ]
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn tolerance(&self) -> f64 {
        match self.distribution {
            Distribution::Normal => elements::tolerance(self.dtype),
            _ => 0.0,
        }
    }
}

impl Random {
    fn obstacle(&self, kernels: &Kernels) -> Option<String> {
        elements::obstacle(self.dtype, kernels).or_else(|| elements::too_long(&[self.len]))
    }

    /// Returns the function that converts the words of a counter.
    fn distributed(&self) -> String {
        let bits = match self.dtype {
            DType::F16 => 11,
            DType::BF16 => 8,
            _ => 24,
        };
        match self.distribution {
            Distribution::Bits => "fn distributed(words: vec4<u32>) -> vec4<u32> {\n    \
                                   return words;\n}\n\n"
                .to_owned(),
            Distribution::Uniform => format!(
                "fn distributed(words: vec4<u32>) -> vec4<f32> {{\n    \
                 return vec4<f32>(words >> vec4<u32>({}u)) * {:e};\n}}\n\n",
                32 - bits,
                0.5f32.powi(bits),
            ),
            Distribution::Normal => [
                include_str!("../shaders/turns.wgsl"),
                include_str!("../shaders/random_normal.wgsl"),
            ]
            .concat(),
        }
    }

    fn launch(&self, preparation: &Preparation<'_>, mul_high: &str) -> Result<Vec<PreparedLaunch>> {
        let is_bits = self.distribution == Distribution::Bits;
        let dtype = if is_bits { DType::U32 } else { self.dtype };
        let has_quads = self.len.is_multiple_of(4);
        let quads = match is_bits {
            true => {
                "alias Quad = vec4<u32>;\n\
                     fn narrow_quad(values: vec4<u32>) -> Quad { return values; }\n\n"
            }
            false => elements::quads(dtype),
        };
        let (quads, store) = match has_quads {
            true => (quads, include_str!("../shaders/random_quads.wgsl")),
            false => ("", include_str!("../shaders/random_elements.wgsl")),
        };
        let y = match (is_bits, has_quads) {
            (true, _) => preparation.words(0, self.len)?,
            (false, true) => preparation.quads(0, self.len)?,
            (false, false) => preparation.buffers[0].clone(),
        };
        let launch = preparation.wgsl(&WgslLaunch {
            source: &[
                elements::prelude(dtype),
                quads,
                mul_high,
                include_str!("../shaders/philox.wgsl"),
                &self.distributed(),
                store,
                include_str!("../shaders/random.wgsl"),
            ],
            buffers: &[&y],
            immediates: Immediates::default()
                .u32(self.seed as u32)
                .u32((self.seed >> 32) as u32)
                .u32(self.len as u32)
                .u32(0),
            workgroups: [self.len.div_ceil(4096) as u32, 1, 1],
        })?;
        Ok(vec![launch])
    }
}
