//! What commands are told: structures that go to the driver.

use std::ffi::{c_char, c_void};

use super::{
    AccessFlags, Bool32, Buffer, BufferUsageFlags, CommandBuffer, CommandBufferUsageFlags,
    CommandPool, DescriptorPool, DescriptorSetLayout, DescriptorType, Header, MessageSeverityFlags,
    MessageTypeFlags, Pipeline, PipelineLayout, PipelineStageFlags, Semaphore, ShaderModule,
    ShaderStageFlags, Structure,
};

/// Hears messages of the loader, the layers and the drivers.
pub(crate) type MessengerCallback = unsafe extern "system" fn(
    MessageSeverityFlags,
    MessageTypeFlags,
    *const MessengerCallbackData,
    *mut c_void,
) -> Bool32;

/// What the program says of itself.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ApplicationInfo {
    pub(crate) head: Header,
    pub(crate) application_name: *const c_char,
    pub(crate) application_version: u32,
    pub(crate) engine_name: *const c_char,
    pub(crate) engine_version: u32,
    pub(crate) api_version: u32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for ApplicationInfo {
    const KIND: i32 = 0;
}

/// An instance to make.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct InstanceCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) application_info: *const ApplicationInfo,
    pub(crate) enabled_layer_count: u32,
    pub(crate) enabled_layer_names: *const *const c_char,
    pub(crate) enabled_extension_count: u32,
    pub(crate) enabled_extension_names: *const *const c_char,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for InstanceCreateInfo {
    const KIND: i32 = 1;
}

/// What the validation layer is to check beyond its defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ValidationFeatures {
    pub(crate) head: Header,
    pub(crate) enabled_count: u32,
    pub(crate) enabled: *const i32,
    pub(crate) disabled_count: u32,
    pub(crate) disabled: *const i32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for ValidationFeatures {
    const KIND: i32 = 1_000_247_000;
}

/// Whom to tell of messages.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MessengerCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) severity: MessageSeverityFlags,
    pub(crate) kind: MessageTypeFlags,
    pub(crate) callback: Option<MessengerCallback>,
    pub(crate) user_data: *mut c_void,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for MessengerCreateInfo {
    const KIND: i32 = 1_000_128_004;
}

/// A message. More follows that nobody reads.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MessengerCallbackData {
    pub(crate) head: Header,
    pub(crate) _flags: u32,
    pub(crate) message_id_name: *const c_char,
    pub(crate) _message_id_number: i32,
    pub(crate) message: *const c_char,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for MessengerCallbackData {
    const KIND: i32 = 1_000_128_003;
}

/// The name of an object.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ObjectNameInfo {
    pub(crate) head: Header,
    pub(crate) object_type: i32,
    pub(crate) object_handle: u64,
    pub(crate) object_name: *const c_char,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for ObjectNameInfo {
    const KIND: i32 = 1_000_128_000;
}

/// Queues to make with a device.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DeviceQueueCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) queue_family_index: u32,
    pub(crate) queue_count: u32,
    pub(crate) queue_priorities: *const f32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for DeviceQueueCreateInfo {
    const KIND: i32 = 2;
}

/// A device to open.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DeviceCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) queue_create_info_count: u32,
    pub(crate) queue_create_infos: *const DeviceQueueCreateInfo,
    pub(crate) _enabled_layer_count: u32,
    pub(crate) _enabled_layer_names: *const *const c_char,
    pub(crate) enabled_extension_count: u32,
    pub(crate) enabled_extension_names: *const *const c_char,
    pub(crate) _enabled_features: *const c_void,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for DeviceCreateInfo {
    const KIND: i32 = 3;
}

/// A buffer to make; queues take turns with it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct BufferCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) size: u64,
    pub(crate) usage: BufferUsageFlags,
    pub(crate) _sharing_mode: i32,
    pub(crate) _queue_family_index_count: u32,
    pub(crate) _queue_family_indices: *const u32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for BufferCreateInfo {
    const KIND: i32 = 12;
}

/// Memory to allocate.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MemoryAllocateInfo {
    pub(crate) head: Header,
    pub(crate) allocation_size: u64,
    pub(crate) memory_type_index: u32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for MemoryAllocateInfo {
    const KIND: i32 = 5;
}

/// What a buffer asks of its memory.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct MemoryRequirements {
    pub(crate) size: u64,
    pub(crate) alignment: u64,
    pub(crate) memory_type_bits: u32,
}

/// A command pool to make.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CommandPoolCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) queue_family_index: u32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for CommandPoolCreateInfo {
    const KIND: i32 = 39;
}

/// Command buffers to allocate; level 0 is primary.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CommandBufferAllocateInfo {
    pub(crate) head: Header,
    pub(crate) command_pool: CommandPool,
    pub(crate) level: i32,
    pub(crate) command_buffer_count: u32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for CommandBufferAllocateInfo {
    const KIND: i32 = 40;
}

/// How a command buffer is to be used.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CommandBufferBeginInfo {
    pub(crate) head: Header,
    pub(crate) flags: CommandBufferUsageFlags,
    pub(crate) _inheritance_info: *const c_void,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for CommandBufferBeginInfo {
    const KIND: i32 = 42;
}

/// Descriptor sets to allocate.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DescriptorSetAllocateInfo {
    pub(crate) head: Header,
    pub(crate) descriptor_pool: DescriptorPool,
    pub(crate) descriptor_set_count: u32,
    pub(crate) set_layouts: *const DescriptorSetLayout,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for DescriptorSetAllocateInfo {
    const KIND: i32 = 34;
}

/// Descriptors of one type in a pool.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DescriptorPoolSize {
    pub(crate) ty: DescriptorType,
    pub(crate) descriptor_count: u32,
}

/// A descriptor pool to make.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DescriptorPoolCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) max_sets: u32,
    pub(crate) pool_size_count: u32,
    pub(crate) pool_sizes: *const DescriptorPoolSize,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for DescriptorPoolCreateInfo {
    const KIND: i32 = 33;
}

/// A part of a buffer, as update templates read it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DescriptorBufferInfo {
    pub(crate) buffer: Buffer,
    pub(crate) offset: u64,
    pub(crate) range: u64,
}

/// A pipeline cache to make.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PipelineCacheCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) initial_data_size: usize,
    pub(crate) initial_data: *const c_void,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PipelineCacheCreateInfo {
    const KIND: i32 = 17;
}

/// A binding of a set.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DescriptorSetLayoutBinding {
    pub(crate) binding: u32,
    pub(crate) descriptor_type: DescriptorType,
    pub(crate) descriptor_count: u32,
    pub(crate) stage_flags: ShaderStageFlags,
    pub(crate) immutable_samplers: *const c_void,
}

/// The layout of a set.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DescriptorSetLayoutCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) binding_count: u32,
    pub(crate) bindings: *const DescriptorSetLayoutBinding,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for DescriptorSetLayoutCreateInfo {
    const KIND: i32 = 32;
}

/// Bytes of push constants that a stage reads.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PushConstantRange {
    pub(crate) stage_flags: ShaderStageFlags,
    pub(crate) offset: u32,
    pub(crate) size: u32,
}

/// The layout of a pipeline.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PipelineLayoutCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) set_layout_count: u32,
    pub(crate) set_layouts: *const DescriptorSetLayout,
    pub(crate) push_constant_range_count: u32,
    pub(crate) push_constant_ranges: *const PushConstantRange,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PipelineLayoutCreateInfo {
    const KIND: i32 = 30;
}

/// Where a template reads the descriptor of a binding.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DescriptorUpdateTemplateEntry {
    pub(crate) dst_binding: u32,
    pub(crate) dst_array_element: u32,
    pub(crate) descriptor_count: u32,
    pub(crate) descriptor_type: DescriptorType,
    pub(crate) offset: usize,
    pub(crate) stride: usize,
}

/// A template that fills in all descriptors of a set.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DescriptorUpdateTemplateCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) entry_count: u32,
    pub(crate) entries: *const DescriptorUpdateTemplateEntry,
    pub(crate) template_type: i32,
    pub(crate) descriptor_set_layout: DescriptorSetLayout,
    pub(crate) pipeline_bind_point: i32,
    pub(crate) pipeline_layout: PipelineLayout,
    pub(crate) set: u32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for DescriptorUpdateTemplateCreateInfo {
    const KIND: i32 = 1_000_085_000;
}

/// SPIR-V; its size is in bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ShaderModuleCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) code_size: usize,
    pub(crate) code: *const u32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for ShaderModuleCreateInfo {
    const KIND: i32 = 16;
}

/// A stage of a pipeline.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PipelineShaderStageCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) stage: ShaderStageFlags,
    pub(crate) module: ShaderModule,
    pub(crate) name: *const c_char,
    pub(crate) _specialization_info: *const c_void,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for PipelineShaderStageCreateInfo {
    const KIND: i32 = 18;
}

/// A compute pipeline to make.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ComputePipelineCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) stage: PipelineShaderStageCreateInfo,
    pub(crate) layout: PipelineLayout,
    pub(crate) _base_pipeline_handle: Pipeline,
    pub(crate) _base_pipeline_index: i32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for ComputePipelineCreateInfo {
    const KIND: i32 = 29;
}

/// What has to be visible to what.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MemoryBarrier {
    pub(crate) head: Header,
    pub(crate) src_access_mask: AccessFlags,
    pub(crate) dst_access_mask: AccessFlags,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for MemoryBarrier {
    const KIND: i32 = 46;
}

/// Bytes to copy.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct BufferCopy {
    pub(crate) src_offset: u64,
    pub(crate) dst_offset: u64,
    pub(crate) size: u64,
}

/// Values of a submission's timeline semaphores.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct TimelineSemaphoreSubmitInfo {
    pub(crate) head: Header,
    pub(crate) _wait_count: u32,
    pub(crate) _wait_values: *const u64,
    pub(crate) signal_count: u32,
    pub(crate) signal_values: *const u64,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for TimelineSemaphoreSubmitInfo {
    const KIND: i32 = 1_000_207_003;
}

/// A submission.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SubmitInfo {
    pub(crate) head: Header,
    pub(crate) _wait_semaphore_count: u32,
    pub(crate) _wait_semaphores: *const Semaphore,
    pub(crate) _wait_stages: *const PipelineStageFlags,
    pub(crate) command_buffer_count: u32,
    pub(crate) command_buffers: *const CommandBuffer,
    pub(crate) signal_semaphore_count: u32,
    pub(crate) signal_semaphores: *const Semaphore,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for SubmitInfo {
    const KIND: i32 = 4;
}

/// The type of a semaphore.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SemaphoreTypeCreateInfo {
    pub(crate) head: Header,
    pub(crate) semaphore_type: i32,
    pub(crate) initial_value: u64,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for SemaphoreTypeCreateInfo {
    const KIND: i32 = 1_000_207_002;
}

/// A semaphore to make.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SemaphoreCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for SemaphoreCreateInfo {
    const KIND: i32 = 9;
}

/// Values to wait for.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SemaphoreWaitInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) semaphore_count: u32,
    pub(crate) semaphores: *const Semaphore,
    pub(crate) values: *const u64,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for SemaphoreWaitInfo {
    const KIND: i32 = 1_000_207_004;
}

/// Queries to make.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct QueryPoolCreateInfo {
    pub(crate) head: Header,
    pub(crate) flags: u32,
    pub(crate) query_type: i32,
    pub(crate) query_count: u32,
    pub(crate) _pipeline_statistics: u32,
}

// SAFETY: a header, then numbers, handles and pointers, which may all be zero.
unsafe impl Structure for QueryPoolCreateInfo {
    const KIND: i32 = 11;
}
