//! Decoupled look-back: single-pass scans, in which workgroups wait for the results of others.

use scry_gpu::{BackendKind, DType, Features, PreparedLaunch, Result, UntypedBuffer};

use crate::kernels::Kernels;
use crate::operation::Preparation;
use crate::wgsl::{Immediates, WgslLaunch};

/// What look-back needs, for tables.
pub(crate) const NEEDS: &str = "CUDA";

/// Returns why workgroups cannot wait for earlier ones; `None` if they can.
pub(crate) fn obstacle(kernels: &Kernels) -> Option<String> {
    let info = kernels.device().info();
    let features = Features::I64 | Features::I64_ATOMICS | Features::SUBGROUPS;
    if info.backend != BackendKind::Cuda {
        return Some("needs CUDA, which guarantees that resident workgroups make progress".into());
    }
    if !info.features.contains(features) || info.subgroup_size != 32 {
        return Some("needs 64-bit atomics and subgroups of 32 invocations".into());
    }
    None
}

impl Preparation<'_> {
    /// Prepares a launch that fills a buffer with zeros. Its size is a multiple of 16 bytes.
    pub(crate) fn clear(&self, buffer: &UntypedBuffer) -> Result<PreparedLaunch> {
        let vectors = buffer.byte_size() / 16;
        self.wgsl(&WgslLaunch {
            source: &[include_str!("shaders/clear.wgsl")],
            buffers: &[&buffer.view_as(DType::U32)?],
            immediates: Immediates::default().u32(vectors as u32),
            workgroups: [vectors.div_ceil(1024) as u32, 1, 1],
        })
    }
}
