//! The device extensions and features that the backend uses: queries them and builds the structure
//! chain that enables the supported ones.

use std::ffi::{CStr, c_char};

use ash::{ext, khr, vk};
use scry_ir::Features;

use super::instance::has_extension;

/// The device extensions that the backend uses: whether the device supports each.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extensions {
    pub(crate) push_descriptor: bool,
    pub(crate) memory_budget: bool,
    pub(crate) pci_bus_info: bool,
    pub(crate) cooperative_matrix: bool,
    atomic_float: bool,
    zero_initialize: bool,
    /// Must be enabled wherever it is present.
    portability_subset: bool,
}

impl Extensions {
    /// Queries a device of the given Vulkan version.
    pub(crate) fn query(
        instance: &ash::Instance,
        physical: vk::PhysicalDevice,
        version: u32,
    ) -> Result<Self, vk::Result> {
        // SAFETY: the physical device belongs to the instance.
        let found = unsafe { instance.enumerate_device_extension_properties(physical) }?;
        Ok(Self {
            push_descriptor: has_extension(&found, khr::push_descriptor::NAME),
            memory_budget: has_extension(&found, ext::memory_budget::NAME),
            pci_bus_info: has_extension(&found, ext::pci_bus_info::NAME),
            // Kernels with matrices need control of the subgroup size, which is part of Vulkan 1.3.
            cooperative_matrix: version >= vk::API_VERSION_1_3
                && has_extension(&found, khr::cooperative_matrix::NAME),
            atomic_float: has_extension(&found, ext::shader_atomic_float::NAME),
            zero_initialize: has_extension(&found, khr::zero_initialize_workgroup_memory::NAME),
            portability_subset: has_extension(&found, khr::portability_subset::NAME),
        })
    }

    /// Returns the names of the extensions to enable on a device of the given Vulkan version.
    pub(crate) fn names(&self, version: u32) -> Vec<*const c_char> {
        // Vulkan 1.3 includes the extension for zero-initialisation.
        let promoted = version >= vk::API_VERSION_1_3;
        let all: [(bool, &CStr); 6] = [
            (self.push_descriptor, khr::push_descriptor::NAME),
            (self.memory_budget, ext::memory_budget::NAME),
            (self.cooperative_matrix, khr::cooperative_matrix::NAME),
            (self.atomic_float, ext::shader_atomic_float::NAME),
            (self.zero_initialize && !promoted, khr::zero_initialize_workgroup_memory::NAME),
            (self.portability_subset, khr::portability_subset::NAME),
        ];
        all.iter().filter(|(present, _)| *present).map(|(_, name)| name.as_ptr()).collect()
    }

    fn has_zero_initialize(&self, version: u32) -> bool {
        self.zero_initialize || version >= vk::API_VERSION_1_3
    }
}

/// Features of a device, either the supported ones or those to be enabled. A structure is `None` if
/// the device has neither its version nor its extension.
#[derive(Default)]
pub(crate) struct FeatureChain {
    core: vk::PhysicalDeviceFeatures,
    v11: vk::PhysicalDeviceVulkan11Features<'static>,
    v12: vk::PhysicalDeviceVulkan12Features<'static>,
    zero: Option<vk::PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures<'static>>,
    dot: Option<vk::PhysicalDeviceShaderIntegerDotProductFeatures<'static>>,
    atomics: Option<vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static>>,
    matrices: Option<vk::PhysicalDeviceCooperativeMatrixFeaturesKHR<'static>>,
    /// `Some` if `matrices` is.
    subgroups: Option<vk::PhysicalDeviceSubgroupSizeControlFeatures<'static>>,
}

impl FeatureChain {
    fn empty(extensions: &Extensions, version: u32) -> Self {
        Self {
            zero: extensions.has_zero_initialize(version).then(Default::default),
            dot: (version >= vk::API_VERSION_1_3).then(Default::default),
            atomics: extensions.atomic_float.then(Default::default),
            matrices: extensions.cooperative_matrix.then(Default::default),
            subgroups: extensions.cooperative_matrix.then(Default::default),
            ..Self::default()
        }
    }

    /// Links the structures to a chain and calls `visit` with it; `visit` may write to it.
    pub(crate) fn with_chain<R>(
        &mut self,
        visit: impl FnOnce(&mut vk::PhysicalDeviceFeatures2<'_>) -> R,
    ) -> R {
        let mut chain = vk::PhysicalDeviceFeatures2::default()
            .features(self.core)
            .push_next(&mut self.v11)
            .push_next(&mut self.v12);
        if let Some(zero) = &mut self.zero {
            chain = chain.push_next(zero);
        }
        if let Some(dot) = &mut self.dot {
            chain = chain.push_next(dot);
        }
        if let Some(atomics) = &mut self.atomics {
            chain = chain.push_next(atomics);
        }
        if let Some(matrices) = &mut self.matrices {
            chain = chain.push_next(matrices);
        }
        if let Some(subgroups) = &mut self.subgroups {
            chain = chain.push_next(subgroups);
        }
        let result = visit(&mut chain);
        self.core = chain.features;
        self.unlink();
        result
    }

    /// Clears the links, which dangle once `self` moves.
    fn unlink(&mut self) {
        let end = std::ptr::null_mut();
        self.v11.p_next = end;
        self.v12.p_next = end;
        if let Some(zero) = &mut self.zero {
            zero.p_next = end;
        }
        if let Some(dot) = &mut self.dot {
            dot.p_next = end;
        }
        if let Some(atomics) = &mut self.atomics {
            atomics.p_next = end;
        }
        if let Some(matrices) = &mut self.matrices {
            matrices.p_next = end;
        }
        if let Some(subgroups) = &mut self.subgroups {
            subgroups.p_next = end;
        }
    }

    /// Queries which of the features that the backend uses are supported.
    pub(crate) fn query(
        instance: &ash::Instance,
        physical: vk::PhysicalDevice,
        extensions: &Extensions,
        version: u32,
    ) -> Self {
        let mut supported = Self::empty(extensions, version);
        // SAFETY: the chained structures belong to versions and extensions that the device
        // supports.
        supported.with_chain(|chain| unsafe {
            instance.get_physical_device_features2(physical, chain);
        });
        supported.used_by_backend(extensions, version)
    }

    /// Returns these features without those that the backend does not use.
    fn used_by_backend(&self, extensions: &Extensions, version: u32) -> Self {
        let mut used = Self::empty(extensions, version);
        let core = &self.core;
        used.core = vk::PhysicalDeviceFeatures {
            shader_float64: core.shader_float64,
            shader_int64: core.shader_int64,
            shader_int16: core.shader_int16,
            ..Default::default()
        };
        let v11 = &self.v11;
        used.v11.storage_buffer16_bit_access = v11.storage_buffer16_bit_access;
        used.v11.uniform_and_storage_buffer16_bit_access =
            v11.uniform_and_storage_buffer16_bit_access;
        used.v11.storage_push_constant16 = v11.storage_push_constant16;
        let v12 = &self.v12;
        used.v12.timeline_semaphore = v12.timeline_semaphore;
        used.v12.shader_float16 = v12.shader_float16;
        used.v12.shader_int8 = v12.shader_int8;
        used.v12.storage_buffer8_bit_access = v12.storage_buffer8_bit_access;
        used.v12.uniform_and_storage_buffer8_bit_access =
            v12.uniform_and_storage_buffer8_bit_access;
        used.v12.storage_push_constant8 = v12.storage_push_constant8;
        used.v12.shader_buffer_int64_atomics = v12.shader_buffer_int64_atomics;
        used.v12.shader_shared_int64_atomics = v12.shader_shared_int64_atomics;
        used.v12.shader_subgroup_extended_types = v12.shader_subgroup_extended_types;
        used.zero = self.zero;
        used.dot = self.dot;
        if let (Some(used), Some(supported)) = (&mut used.atomics, &self.atomics) {
            used.shader_buffer_float32_atomics = supported.shader_buffer_float32_atomics;
            used.shader_buffer_float32_atomic_add = supported.shader_buffer_float32_atomic_add;
        }
        if let Some(supported) = self.matrices {
            used.matrices = Some(supported.cooperative_matrix_robust_buffer_access(false));
            used.subgroups = self.subgroups;
            used.v12.vulkan_memory_model = v12.vulkan_memory_model;
            used.v12.vulkan_memory_model_device_scope = v12.vulkan_memory_model_device_scope;
        }
        used
    }

    /// Returns whether the device supports cooperative matrices, and all features that kernels with
    /// matrices need.
    pub(crate) fn has_matrices(&self) -> bool {
        let yes = vk::TRUE;
        self.matrices.is_some_and(|matrices| matrices.cooperative_matrix == yes)
            && self.subgroups.is_some_and(|subgroups| {
                subgroups.subgroup_size_control == yes && subgroups.compute_full_subgroups == yes
            })
            && self.core.shader_int64 == yes
            && self.v12.vulkan_memory_model == yes
            && self.v12.vulkan_memory_model_device_scope == yes
    }

    /// Returns whether the device supports timeline semaphores.
    pub(crate) fn has_timeline_semaphores(&self) -> bool {
        self.v12.timeline_semaphore == vk::TRUE
    }

    /// Returns whether the device can zero-initialise workgroup memory.
    pub(crate) fn zeroes_workgroup_memory(&self) -> bool {
        self.zero.is_some_and(|zero| zero.shader_zero_initialize_workgroup_memory == vk::TRUE)
    }

    /// Returns whether the device supports integer dot product instructions (SPIR-V 1.6).
    pub(crate) fn has_dot_product(&self) -> bool {
        self.dot.is_some_and(|dot| dot.shader_integer_dot_product == vk::TRUE)
    }

    /// Returns the supported optional WGSL features, except subgroups and cooperative matrices.
    pub(crate) fn wgsl(&self) -> Features {
        let yes = vk::TRUE;
        let storage16 = self.v11.storage_buffer16_bit_access == yes
            && self.v11.uniform_and_storage_buffer16_bit_access == yes;
        let f32_atomics = self.atomics.is_some_and(|atomics| {
            atomics.shader_buffer_float32_atomics == yes
                && atomics.shader_buffer_float32_atomic_add == yes
        });
        let i64 = self.core.shader_int64 == yes;
        let i64_atomics = self.v12.shader_buffer_int64_atomics == yes
            && self.v12.shader_shared_int64_atomics == yes;
        let mut features = Features::empty();
        features.set(Features::F16, storage16 && self.v12.shader_float16 == yes);
        features.set(Features::I16, storage16 && self.core.shader_int16 == yes);
        features.set(Features::F64, self.core.shader_float64 == yes);
        features.set(Features::I64, i64);
        features.set(Features::F32_ATOMICS, f32_atomics);
        features.set(Features::I64_ATOMICS, i64 && i64_atomics);
        features
    }
}
