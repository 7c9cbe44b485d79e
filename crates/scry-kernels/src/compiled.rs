//! Compiled PTX kernels.

use std::collections::HashMap;
use std::sync::Mutex;

use scry_gpu::Kernel;

/// Compiled library kernels, by name and bytes of dynamic shared memory.
#[derive(Default)]
pub(crate) struct PtxCache(pub(crate) Mutex<HashMap<(String, u32), Compiled>>);

/// A compiled kernel.
#[derive(Clone)]
pub(crate) struct Compiled {
    pub(crate) kernel: Kernel,
    /// Blocks of a cluster along x, y and z.
    pub(crate) cluster: [u32; 3],
}
