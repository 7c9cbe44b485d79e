//! Plain kernels: one invocation for each result, without workgroup memory.
//!
//! Devices that run kernels in software execute the invocations of a workgroup in turn, a vector of
//! lanes at a time: what makes kernels fast on GPUs, such as exchanges through workgroup memory and
//! loads into private arrays, is only more work for them.

use scry_gpu::{DeviceKind, PreparedLaunch, Result, UntypedBuffer};

use crate::kernels::Kernels;
use crate::operation::{Preparation, VariantInfo};
use crate::wgsl::{Immediates, WgslLaunch};

/// The variant of an operation that is a plain kernel.
pub(crate) const INFO: VariantInfo =
    VariantInfo { name: "wgsl-plain", needs: "", deterministic: true };

/// Invocations of a workgroup.
const WORKGROUP: u64 = 64;

/// Iterations of loops of an invocation, at most: llvmpipe ends all of them after 65535.
pub(crate) const MAX_ITERATIONS: u64 = 65_000;

/// Returns whether a device runs kernels on the host's processor.
pub(crate) fn is_software(kernels: &Kernels) -> bool {
    kernels.device().info().kind == DeviceKind::Software
}

impl Preparation<'_> {
    /// Prepares a kernel with workgroups of 64 invocations along x.
    pub(crate) fn plain(
        &self,
        source: &[&str],
        buffers: &[&UntypedBuffer],
        immediates: Immediates,
        invocations: u64,
    ) -> Result<PreparedLaunch> {
        let workgroups = [invocations.div_ceil(WORKGROUP) as u32, 1, 1];
        self.wgsl(&WgslLaunch { source, buffers, immediates, workgroups })
    }
}
