//! Elementwise kernels.
//!
//! Scalar kernels are launched with one invocation per element; the same kernels in [`vec4`], all
//! but [`BIAS_ADD`], require lengths that are multiples of four, bind `array<vec4<f32>>` and are
//! launched with one invocation per four elements. Unary kernels bind `x` (read) and `y` (written),
//! binary ones `a`, `b` (read) and `y` (written). `y` must not overlap the other buffers.

/// `y` = max(x, 0); a NaN stays NaN.
///
/// Bindings: `x: array<f32>`, `y: array<f32>` (written).
pub const RELU: &str = concat!(include_str!("relu.wgsl"), include_str!("unary.wgsl"));

/// `y` = 1 / (1 + e⁻ˣ), finite for every x.
///
/// Bindings: `x: array<f32>`, `y: array<f32>` (written).
pub const SIGMOID: &str = concat!(include_str!("sigmoid.wgsl"), include_str!("unary.wgsl"));

/// The hyperbolic tangent, ±1 for large ±x.
///
/// Bindings: `x: array<f32>`, `y: array<f32>` (written).
pub const TANH: &str = concat!(include_str!("tanh.wgsl"), include_str!("unary.wgsl"));

/// `y` = x / (1 + e⁻ˣ), also called swish.
///
/// Bindings: `x: array<f32>`, `y: array<f32>` (written).
pub const SILU: &str = concat!(include_str!("silu.wgsl"), include_str!("unary.wgsl"));

/// The Gaussian error linear unit in its tanh form, x/2 · (1 + tanh(√(2/π)(x + 0.044715 x³))).
///
/// Bindings: `x: array<f32>`, `y: array<f32>` (written).
pub const GELU: &str = concat!(include_str!("gelu.wgsl"), include_str!("unary.wgsl"));

/// `y` = factor · x.
///
/// Bindings: `x: array<f32>`, `y: array<f32>` (written). Parameter: `factor`, one `f32`.
pub const SCALE: &str = concat!(include_str!("scale.wgsl"), include_str!("unary.wgsl"));

/// `y` = x where x > 0, else slope · x.
///
/// Bindings: `x: array<f32>`, `y: array<f32>` (written). Parameter: `slope`, one `f32`.
pub const LEAKY_RELU: &str = concat!(include_str!("leaky_relu.wgsl"), include_str!("unary.wgsl"));

/// `y` = x where x > 0, else alpha · (eˣ − 1).
///
/// Bindings: `x: array<f32>`, `y: array<f32>` (written). Parameter: `alpha`, one `f32`.
pub const ELU: &str = concat!(include_str!("elu.wgsl"), include_str!("unary.wgsl"));

/// `y` = x, clamped to [low, high].
///
/// Bindings: `x: array<f32>`, `y: array<f32>` (written). Parameters: low and high, two `f32`.
pub const CLAMP: &str = concat!(include_str!("clamp.wgsl"), include_str!("unary.wgsl"));

/// `y` = a + b.
///
/// Bindings: `a: array<f32>`, `b: array<f32>`, `y: array<f32>` (written).
pub const ADD: &str = concat!(include_str!("add.wgsl"), include_str!("binary.wgsl"));

/// `y` = a − b.
///
/// Bindings: `a: array<f32>`, `b: array<f32>`, `y: array<f32>` (written).
pub const SUB: &str = concat!(include_str!("sub.wgsl"), include_str!("binary.wgsl"));

/// `y` = a · b.
///
/// Bindings: `a: array<f32>`, `b: array<f32>`, `y: array<f32>` (written).
pub const MUL: &str = concat!(include_str!("mul.wgsl"), include_str!("binary.wgsl"));

/// `y` = a / b.
///
/// Bindings: `a: array<f32>`, `b: array<f32>`, `y: array<f32>` (written).
pub const DIV: &str = concat!(include_str!("div.wgsl"), include_str!("binary.wgsl"));

/// `y` = x + bias, added to every row of a matrix; the bias has one element per column.
///
/// Bindings: `x: array<f32>` (rows × columns), `bias: array<f32>` (columns), `y: array<f32>`
/// (written, as `x`). Launch rows · columns invocations.
pub const BIAS_ADD: &str = include_str!("bias_add.wgsl");

pub mod vec4;
