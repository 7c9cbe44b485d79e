//! `VK_KHR_cooperative_matrix`: queries the matrix products that a device supports.

use ash::{khr, vk};
use scry_ir::MatrixProducts;

use super::features::{Extensions, FeatureChain};
use super::instance::Instance;

/// Subgroup size that kernels with matrices are compiled for.
pub(crate) const SUBGROUP_SIZE: u32 = 32;

/// Alignment of matrices in bytes. Kernels check it only for the index of a matrix in its buffer,
/// so that bindings must have at least the same alignment.
const MATRIX_ALIGNMENT: u64 = 16;

/// Queries the products that kernels may use on a device; none if it cannot run kernels in full
/// subgroups of [`SUBGROUP_SIZE`].
pub(crate) fn products(
    instance: &Instance,
    physical: vk::PhysicalDevice,
    extensions: &Extensions,
    features: &FeatureChain,
) -> Result<MatrixProducts, vk::Result> {
    if !extensions.cooperative_matrix || !features.has_matrices() {
        return Ok(MatrixProducts::empty());
    }
    let mut sizes = vk::PhysicalDeviceSubgroupSizeControlProperties::default();
    let mut matrices = vk::PhysicalDeviceCooperativeMatrixPropertiesKHR::default();
    let mut all =
        vk::PhysicalDeviceProperties2::default().push_next(&mut sizes).push_next(&mut matrices);
    // SAFETY: the device has Vulkan 1.3 and the extension, whose structures are chained.
    unsafe { instance.raw.get_physical_device_properties2(physical, &mut all) };
    let limits = all.properties.limits;
    if !(has_subgroup_size(&sizes, limits.max_compute_work_group_invocations)
        && limits.min_storage_buffer_offset_alignment >= MATRIX_ALIGNMENT
        && matrices.cooperative_matrix_supported_stages.contains(vk::ShaderStageFlags::COMPUTE))
    {
        return Ok(MatrixProducts::empty());
    }
    let functions = khr::cooperative_matrix::Instance::new(instance.entry(), &instance.raw);
    // SAFETY: the device has the extension.
    let table = unsafe { functions.get_physical_device_cooperative_matrix_properties(physical) }?;
    Ok(table.iter().map(product).collect())
}

/// Returns whether kernels with workgroups of any size up to `invocations` can require subgroups of
/// [`SUBGROUP_SIZE`].
fn has_subgroup_size(
    sizes: &vk::PhysicalDeviceSubgroupSizeControlProperties<'_>,
    invocations: u32,
) -> bool {
    let supported = sizes.min_subgroup_size..=sizes.max_subgroup_size;
    let max_invocations =
        u64::from(sizes.max_compute_workgroup_subgroups) * u64::from(SUBGROUP_SIZE);
    supported.contains(&SUBGROUP_SIZE)
        && sizes.required_subgroup_size_stages.contains(vk::ShaderStageFlags::COMPUTE)
        && max_invocations >= u64::from(invocations)
}

/// Returns the product that an entry of the device's table describes; empty if WGSL does not have
/// it.
fn product(entry: &vk::CooperativeMatrixPropertiesKHR<'_>) -> MatrixProducts {
    const F16: vk::ComponentTypeKHR = vk::ComponentTypeKHR::FLOAT16;
    const F32: vk::ComponentTypeKHR = vk::ComponentTypeKHR::FLOAT32;
    let types = [entry.a_type, entry.b_type, entry.c_type, entry.result_type];
    if entry.scope != vk::ScopeKHR::SUBGROUP || entry.saturating_accumulation == vk::TRUE {
        return MatrixProducts::empty();
    }
    match ([entry.m_size, entry.n_size, entry.k_size], types) {
        ([8, 8, 8], [F16, F16, F16, F16]) => MatrixProducts::F16_8X8,
        ([8, 8, 8], [F16, F16, F32, F32]) => MatrixProducts::F16_F32_8X8,
        ([8, 8, 8], [F32, F32, F32, F32]) => MatrixProducts::F32_8X8,
        ([16, 16, 16], [F16, F16, F16, F16]) => MatrixProducts::F16_16X16,
        ([16, 16, 16], [F16, F16, F32, F32]) => MatrixProducts::F16_F32_16X16,
        ([16, 16, 16], [F32, F32, F32, F32]) => MatrixProducts::F32_16X16,
        _ => MatrixProducts::empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F16: vk::ComponentTypeKHR = vk::ComponentTypeKHR::FLOAT16;
    const F32: vk::ComponentTypeKHR = vk::ComponentTypeKHR::FLOAT32;

    fn entry(
        [m, n, k]: [u32; 3],
        [a, b, c, result]: [vk::ComponentTypeKHR; 4],
    ) -> vk::CooperativeMatrixPropertiesKHR<'static> {
        vk::CooperativeMatrixPropertiesKHR {
            m_size: m,
            n_size: n,
            k_size: k,
            a_type: a,
            b_type: b,
            c_type: c,
            result_type: result,
            scope: vk::ScopeKHR::SUBGROUP,
            ..Default::default()
        }
    }

    #[test]
    fn table_entries_become_products() {
        let types = [[F16; 4], [F16, F16, F32, F32], [F32; 4]];
        let all = [8, 16].into_iter().flat_map(|n| types.map(|types| entry([n; 3], types)));
        let products: Vec<MatrixProducts> = all.map(|entry| product(&entry)).collect();
        assert_eq!(products, MatrixProducts::all().iter().collect::<Vec<_>>());
    }

    #[test]
    fn other_table_entries_are_ignored() {
        let square = entry([16; 3], [F16; 4]);
        let others = [
            entry([16, 8, 16], [F16; 4]),
            entry([16, 16, 8], [F16; 4]),
            entry([32; 3], [F16; 4]),
            entry([16; 3], [F16, F16, F32, F16]),
            entry([16; 3], [F16, F16, F16, F32]),
            entry([16; 3], [F16, F32, F32, F32]),
            entry([16; 3], [vk::ComponentTypeKHR::SINT8; 4]),
            vk::CooperativeMatrixPropertiesKHR { scope: vk::ScopeKHR::WORKGROUP, ..square },
            vk::CooperativeMatrixPropertiesKHR { saturating_accumulation: vk::TRUE, ..square },
        ];
        assert!(others.iter().all(|entry| product(entry).is_empty()));
        assert_eq!(product(&square), MatrixProducts::F16_16X16);
    }

    #[test]
    fn subgroups_of_32_must_be_possible() {
        let sizes = vk::PhysicalDeviceSubgroupSizeControlProperties {
            min_subgroup_size: 32,
            max_subgroup_size: 64,
            max_compute_workgroup_subgroups: 32,
            required_subgroup_size_stages: vk::ShaderStageFlags::COMPUTE,
            ..Default::default()
        };
        assert!(has_subgroup_size(&sizes, 1024));
        assert!(!has_subgroup_size(&sizes, 1025));
        for other in [
            vk::PhysicalDeviceSubgroupSizeControlProperties { min_subgroup_size: 64, ..sizes },
            vk::PhysicalDeviceSubgroupSizeControlProperties { max_subgroup_size: 16, ..sizes },
            vk::PhysicalDeviceSubgroupSizeControlProperties {
                required_subgroup_size_stages: vk::ShaderStageFlags::FRAGMENT,
                ..sizes
            },
        ] {
            assert!(!has_subgroup_size(&other, 1024));
        }
    }
}
