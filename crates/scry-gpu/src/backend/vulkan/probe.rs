//! Properties of a physical device before it is opened.

use ash::vk;

use super::ffi::features::Extensions;
use super::workarounds::Workarounds;
use crate::api::info::DeviceInfo;

/// Properties of a physical device before it is opened.
pub(super) struct Probe {
    pub(super) physical: vk::PhysicalDevice,
    pub(super) info: DeviceInfo,
    /// The smaller of the device's Vulkan version and the newest one that the backend uses.
    pub(super) version: u32,
    pub(super) extensions: Extensions,
    pub(super) queue_family: u32,
    pub(super) timestamps: Timestamps,
    /// The maximum number of push descriptors; 0 without the extension.
    pub(super) max_push_descriptors: u32,
    /// The float types of which the driver keeps NaN, infinities and signed zeros on request.
    pub(super) nan_preserving: scry_ir::FloatTypes,
    /// The workarounds for defects of the driver.
    pub(super) workarounds: Workarounds,
    /// The expected header of a pipeline cache.
    pub(super) cache_identity: CacheIdentity,
}

/// Format of the queue's timestamps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timestamps {
    /// Valid bits; 0 without timestamps.
    pub(super) valid_bits: u32,
    /// Nanoseconds per tick.
    pub(super) period: f32,
}

/// Identity of a device and its driver in the header of a pipeline cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CacheIdentity {
    pub(super) vendor: u32,
    pub(super) device: u32,
    pub(super) uuid: [u8; vk::UUID_SIZE],
}

/// Returns the bytes of device-local memory and, if requested, the budget of this process in it.
pub(super) fn memory(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    with_budget: bool,
) -> (u64, Option<u64>) {
    let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
    let mut all = vk::PhysicalDeviceMemoryProperties2::default();
    if with_budget {
        all = all.push_next(&mut budget);
    }
    // SAFETY: the budget is queried only if the device has the extension.
    unsafe { instance.get_physical_device_memory_properties2(physical, &mut all) };
    let heaps = all.memory_properties;
    let (mut size, mut total_budget) = (0, 0);
    for (heap, budget) in heaps.memory_heaps_as_slice().iter().zip(budget.heap_budget) {
        if heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL) {
            size += heap.size;
            total_budget += budget;
        }
    }
    (size, with_budget.then_some(total_budget))
}

/// Returns the device memory in bytes that this process may use now, including what it has
/// allocated, if the driver reports it.
pub(super) fn memory_budget(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    extensions: &Extensions,
) -> Option<u64> {
    memory(instance, physical, extensions.memory_budget).1
}
