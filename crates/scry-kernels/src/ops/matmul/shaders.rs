//! Products of packed row-major matrices, by the sources of `scry_gpu::shaders::matmul`.

use scry_gpu::shaders::matmul;
use scry_gpu::{DType, Features, MatrixProducts, PreparedLaunch, Result};
use scry_ptx::kernels::gemm::Gemm;

use super::Product;
use crate::elements;
use crate::kernels::Kernels;
use crate::operation::Preparation;
use crate::ptx;
use crate::wgsl::{Immediates, WgslLaunch};

/// Workgroup memory of the kernel with cooperative matrices, in bytes, with what Vulkan adds.
const COOPERATIVE_MEMORY: u32 = 47 << 10;

/// Returns why a product cannot use kernels for packed matrices; `None` if it can.
fn packed_shape(it: &Product, element: DType) -> Option<String> {
    let Gemm { m, n, k, .. } = it.gemm;
    let plain = Gemm { output: it.gemm.output, ..Gemm::new(m, n, k, it.gemm.element) };
    if it.gemm != plain || k == 0 {
        return Some("supports only packed row-major matrices, without epilogue".to_owned());
    }
    if ptx::dtype(it.gemm.element) != element || ptx::dtype(it.gemm.output) != DType::F32 {
        return Some(format!("supports only operands of {element}, and results of f32"));
    }
    elements::too_long(&[m * k, k * n, m * n])
}

pub(super) fn packed_obstacle(it: &Product, _: &Kernels) -> Option<String> {
    packed_shape(it, DType::F32)
}

pub(super) fn cooperative_obstacle(it: &Product, kernels: &Kernels) -> Option<String> {
    let info = kernels.device().info();
    let is_supported = info.features.contains(Features::F16 | Features::COOPERATIVE_MATRIX)
        && info.matrix_products != MatrixProducts::empty()
        && info.subgroup_size == 32
        && info.limits.max_workgroup_memory >= COOPERATIVE_MEMORY;
    if !is_supported {
        return Some("needs cooperative matrices of f16, and subgroups of 32".to_owned());
    }
    packed_shape(it, DType::F16)
}

/// Tiles of 128 × 128 results for large matrices, else of 64 × 64.
pub(super) fn packed(it: &Product, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let Gemm { m, n, k, .. } = it.gemm;
    let is_large = m.min(n) >= 2000;
    let is_vec4 = n % 4 == 0 && k % 4 == 0;
    let (source, tile) = match (is_large, is_vec4) {
        (true, true) => (matmul::COARSE_8X8_VEC4, 128),
        (true, false) => (matmul::COARSE_8X8, 128),
        (false, true) => (matmul::COARSE_64X64_VEC4, 64),
        (false, false) => (matmul::COARSE_64X64, 64),
    };
    launch(it, preparation, source, tile)
}

pub(super) fn cooperative(
    it: &Product,
    preparation: &Preparation<'_>,
) -> Result<Vec<PreparedLaunch>> {
    let is_vec4 = it.gemm.n % 4 == 0 && it.gemm.k % 4 == 0;
    let source = if is_vec4 { matmul::COOPERATIVE_F16_VEC4 } else { matmul::COOPERATIVE_F16 };
    launch(it, preparation, source, 128)
}

/// Launches a kernel with a workgroup for each tile of results.
fn launch(
    it: &Product,
    preparation: &Preparation<'_>,
    source: &str,
    tile: u64,
) -> Result<Vec<PreparedLaunch>> {
    let Gemm { m, n, k, .. } = it.gemm;
    let launch = WgslLaunch {
        source: &[source],
        buffers: &preparation.buffers.iter().collect::<Vec<_>>(),
        immediates: Immediates::default().u32(m as u32).u32(n as u32).u32(k as u32),
        workgroups: [n.div_ceil(tile) as u32, m.div_ceil(tile) as u32, 1],
    };
    Ok(vec![preparation.wgsl(&launch)?])
}
