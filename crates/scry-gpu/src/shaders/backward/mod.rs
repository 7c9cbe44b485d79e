//! Kernels of the backward pass: gradients with respect to inputs and bias.
//!
//! The gradients of the activations bind `a`, the value saved by the forward pass, `b`, the
//! gradient of the output, and `y`, the gradient of the input (written); they are launched with one
//! invocation per element, or per four elements in [`vec4`]. The gradients of a matrix product are
//! products with [`TRANSPOSE`]d operands, that of a bias is [`REDUCE_COLS`], that of [`SCALE`] is
//! the same kernel on the gradient.

pub use super::elementwise::SCALE;
pub use super::transpose::TRANSPOSE;

/// `y` = the gradient where `a`, the input or the output of the forward pass, is positive, else 0.
///
/// Bindings: `a: array<f32>`, `b: array<f32>`, `y: array<f32>` (written).
pub const RELU_BACKWARD: &str =
    concat!(include_str!("relu.wgsl"), include_str!("../elementwise/binary.wgsl"));

/// `y` = gradient · a · (1 − a), with `a` the output of the forward pass.
///
/// Bindings: `a: array<f32>`, `b: array<f32>`, `y: array<f32>` (written).
pub const SIGMOID_BACKWARD: &str =
    concat!(include_str!("sigmoid.wgsl"), include_str!("../elementwise/binary.wgsl"));

/// `y` = gradient · (1 − a²), with `a` the output of the forward pass.
///
/// Bindings: `a: array<f32>`, `b: array<f32>`, `y: array<f32>` (written).
pub const TANH_BACKWARD: &str =
    concat!(include_str!("tanh.wgsl"), include_str!("../elementwise/binary.wgsl"));

/// The sum of every column of a matrix.
///
/// Bindings: `x: array<f32>` (rows × columns), `sums: array<f32>` (G × columns, written).
/// Parameters, two `u32`: rows, columns. Launch (⌈columns/32⌉, G, 1) explicit workgroups, with any
/// G of at least 1: each of the G rows of `sums` contains the sums of a part of the rows. G = 1 is
/// one pass; for tall matrices a larger G occupies the device, and a second pass over the G ×
/// columns partial sums with G = 1 adds them up. Equal launches produce equal bits.
pub const REDUCE_COLS: &str = include_str!("reduce_cols.wgsl");

/// The gradients of the activations for lengths that are multiples of four: they bind
/// `array<vec4<f32>>` and are launched with one invocation per four elements.
pub mod vec4 {
    /// [`RELU_BACKWARD`](super::RELU_BACKWARD), four elements at a time.
    pub const RELU_BACKWARD: &str =
        concat!(include_str!("relu.wgsl"), include_str!("../elementwise/binary_vec4.wgsl"));

    /// [`SIGMOID_BACKWARD`](super::SIGMOID_BACKWARD), four elements at a time.
    pub const SIGMOID_BACKWARD: &str =
        concat!(include_str!("sigmoid.wgsl"), include_str!("../elementwise/binary_vec4.wgsl"));

    /// [`TANH_BACKWARD`](super::TANH_BACKWARD), four elements at a time.
    pub const TANH_BACKWARD: &str =
        concat!(include_str!("tanh.wgsl"), include_str!("../elementwise/binary_vec4.wgsl"));
}
