//! Distances between all points of two sets, in CUDA C.

use scry_ir::Scalar;

use crate::api::native::{NativeBinding, NativeInterface};

/// The interface: bindings `queries`, `points` and `distances` (written); parameters, three `u32`:
/// n_q, n_p, d.
#[must_use]
pub fn interface() -> NativeInterface {
    let bindings = [
        NativeBinding::read("queries", Scalar::F32),
        NativeBinding::read("points", Scalar::F32),
        NativeBinding::read_write("distances", Scalar::F32),
    ];
    NativeInterface::new(bindings, [16, 16, 1]).immediates(12)
}

/// Squared Euclidean distances: `distances[i][j]` = Σ (`queries[i][c]` − `points[j][c]`)²; launch
/// (⌈n_p/4⌉, ⌈n_q/4⌉) invocations. Interface: [`interface`].
pub const EUCLIDEAN_SQUARED: &str = include_str!("euclidean_squared.cu");
