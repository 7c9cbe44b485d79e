//! Rotary position embedding.

use std::f64::consts::TAU;

use scry_gpu::{Binding, DType, NativeBinding, PreparedLaunch, Result, UntypedBuffer};

use crate::arguments;
use crate::call::Call;
use crate::elements::{self, FLOATS};
use crate::kernels::Kernels;
use crate::op::Op;
use crate::operation::{Operation, Preparation, Variant, VariantInfo};
use crate::wgsl::{Immediates, WgslLaunch};

/// The options of rotary position embedding, see [`Kernels::rope`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rope {
    /// Heads of a row.
    pub heads: usize,
    /// Elements of a head; an even number.
    pub head_dim: usize,
    /// The base of the frequencies: at position 1 the angle of pair i is
    /// `theta^(-2 i / head_dim)`.
    pub theta: f32,
    /// Which elements of a head are pair i: if true, those at 2 i and 2 i + 1, as in GPT-J; if
    /// false, those at i and i + head_dim / 2, as in GPT-NeoX and the usual files of Llama.
    pub interleaved: bool,
}

impl Rope {
    /// Returns the embedding of GPT-NeoX and Llama: `theta` is 10,000, and pairs are not
    /// interleaved.
    ///
    /// ```
    /// use scry_kernels::Rope;
    ///
    /// let llama3 = Rope { theta: 500_000.0, ..Rope::new(32, 128) };
    /// assert!(!llama3.interleaved);
    /// ```
    #[must_use]
    pub const fn new(heads: usize, head_dim: usize) -> Self {
        Self { heads, head_dim, theta: 10_000.0, interleaved: false }
    }
}

/// Rotary position embedding of rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rotate {
    rows: u64,
    rope: Rope,
    dtype: DType,
    /// The type of the positions.
    position: DType,
}

const FUNCTION: &str = "Kernels::rope";

/// Heads that an invocation rotates, as in `rope.wgsl`.
const HEADS: u64 = 4;

/// Rotary position embedding.
impl Kernels {
    /// Prepares rotary position embedding (RoPE): rotates each pair (a, b) of elements of each
    /// head, as [`Rope::interleaved`] says, by the angle `position * theta^(-2 i / head_dim)`, to
    /// `(a cos - b sin, b cos + a sin)`. `x` and `y` are rows × heads × head_dim, of `f32`, `f16`
    /// or `bf16`, computed in `f32`. `positions` has one position per row, of `u32` or `i32`.
    /// Buffers may be longer.
    ///
    /// Angles are computed in fixed point: they are as accurate at large positions as at small
    /// ones. Negative positions rotate backwards.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{Kernels, Rope};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = gpu.upload(&[1.0f32, 0.0, 1.0, 0.0])?; // two rows with a head of one pair
    /// let positions = gpu.upload(&[0u32, 2])?;
    /// let y = gpu.alloc::<f32>(4)?;
    /// Kernels::new(&gpu)?.rope(&x, &positions, &y, 2, &Rope::new(1, 2))?.run()?;
    /// let y = y.download()?;
    /// assert_eq!(y[..2], [1.0, 0.0]);
    /// assert!((y[2] - 2f32.cos()).abs() < 1e-6 && (y[3] - 2f32.sin()).abs() < 1e-6);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) if `head_dim` is odd or `theta` is not
    /// positive and finite, and for buffers that are too short, of another type, or that overlap
    /// with `y`; [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device lacks the
    /// element type, or if there are more than 2^32 - 1 elements.
    pub fn rope(
        &self,
        x: &dyn Binding,
        positions: &dyn Binding,
        y: &dyn Binding,
        rows: usize,
        rope: &Rope,
    ) -> Result<Op> {
        let rows = rows as u64;
        let call = Call { function: FUNCTION.into(), sizes: sizes(rows, rope) };
        let dtype = call.dtype("x", x, &FLOATS)?;
        let position = call.dtype("positions", positions, &[DType::U32, DType::I32])?;
        if !rope.head_dim.is_multiple_of(2) {
            return Err(call.argument_error(
                "`Rope::head_dim`",
                format!("is {}, but heads have pairs of elements", rope.head_dim),
                "pass an even number",
            ));
        }
        if !(rope.theta.is_finite() && rope.theta > 0.0) {
            return Err(call.argument_error(
                "`Rope::theta`",
                format!("is {}", rope.theta),
                "pass a positive, finite number, such as 10000.0",
            ));
        }
        call.product("`x`", &[rows, rope.heads as u64, rope.head_dim as u64])?;
        self.op(Rotate { rows, rope: *rope, dtype, position }, &[x, positions, y])
    }
}

fn sizes(rows: u64, rope: &Rope) -> Vec<(&'static str, u64)> {
    vec![("rows", rows), ("heads", rope.heads as u64), ("head_dim", rope.head_dim as u64)]
}

impl Operation for Rotate {
    fn function(&self) -> &'static str {
        FUNCTION
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        sizes(self.rows, &self.rope)
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        vec![
            arguments::read("x", self.dtype, self.len()),
            arguments::read("positions", self.position, self.rows),
            arguments::write("y", self.dtype, self.len()),
        ]
    }

    fn variants() -> &'static [Variant<Self>] {
        &[Variant {
            info: VariantInfo { name: "wgsl", needs: "", deterministic: true },
            obstacle: |it, kernels| {
                elements::obstacle(it.dtype, kernels)
                    .or_else(|| elements::too_long(&[it.len(), it.rows]))
            },
            suits: |_, _| true,
            prepare: wgsl,
        }]
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn tolerance(&self) -> f64 {
        elements::tolerance(self.dtype)
    }
}

impl Rotate {
    fn len(&self) -> u64 {
        self.rows * self.rope.heads as u64 * self.rope.head_dim as u64
    }

    /// Returns the angle of each pair at position 1 in units of 2^-64 turns, as upper and lower
    /// halves. Whole turns are dropped.
    fn frequencies(&self) -> Vec<u32> {
        let Rope { head_dim, theta, .. } = self.rope;
        let frequency = |pair: usize| {
            let exponent = -((2 * pair) as f64) / head_dim as f64;
            let turns = f64::from(theta).powf(exponent) / TAU;
            // 2^64 saturates to 2^64 - 1, which is as near.
            let fixed = (turns.fract() * 2f64.powi(64)).round() as u64;
            [(fixed >> 32) as u32, fixed as u32]
        };
        (0..head_dim / 2).flat_map(frequency).collect()
    }
}

fn wgsl(it: &Rotate, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let half = it.rope.head_dim as u64 / 2;
    let has_quads = half.is_multiple_of(4);
    let constants = format!(
        "const INTERLEAVED = {};\nconst SIGNED = {};\n",
        it.rope.interleaved,
        it.position == DType::I32
    );
    let frequencies = preparation.kernels.device().upload(&it.frequencies())?;
    let frequencies = UntypedBuffer::from(frequencies);
    let (layout, quads, [x, y]) = match has_quads {
        true => (
            include_str!("../shaders/rope_quads.wgsl"),
            elements::quads(it.dtype),
            [preparation.quads(0, it.len())?, preparation.quads(2, it.len())?],
        ),
        false => (
            include_str!("../shaders/rope_pairs.wgsl"),
            "",
            [0, 2].map(|nth| preparation.buffers[nth].clone()),
        ),
    };
    let blocks = if has_quads { half / 4 } else { half };
    let invocations = it.rows * (it.rope.heads as u64).div_ceil(HEADS) * blocks;
    let launch = preparation.wgsl(&WgslLaunch {
        source: &[
            elements::prelude(it.dtype),
            quads,
            &constants,
            include_str!("../shaders/mul_high.wgsl"),
            include_str!("../shaders/turns.wgsl"),
            include_str!("../shaders/rope_angles.wgsl"),
            layout,
            include_str!("../shaders/rope.wgsl"),
        ],
        buffers: &[&preparation.words(1, it.rows)?, &frequencies, &x, &y],
        immediates: Immediates::default()
            .u32(it.rows as u32)
            .u32(it.rope.heads as u32)
            .u32(half as u32),
        workgroups: [invocations.div_ceil(256) as u32, 1, 1],
    })?;
    Ok(vec![launch])
}
