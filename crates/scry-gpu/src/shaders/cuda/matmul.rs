//! Matrix product in CUDA C: C = A × B, where A is m × k, B is k × n and C is m × n.
//!
//! Launched as the kernels of the same names in [`shaders::matmul`](crate::shaders::matmul).

use scry_ir::Scalar;

use crate::api::native::{NativeBinding, NativeInterface};

/// The interface of all three: bindings `a`, `b` and `c` (written); parameters, three `u32`: m, n,
/// k.
#[must_use]
pub fn interface() -> NativeInterface {
    let bindings = [
        NativeBinding::read("a", Scalar::F32),
        NativeBinding::read("b", Scalar::F32),
        NativeBinding::read_write("c", Scalar::F32),
    ];
    NativeInterface::new(bindings, [16, 16, 1]).immediates(12)
}

/// One element of C per invocation; launch (n, m) invocations. Interface: [`interface`].
pub const TILED_16X16: &str = include_str!("tiled_16x16.cu");

/// 4×4 elements of C per invocation; launch (⌈n/4⌉, ⌈m/4⌉) invocations. Interface: [`interface`].
pub const COARSE_64X64: &str = concat!(include_str!("coarse_64x64.cu"), include_str!("coarse.cu"));

/// 8×8 elements of C per invocation, in tiles of 128×128; launch (⌈n/8⌉, ⌈m/8⌉) invocations.
/// Interface: [`interface`].
pub const COARSE_8X8: &str = concat!(include_str!("coarse_8x8.cu"), include_str!("coarse.cu"));
