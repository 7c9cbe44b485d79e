//! Compiled PTX kernels.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use scry_gpu::Kernel;
use scry_ptx::kernels::GpuSpec;
use scry_ptx::kernels::gemm::{Gemm, Portfolio};

use crate::kernels::lock;

/// What was compiled and chosen for PTX.
#[derive(Default)]
pub(crate) struct PtxCache {
    /// Compiled library kernels, by name and bytes of dynamic shared memory.
    pub(crate) kernels: Mutex<HashMap<(String, u32), Compiled>>,
    /// Portfolios of products, by the product with one row.
    portfolios: Mutex<Vec<(Gemm, Option<Arc<Portfolio>>)>>,
}

impl PtxCache {
    /// Returns the portfolio for any number of rows of a product, if it has one.
    pub(crate) fn portfolio(&self, gemm: &Gemm, gpu: GpuSpec) -> Option<Arc<Portfolio>> {
        let mut key = *gemm;
        if key.batch != 1 || key.m == 0 {
            return None;
        }
        // The strides of a batch of one are those of its rows.
        (key.m, key.a.stride, key.out.stride) = (1, 0, 0);
        let find = |known: &[(Gemm, Option<Arc<Portfolio>>)]| {
            known.iter().find(|(known, _)| *known == key).map(|(_, found)| found.clone())
        };
        if let Some(found) = find(&lock(&self.portfolios)) {
            return found;
        }
        // Chosen without the lock: another thread may choose the same.
        let chosen = gemm.portfolio(gpu).map(Arc::new);
        lock(&self.portfolios).push((key, chosen.clone()));
        chosen
    }
}

/// A compiled kernel.
#[derive(Clone)]
pub(crate) struct Compiled {
    pub(crate) kernel: Kernel,
    /// Blocks of a cluster along x, y and z.
    pub(crate) cluster: [u32; 3],
}
