//! The device extensions and features that are made use of: which of them a device has, and the
//! chain of structures that enables exactly those.

use std::ffi::{CStr, c_char};

use scry_ir::Features;

use super::instance::has_extension;
use super::vk;

const PUSH_DESCRIPTOR: &CStr = c"VK_KHR_push_descriptor";
const MEMORY_BUDGET: &CStr = c"VK_EXT_memory_budget";
const PCI_BUS_INFO: &CStr = c"VK_EXT_pci_bus_info";
const ATOMIC_FLOAT: &CStr = c"VK_EXT_shader_atomic_float";
const ZERO_INITIALIZE: &CStr = c"VK_KHR_zero_initialize_workgroup_memory";
const PORTABILITY_SUBSET: &CStr = c"VK_KHR_portability_subset";

/// The extensions of a device that are made use of; each true if the device has it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extensions {
    pub(super) push_descriptor: bool,
    pub(super) memory_budget: bool,
    pub(super) pci_bus_info: bool,
    atomic_float: bool,
    zero_initialize: bool,
    /// Has to be enabled wherever it is present.
    portability_subset: bool,
}

impl Extensions {
    /// Asks a device.
    pub(super) fn query(
        instance: &vk::Instance,
        physical: vk::PhysicalDevice,
    ) -> Result<Self, vk::Result> {
        // SAFETY: the physical device is one of the instance's.
        let found = unsafe { instance.extensions(physical) }?;
        Ok(Self {
            push_descriptor: has_extension(&found, PUSH_DESCRIPTOR),
            memory_budget: has_extension(&found, MEMORY_BUDGET),
            pci_bus_info: has_extension(&found, PCI_BUS_INFO),
            atomic_float: has_extension(&found, ATOMIC_FLOAT),
            zero_initialize: has_extension(&found, ZERO_INITIALIZE),
            portability_subset: has_extension(&found, PORTABILITY_SUBSET),
        })
    }

    /// Names of those to be enabled on a device of the given Vulkan version.
    pub(super) fn names(&self, version: u32) -> Vec<*const c_char> {
        let promoted = version >= vk::API_VERSION_1_3;
        let all: [(bool, &CStr); 5] = [
            (self.push_descriptor, PUSH_DESCRIPTOR),
            (self.memory_budget, MEMORY_BUDGET),
            (self.atomic_float, ATOMIC_FLOAT),
            (self.zero_initialize && !promoted, ZERO_INITIALIZE),
            (self.portability_subset, PORTABILITY_SUBSET),
        ];
        all.iter().filter(|(present, _)| *present).map(|(_, name)| name.as_ptr()).collect()
    }

    fn has_zero_initialize(&self, version: u32) -> bool {
        self.zero_initialize || version >= vk::API_VERSION_1_3
    }
}

/// Features of a device: those that it has, or those to be enabled.
pub(super) struct FeatureChain {
    core: vk::PhysicalDeviceFeatures,
    v11: vk::PhysicalDeviceVulkan11Features,
    v12: vk::PhysicalDeviceVulkan12Features,
    zero: Option<vk::PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures>,
    dot: Option<vk::PhysicalDeviceShaderIntegerDotProductFeatures>,
    atomics: Option<vk::PhysicalDeviceShaderAtomicFloatFeatures>,
}

impl FeatureChain {
    fn empty(extensions: &Extensions, version: u32) -> Self {
        Self {
            core: vk::structure::<vk::PhysicalDeviceFeatures2>().features,
            v11: vk::structure(),
            v12: vk::structure(),
            zero: extensions.has_zero_initialize(version).then(vk::structure),
            dot: (version >= vk::API_VERSION_1_3).then(vk::structure),
            atomics: extensions.atomic_float.then(vk::structure),
        }
    }

    /// Calls `visit` with the whole chain; what it writes there stays.
    pub(super) fn chained<R>(
        &mut self,
        visit: impl FnOnce(&mut vk::PhysicalDeviceFeatures2) -> R,
    ) -> R {
        let mut chain = vk::PhysicalDeviceFeatures2 { features: self.core, ..vk::structure() };
        vk::push_next(&mut chain, &mut self.v11);
        vk::push_next(&mut chain, &mut self.v12);
        if let Some(zero) = &mut self.zero {
            vk::push_next(&mut chain, zero);
        }
        if let Some(dot) = &mut self.dot {
            vk::push_next(&mut chain, dot);
        }
        if let Some(atomics) = &mut self.atomics {
            vk::push_next(&mut chain, atomics);
        }
        let result = visit(&mut chain);
        self.core = chain.features;
        self.unlink();
        result
    }

    /// Cuts the links, which are of no use once `self` moves.
    fn unlink(&mut self) {
        let end = std::ptr::null();
        self.v11.head.next = end;
        self.v12.head.next = end;
        if let Some(zero) = &mut self.zero {
            zero.head.next = end;
        }
        if let Some(dot) = &mut self.dot {
            dot.head.next = end;
        }
        if let Some(atomics) = &mut self.atomics {
            atomics.head.next = end;
        }
    }

    /// What a device has of what is made use of, and nothing else.
    pub(super) fn query(
        instance: &vk::Instance,
        physical: vk::PhysicalDevice,
        extensions: &Extensions,
        version: u32,
    ) -> Self {
        let mut present = Self::empty(extensions, version);
        // SAFETY: the structures chained belong to versions and extensions that the device has.
        present.chained(|chain| unsafe {
            instance.features(physical, chain);
        });
        present.restricted(extensions, version)
    }

    fn restricted(&self, extensions: &Extensions, version: u32) -> Self {
        let mut used = Self::empty(extensions, version);
        let core = &self.core;
        used.core.shader_float64 = core.shader_float64;
        used.core.shader_int64 = core.shader_int64;
        used.core.shader_int16 = core.shader_int16;
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
        if let (Some(used), Some(has)) = (&mut used.atomics, &self.atomics) {
            used.shader_buffer_float32_atomics = has.shader_buffer_float32_atomics;
            used.shader_buffer_float32_atomic_add = has.shader_buffer_float32_atomic_add;
        }
        used
    }

    /// Whether submissions can be ordered by timeline semaphores.
    pub(super) fn has_timelines(&self) -> bool {
        self.v12.timeline_semaphore == vk::TRUE
    }

    /// Whether the device zeroes workgroup memory itself.
    pub(super) fn zeroes_workgroup_memory(&self) -> bool {
        self.zero.is_some_and(|zero| zero.shader_zero_initialize_workgroup_memory == vk::TRUE)
    }

    /// Whether the device has integer dot product instructions, which SPIR-V 1.6 brings.
    pub(super) fn has_dot_product(&self) -> bool {
        self.dot.is_some_and(|dot| dot.shader_integer_dot_product == vk::TRUE)
    }

    /// The optional WGSL features that the device has, subgroups aside.
    pub(super) fn wgsl(&self) -> Features {
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
