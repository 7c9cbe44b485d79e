//! What commands tell of devices: structures that the driver fills in.

use std::ffi::c_char;

use super::{
    Bool32, Header, MemoryHeapFlags, MemoryPropertyFlags, PhysicalDeviceType, QueueFlags,
    ShaderStageFlags, Structure, SubgroupFeatureFlags,
};

/// Bytes of a UUID.
pub(crate) const UUID_SIZE: usize = 16;

/// Limits of a device.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceLimits {
    _images: [u32; 6],
    pub(crate) max_uniform_buffer_range: u32,
    pub(crate) max_storage_buffer_range: u32,
    pub(crate) max_push_constants_size: u32,
    _counts: [u32; 2],
    _granularity: [u64; 2],
    _descriptors: [u32; 2],
    pub(crate) max_per_stage_descriptor_uniform_buffers: u32,
    pub(crate) max_per_stage_descriptor_storage_buffers: u32,
    _per_stage: [u32; 3],
    pub(crate) max_per_stage_resources: u32,
    _samplers: u32,
    pub(crate) max_descriptor_set_uniform_buffers: u32,
    _dynamic_uniform_buffers: u32,
    pub(crate) max_descriptor_set_storage_buffers: u32,
    _stages: [u32; 26],
    pub(crate) max_compute_shared_memory_size: u32,
    pub(crate) max_compute_work_group_count: [u32; 3],
    pub(crate) max_compute_work_group_invocations: u32,
    pub(crate) max_compute_work_group_size: [u32; 3],
    _viewports: [u32; 13],
    _min_memory_map_alignment: usize,
    _min_texel_buffer_offset_alignment: u64,
    pub(crate) min_uniform_buffer_offset_alignment: u64,
    pub(crate) min_storage_buffer_offset_alignment: u64,
    _framebuffers: [u32; 22],
    pub(crate) timestamp_period: f32,
    _points: [u32; 12],
    _copies: [u64; 3],
}

/// What a device is.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceProperties {
    pub(crate) api_version: u32,
    _driver_version: u32,
    pub(crate) vendor_id: u32,
    pub(crate) device_id: u32,
    pub(crate) device_type: PhysicalDeviceType,
    pub(crate) device_name: [c_char; 256],
    pub(crate) pipeline_cache_uuid: [u8; UUID_SIZE],
    pub(crate) limits: PhysicalDeviceLimits,
    _sparse: [Bool32; 5],
}

/// The same, to be chained.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceProperties2 {
    pub(crate) head: Header,
    pub(crate) properties: PhysicalDeviceProperties,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PhysicalDeviceProperties2 {
    const KIND: i32 = 1_000_059_001;
}

/// Properties of Vulkan 1.1.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceVulkan11Properties {
    pub(crate) head: Header,
    pub(crate) device_uuid: [u8; UUID_SIZE],
    pub(crate) driver_uuid: [u8; UUID_SIZE],
    _device_luid: [u8; 8],
    _device_node_mask: u32,
    _device_luid_valid: Bool32,
    pub(crate) subgroup_size: u32,
    pub(crate) subgroup_supported_stages: ShaderStageFlags,
    pub(crate) subgroup_supported_operations: SubgroupFeatureFlags,
    _others: [u32; 6],
    pub(crate) max_memory_allocation_size: u64,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PhysicalDeviceVulkan11Properties {
    const KIND: i32 = 50;
}

/// Properties of Vulkan 1.2.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceVulkan12Properties {
    pub(crate) head: Header,
    _driver_id: i32,
    pub(crate) driver_name: [c_char; 256],
    pub(crate) driver_info: [c_char; 256],
    _others: [u32; 47],
    _max_timeline_semaphore_value_difference: u64,
    _framebuffer_integer_color_sample_counts: u32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PhysicalDeviceVulkan12Properties {
    const KIND: i32 = 52;
}

/// How many descriptors can be pushed.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDevicePushDescriptorProperties {
    pub(crate) head: Header,
    pub(crate) max_push_descriptors: u32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PhysicalDevicePushDescriptorProperties {
    const KIND: i32 = 1_000_080_000;
}

/// The size of the largest buffer.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceMaintenance4Properties {
    pub(crate) head: Header,
    pub(crate) max_buffer_size: u64,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PhysicalDeviceMaintenance4Properties {
    const KIND: i32 = 1_000_413_001;
}

/// Where the device sits.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDevicePCIBusInfoProperties {
    pub(crate) head: Header,
    pub(crate) pci_domain: u32,
    pub(crate) pci_bus: u32,
    pub(crate) pci_device: u32,
    pub(crate) pci_function: u32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PhysicalDevicePCIBusInfoProperties {
    const KIND: i32 = 1_000_212_000;
}

/// Features of Vulkan 1.0.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceFeatures {
    _others: [Bool32; 39],
    pub(crate) shader_float64: Bool32,
    pub(crate) shader_int64: Bool32,
    pub(crate) shader_int16: Bool32,
    _rest: [Bool32; 13],
}

/// The same, to be chained.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceFeatures2 {
    pub(crate) head: Header,
    pub(crate) features: PhysicalDeviceFeatures,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PhysicalDeviceFeatures2 {
    const KIND: i32 = 1_000_059_000;
}

/// Features of Vulkan 1.1.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceVulkan11Features {
    pub(crate) head: Header,
    pub(crate) storage_buffer16_bit_access: Bool32,
    pub(crate) uniform_and_storage_buffer16_bit_access: Bool32,
    pub(crate) storage_push_constant16: Bool32,
    _others: [Bool32; 9],
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PhysicalDeviceVulkan11Features {
    const KIND: i32 = 49;
}

/// Features of Vulkan 1.2.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceVulkan12Features {
    pub(crate) head: Header,
    _first: [Bool32; 2],
    pub(crate) storage_buffer8_bit_access: Bool32,
    pub(crate) uniform_and_storage_buffer8_bit_access: Bool32,
    pub(crate) storage_push_constant8: Bool32,
    pub(crate) shader_buffer_int64_atomics: Bool32,
    pub(crate) shader_shared_int64_atomics: Bool32,
    pub(crate) shader_float16: Bool32,
    pub(crate) shader_int8: Bool32,
    _indexing: [Bool32; 25],
    pub(crate) shader_subgroup_extended_types: Bool32,
    _layouts: [Bool32; 2],
    pub(crate) timeline_semaphore: Bool32,
    _others: [Bool32; 9],
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PhysicalDeviceVulkan12Features {
    const KIND: i32 = 51;
}

/// Whether workgroup memory can be zeroed by the device.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures {
    pub(crate) head: Header,
    pub(crate) shader_zero_initialize_workgroup_memory: Bool32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures {
    const KIND: i32 = 1_000_325_000;
}

/// Whether there are dot products of integers.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceShaderIntegerDotProductFeatures {
    pub(crate) head: Header,
    pub(crate) shader_integer_dot_product: Bool32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PhysicalDeviceShaderIntegerDotProductFeatures {
    const KIND: i32 = 1_000_280_000;
}

/// Atomics of floats.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceShaderAtomicFloatFeatures {
    pub(crate) head: Header,
    pub(crate) shader_buffer_float32_atomics: Bool32,
    pub(crate) shader_buffer_float32_atomic_add: Bool32,
    _others: [Bool32; 10],
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PhysicalDeviceShaderAtomicFloatFeatures {
    const KIND: i32 = 1_000_260_000;
}

/// What queues of a family can do.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct QueueFamilyProperties {
    pub(crate) queue_flags: QueueFlags,
    _queue_count: u32,
    pub(crate) timestamp_valid_bits: u32,
    _min_image_transfer_granularity: [u32; 3],
}

/// An extension.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ExtensionProperties {
    pub(crate) extension_name: [c_char; 256],
    _spec_version: u32,
}

/// A layer.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LayerProperties {
    pub(crate) layer_name: [c_char; 256],
    _versions: [u32; 2],
    _description: [c_char; 256],
}

/// A type of memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MemoryType {
    pub(crate) property_flags: MemoryPropertyFlags,
    pub(crate) heap_index: u32,
}

/// A heap of memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MemoryHeap {
    pub(crate) size: u64,
    pub(crate) flags: MemoryHeapFlags,
}

/// The memory of a device.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceMemoryProperties {
    pub(crate) memory_type_count: u32,
    pub(crate) memory_types: [MemoryType; 32],
    pub(crate) memory_heap_count: u32,
    pub(crate) memory_heaps: [MemoryHeap; 16],
}

/// The same, to be chained.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceMemoryProperties2 {
    pub(crate) head: Header,
    pub(crate) memory_properties: PhysicalDeviceMemoryProperties,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PhysicalDeviceMemoryProperties2 {
    const KIND: i32 = 1_000_059_006;
}

/// How much of each heap the process may take, and has taken.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PhysicalDeviceMemoryBudgetProperties {
    pub(crate) head: Header,
    pub(crate) heap_budget: [u64; 16],
    _heap_usage: [u64; 16],
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PhysicalDeviceMemoryBudgetProperties {
    const KIND: i32 = 1_000_237_000;
}
