//! Kernels of the backward pass, in CUDA C: those of
//! [`shaders::backward`](crate::shaders::backward).

use scry_ir::Scalar;

use crate::api::native::{NativeBinding, NativeInterface};

pub use super::elementwise::{SCALE, binary};

/// The interface of [`REDUCE_COLS`] and [`TRANSPOSE`], with blocks of 32 × 8: bindings `x` and the
/// result (written); parameters, two `u32`: rows, columns of `x`.
#[must_use]
pub fn of_matrix() -> NativeInterface {
    let x = NativeBinding::read("x", Scalar::F32);
    let y = NativeBinding::read_write("y", Scalar::F32);
    NativeInterface::new([x, y], [32, 8, 1]).immediates(8)
}

/// `y` = the gradient `b` where `a`, the input or the output of the forward pass, is positive, else
/// 0. Interface: [`binary`].
pub const RELU_BACKWARD: &str =
    concat!(include_str!("relu.cu"), include_str!("../elementwise/binary.cu"));

/// `y` = gradient · a · (1 − a), with `a` the output of the forward pass. Interface: [`binary`].
pub const SIGMOID_BACKWARD: &str =
    concat!(include_str!("sigmoid.cu"), include_str!("../elementwise/binary.cu"));

/// `y` = gradient · (1 − a²), with `a` the output of the forward pass. Interface: [`binary`].
pub const TANH_BACKWARD: &str =
    concat!(include_str!("tanh.cu"), include_str!("../elementwise/binary.cu"));

/// The sum of every column of a matrix, in G groups of rows; launch (⌈columns/32⌉, G, 1)
/// explicit workgroups. Interface: [`of_matrix`].
pub const REDUCE_COLS: &str = include_str!("../reduce_cols.cu");

/// The transpose of a matrix; launch (columns, ⌈rows/4⌉) invocations. Interface: [`of_matrix`].
pub const TRANSPOSE: &str = include_str!("../transpose.cu");
