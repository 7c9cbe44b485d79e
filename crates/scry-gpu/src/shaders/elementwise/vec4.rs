//! The elementwise kernels but [`BIAS_ADD`](super::BIAS_ADD), for lengths that are multiples of
//! four: they bind `array<vec4<f32>>` where the scalar kernels bind `array<f32>`, and are launched
//! with one invocation per four elements.

/// [`RELU`](super::RELU), four elements at a time.
pub const RELU: &str = concat!(include_str!("relu.wgsl"), include_str!("unary_vec4.wgsl"));

/// [`SIGMOID`](super::SIGMOID), four elements at a time.
pub const SIGMOID: &str = concat!(include_str!("sigmoid.wgsl"), include_str!("unary_vec4.wgsl"));

/// [`TANH`](super::TANH), four elements at a time.
pub const TANH: &str = concat!(include_str!("tanh.wgsl"), include_str!("unary_vec4.wgsl"));

/// [`SILU`](super::SILU), four elements at a time.
pub const SILU: &str = concat!(include_str!("silu.wgsl"), include_str!("unary_vec4.wgsl"));

/// [`GELU`](super::GELU), four elements at a time.
pub const GELU: &str = concat!(include_str!("gelu.wgsl"), include_str!("unary_vec4.wgsl"));

/// [`SCALE`](super::SCALE), four elements at a time.
pub const SCALE: &str = concat!(include_str!("scale.wgsl"), include_str!("unary_vec4.wgsl"));

/// [`LEAKY_RELU`](super::LEAKY_RELU), four elements at a time.
pub const LEAKY_RELU: &str =
    concat!(include_str!("leaky_relu.wgsl"), include_str!("unary_vec4.wgsl"));

/// [`ELU`](super::ELU), four elements at a time.
pub const ELU: &str = concat!(include_str!("elu.wgsl"), include_str!("unary_vec4.wgsl"));

/// [`CLAMP`](super::CLAMP), four elements at a time.
pub const CLAMP: &str = concat!(include_str!("clamp.wgsl"), include_str!("unary_vec4.wgsl"));

/// [`ADD`](super::ADD), four elements at a time.
pub const ADD: &str = concat!(include_str!("add.wgsl"), include_str!("binary_vec4.wgsl"));

/// [`SUB`](super::SUB), four elements at a time.
pub const SUB: &str = concat!(include_str!("sub.wgsl"), include_str!("binary_vec4.wgsl"));

/// [`MUL`](super::MUL), four elements at a time.
pub const MUL: &str = concat!(include_str!("mul.wgsl"), include_str!("binary_vec4.wgsl"));

/// [`DIV`](super::DIV), four elements at a time.
pub const DIV: &str = concat!(include_str!("div.wgsl"), include_str!("binary_vec4.wgsl"));
