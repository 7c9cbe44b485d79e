//! Issues encoded commands to a stream.

use std::sync::Arc;

use super::communicator::{Collective, Membership};
use super::cublas::{Blas, Product};
use super::encode::{Launch, Op};
use super::stream::Stream;
use crate::api::error::Result;
use crate::backend::cuda::ffi::types::{LaunchAttribute, LaunchConfig};

impl Stream {
    /// Issues a command. A launch with `pdl` uses programmatic dependent launch: it may start
    /// before the previous one in the stream has finished, and waits for it in the kernel.
    pub(crate) fn issue(&self, op: Op<'_>, pdl: bool) -> Result<()> {
        match op {
            Op::Fill { dst, pattern, count } => self.fill(dst, pattern, count),
            Op::Copy { src, dst, size } => self.copy(src, dst, size),
            Op::Launch(launch) => self.launch_kernel(launch, pdl),
            Op::Product(blas, product) => self.multiply(blas, &product),
            Op::Collective(membership, collective) => self.communicate(membership, &collective),
        }
    }

    fn launch_kernel(&self, launch: Launch<'_>, pdl: bool) -> Result<()> {
        let [params, extra] = launch.params.pointers();
        let config = LaunchConfig {
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.dynamic_shared,
            stream: self.raw,
            attributes: &LaunchAttribute::PROGRAMMATIC_STREAM_SERIALIZATION,
            attribute_count: pdl.into(),
        };
        // SAFETY: the kernel is alive. It has as many parameters as are passed, each readable up to
        // its declared size. The buffers that are passed stay alive until the work is done, and the
        // kernel does not access memory outside of them.
        let code = unsafe {
            (self.gpu.api.launch_kernel_ex)(&raw const config, launch.function, params, extra)
        };
        self.gpu.check("cuLaunchKernelEx", code)
    }

    /// Makes a collective with NCCL, whose status codes do not report the loss of the device.
    fn communicate(&self, membership: &Arc<Membership>, collective: &Collective) -> Result<()> {
        let issued = membership.issue(self.raw, collective);
        issued.map_err(|error| self.check_health().err().unwrap_or(error))
    }

    /// Multiplies with cuBLAS, whose status codes do not report the loss of the device.
    fn multiply(&self, blas: &Blas, product: &Product) -> Result<()> {
        let issued = blas.multiply(self.raw, product);
        issued.map_err(|error| self.check_health().err().unwrap_or(error))
    }
}
