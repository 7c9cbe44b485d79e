//! Commands as calls on a stream.

use super::cublas::{Blas, Product};
use super::encode::{Launch, Op};
use super::stream::Stream;
use crate::api::error::Result;
use crate::backend::cuda::ffi::types::{LaunchAttribute, LaunchConfig};

impl Stream {
    /// Does a command. A launch that is `early` may begin while the one before it in the stream
    /// still runs: it waits for that one itself.
    pub(crate) fn issue(&self, op: Op<'_>, early: bool) -> Result<()> {
        match op {
            Op::Fill { dst, pattern, count } => self.fill(dst, pattern, count),
            Op::Copy { src, dst, size } => self.copy(src, dst, size),
            Op::Launch(launch) => self.start(launch, early),
            Op::Product(blas, product) => self.multiply(blas, &product),
        }
    }

    fn start(&self, launch: Launch<'_>, early: bool) -> Result<()> {
        let [params, block] = launch.passed.pointers();
        let config = LaunchConfig {
            grid: launch.groups,
            block: launch.workgroup,
            shared_bytes: launch.dynamic_shared,
            stream: self.raw,
            attributes: &LaunchAttribute::WAITS_ITSELF,
            attribute_count: early.into(),
        };
        // SAFETY: the function is that of a kernel that is alive, with as many parameters,
        // each of which can be read as far as the kernel says. What the kernel is given is
        // alive until the work is done, and it stays within that.
        let code = unsafe {
            (self.gpu.api.launch_kernel_ex)(&raw const config, launch.function, params, block)
        };
        self.gpu.check("cuLaunchKernelEx", code)
    }

    /// Multiplies with cuBLAS, whose own codes do not tell whether the device is lost.
    fn multiply(&self, blas: &Blas, product: &Product) -> Result<()> {
        let issued = blas.multiply(self.raw, product);
        issued.map_err(|error| self.check_health().err().unwrap_or(error))
    }
}
