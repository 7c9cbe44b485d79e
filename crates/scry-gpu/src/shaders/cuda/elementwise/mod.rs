//! Elementwise kernels in CUDA C.
//!
//! Launched with one invocation per element; elements beyond the shortest buffer are not written.
//! Unary kernels have [`unary`]'s interface, binary ones [`binary`]'s.

use scry_ir::Scalar;

use crate::api::native::{NativeBinding, NativeInterface};

/// The interface of the unary kernels with the given number of `f32` parameters: bindings `x` and
/// `y` (written).
#[must_use]
pub fn unary(parameters: u32) -> NativeInterface {
    let x = NativeBinding::read("x", Scalar::F32).with_length();
    let y = NativeBinding::read_write("y", Scalar::F32).with_length();
    NativeInterface::new([x, y], [256, 1, 1]).immediates(4 * parameters)
}

/// The interface of the binary kernels: bindings `a`, `b` and `y` (written).
#[must_use]
pub fn binary() -> NativeInterface {
    let read = |name| NativeBinding::read(name, Scalar::F32).with_length();
    let y = NativeBinding::read_write("y", Scalar::F32).with_length();
    NativeInterface::new([read("a"), read("b"), y], [256, 1, 1])
}

/// The interface of [`BIAS_ADD`]: bindings `x`, `bias` and `y` (written).
#[must_use]
pub fn bias_add() -> NativeInterface {
    let read = |name| NativeBinding::read(name, Scalar::F32).with_length();
    let y = NativeBinding::read_write("y", Scalar::F32).with_length();
    NativeInterface::new([read("x"), read("bias"), y], [256, 1, 1])
}

/// `y` = max(x, 0); a NaN stays NaN. Interface: [`unary(0)`](unary).
pub const RELU: &str = concat!(include_str!("relu.cu"), include_str!("unary.cu"));

/// `y` = 1 / (1 + e⁻ˣ), finite for every x. Interface: [`unary(0)`](unary).
pub const SIGMOID: &str = concat!(include_str!("sigmoid.cu"), include_str!("unary.cu"));

/// The hyperbolic tangent. Interface: [`unary(0)`](unary).
pub const TANH: &str = concat!(include_str!("tanh.cu"), include_str!("unary.cu"));

/// `y` = x / (1 + e⁻ˣ), also called swish. Interface: [`unary(0)`](unary).
pub const SILU: &str = concat!(include_str!("silu.cu"), include_str!("unary.cu"));

/// The Gaussian error linear unit in its tanh form. Interface: [`unary(0)`](unary).
pub const GELU: &str = concat!(include_str!("gelu.cu"), include_str!("unary.cu"));

/// `y` = factor · x. Parameter: `factor`. Interface: [`unary(1)`](unary).
pub const SCALE: &str = concat!(include_str!("scale.cu"), include_str!("unary.cu"));

/// `y` = x where x > 0, else slope · x. Parameter: `slope`. Interface: [`unary(1)`](unary).
pub const LEAKY_RELU: &str = concat!(include_str!("leaky_relu.cu"), include_str!("unary.cu"));

/// `y` = x where x > 0, else alpha · (eˣ − 1). Parameter: `alpha`. Interface: [`unary(1)`](unary).
pub const ELU: &str = concat!(include_str!("elu.cu"), include_str!("unary.cu"));

/// `y` = x, clamped to [low, high]. Parameters: low and high. Interface: [`unary(2)`](unary).
pub const CLAMP: &str = concat!(include_str!("clamp.cu"), include_str!("unary.cu"));

/// `y` = a + b. Interface: [`binary`].
pub const ADD: &str = concat!(include_str!("add.cu"), include_str!("binary.cu"));

/// `y` = a − b. Interface: [`binary`].
pub const SUB: &str = concat!(include_str!("sub.cu"), include_str!("binary.cu"));

/// `y` = a · b. Interface: [`binary`].
pub const MUL: &str = concat!(include_str!("mul.cu"), include_str!("binary.cu"));

/// `y` = a / b. Interface: [`binary`].
pub const DIV: &str = concat!(include_str!("div.cu"), include_str!("binary.cu"));

/// `y` = x + bias, added to every row of a matrix; the bias has one element per column. Interface:
/// [`bias_add`].
pub const BIAS_ADD: &str = include_str!("bias_add.cu");
