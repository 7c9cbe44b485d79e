//! Layouts, held against those of the ash crate.

use std::mem::offset_of;

use ::ash::vk as ash;
use ::ash::vk::PhysicalDeviceMaintenance4Properties as Maintenance4;

use super::super::*;

/// The size of a structure here, and there.
fn sizes<T, A>() -> [usize; 2] {
    [size_of::<T>(), size_of::<A>()]
}

/// Holds what is here against what is there.
fn assert_equal(all: &[[usize; 2]]) {
    for (at, [ours, theirs]) in all.iter().enumerate() {
        assert_eq!(ours, theirs, "number {at}");
    }
}

#[test]
fn requests_are_as_large_as_in_c() {
    let all = [
        sizes::<ApplicationInfo, ash::ApplicationInfo<'_>>(),
        sizes::<InstanceCreateInfo, ash::InstanceCreateInfo<'_>>(),
        sizes::<ValidationFeatures, ash::ValidationFeaturesEXT<'_>>(),
        sizes::<MessengerCreateInfo, ash::DebugUtilsMessengerCreateInfoEXT<'_>>(),
        sizes::<ObjectNameInfo, ash::DebugUtilsObjectNameInfoEXT<'_>>(),
        sizes::<DeviceQueueCreateInfo, ash::DeviceQueueCreateInfo<'_>>(),
        sizes::<DeviceCreateInfo, ash::DeviceCreateInfo<'_>>(),
        sizes::<BufferCreateInfo, ash::BufferCreateInfo<'_>>(),
        sizes::<MemoryAllocateInfo, ash::MemoryAllocateInfo<'_>>(),
        sizes::<MemoryRequirements, ash::MemoryRequirements>(),
        sizes::<CommandPoolCreateInfo, ash::CommandPoolCreateInfo<'_>>(),
        sizes::<CommandBufferAllocateInfo, ash::CommandBufferAllocateInfo<'_>>(),
        sizes::<CommandBufferBeginInfo, ash::CommandBufferBeginInfo<'_>>(),
        sizes::<DescriptorSetAllocateInfo, ash::DescriptorSetAllocateInfo<'_>>(),
        sizes::<DescriptorPoolSize, ash::DescriptorPoolSize>(),
        sizes::<DescriptorPoolCreateInfo, ash::DescriptorPoolCreateInfo<'_>>(),
        sizes::<DescriptorBufferInfo, ash::DescriptorBufferInfo>(),
        sizes::<PipelineCacheCreateInfo, ash::PipelineCacheCreateInfo<'_>>(),
        sizes::<DescriptorSetLayoutBinding, ash::DescriptorSetLayoutBinding<'_>>(),
        sizes::<DescriptorSetLayoutCreateInfo, ash::DescriptorSetLayoutCreateInfo<'_>>(),
        sizes::<PushConstantRange, ash::PushConstantRange>(),
        sizes::<PipelineLayoutCreateInfo, ash::PipelineLayoutCreateInfo<'_>>(),
        sizes::<DescriptorUpdateTemplateEntry, ash::DescriptorUpdateTemplateEntry>(),
        sizes::<DescriptorUpdateTemplateCreateInfo, ash::DescriptorUpdateTemplateCreateInfo<'_>>(),
        sizes::<ShaderModuleCreateInfo, ash::ShaderModuleCreateInfo<'_>>(),
        sizes::<PipelineShaderStageCreateInfo, ash::PipelineShaderStageCreateInfo<'_>>(),
        sizes::<ComputePipelineCreateInfo, ash::ComputePipelineCreateInfo<'_>>(),
        sizes::<MemoryBarrier, ash::MemoryBarrier<'_>>(),
        sizes::<BufferCopy, ash::BufferCopy>(),
        sizes::<TimelineSemaphoreSubmitInfo, ash::TimelineSemaphoreSubmitInfo<'_>>(),
        sizes::<SubmitInfo, ash::SubmitInfo<'_>>(),
        sizes::<SemaphoreTypeCreateInfo, ash::SemaphoreTypeCreateInfo<'_>>(),
        sizes::<SemaphoreCreateInfo, ash::SemaphoreCreateInfo<'_>>(),
        sizes::<SemaphoreWaitInfo, ash::SemaphoreWaitInfo<'_>>(),
        sizes::<QueryPoolCreateInfo, ash::QueryPoolCreateInfo<'_>>(),
    ];
    assert_equal(&all);
}

#[test]
fn answers_are_as_large_as_in_c() {
    let all = [
        sizes::<PhysicalDeviceLimits, ash::PhysicalDeviceLimits>(),
        sizes::<PhysicalDeviceProperties, ash::PhysicalDeviceProperties>(),
        sizes::<PhysicalDeviceProperties2, ash::PhysicalDeviceProperties2<'_>>(),
        sizes::<PhysicalDeviceVulkan11Properties, ash::PhysicalDeviceVulkan11Properties<'_>>(),
        sizes::<PhysicalDeviceVulkan12Properties, ash::PhysicalDeviceVulkan12Properties<'_>>(),
        sizes::<
            PhysicalDevicePushDescriptorProperties,
            ash::PhysicalDevicePushDescriptorPropertiesKHR<'_>,
        >(),
        sizes::<PhysicalDeviceMaintenance4Properties, Maintenance4<'_>>(),
        sizes::<PhysicalDevicePCIBusInfoProperties, ash::PhysicalDevicePCIBusInfoPropertiesEXT<'_>>(
        ),
        sizes::<PhysicalDeviceFeatures, ash::PhysicalDeviceFeatures>(),
        sizes::<PhysicalDeviceFeatures2, ash::PhysicalDeviceFeatures2<'_>>(),
        sizes::<PhysicalDeviceVulkan11Features, ash::PhysicalDeviceVulkan11Features<'_>>(),
        sizes::<PhysicalDeviceVulkan12Features, ash::PhysicalDeviceVulkan12Features<'_>>(),
        sizes::<
            PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures,
            ash::PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures<'_>,
        >(),
        sizes::<
            PhysicalDeviceShaderIntegerDotProductFeatures,
            ash::PhysicalDeviceShaderIntegerDotProductFeatures<'_>,
        >(),
        sizes::<
            PhysicalDeviceShaderAtomicFloatFeatures,
            ash::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'_>,
        >(),
        sizes::<QueueFamilyProperties, ash::QueueFamilyProperties>(),
        sizes::<ExtensionProperties, ash::ExtensionProperties>(),
        sizes::<LayerProperties, ash::LayerProperties>(),
        sizes::<MemoryType, ash::MemoryType>(),
        sizes::<MemoryHeap, ash::MemoryHeap>(),
        sizes::<PhysicalDeviceMemoryProperties, ash::PhysicalDeviceMemoryProperties>(),
        sizes::<PhysicalDeviceMemoryProperties2, ash::PhysicalDeviceMemoryProperties2<'_>>(),
        sizes::<
            PhysicalDeviceMemoryBudgetProperties,
            ash::PhysicalDeviceMemoryBudgetPropertiesEXT<'_>,
        >(),
        sizes::<Queue, ash::Queue>(),
        sizes::<Buffer, ash::Buffer>(),
    ];
    assert_equal(&all);
}

#[test]
fn chains_hold_every_structure_once() {
    let mut first: SubmitInfo = structure();
    let mut second: TimelineSemaphoreSubmitInfo = structure();
    let mut third: SemaphoreTypeCreateInfo = structure();
    push_next(&mut first, &mut second);
    push_next(&mut first, &mut third);
    assert_eq!(first.head.next, (&raw const third).cast());
    assert_eq!(third.head.next, (&raw const second).cast());
    assert!(second.head.next.is_null());
}

#[test]
fn fields_of_device_limits() {
    type Ours = PhysicalDeviceLimits;
    type Theirs = ash::PhysicalDeviceLimits;
    assert_equal(&[
        [offset_of!(Ours, max_uniform_buffer_range), offset_of!(Theirs, max_uniform_buffer_range)],
        [offset_of!(Ours, max_storage_buffer_range), offset_of!(Theirs, max_storage_buffer_range)],
        [offset_of!(Ours, max_push_constants_size), offset_of!(Theirs, max_push_constants_size)],
        [
            offset_of!(Ours, max_per_stage_descriptor_uniform_buffers),
            offset_of!(Theirs, max_per_stage_descriptor_uniform_buffers),
        ],
        [
            offset_of!(Ours, max_per_stage_descriptor_storage_buffers),
            offset_of!(Theirs, max_per_stage_descriptor_storage_buffers),
        ],
        [offset_of!(Ours, max_per_stage_resources), offset_of!(Theirs, max_per_stage_resources)],
        [
            offset_of!(Ours, max_descriptor_set_uniform_buffers),
            offset_of!(Theirs, max_descriptor_set_uniform_buffers),
        ],
        [
            offset_of!(Ours, max_descriptor_set_storage_buffers),
            offset_of!(Theirs, max_descriptor_set_storage_buffers),
        ],
        [
            offset_of!(Ours, max_compute_shared_memory_size),
            offset_of!(Theirs, max_compute_shared_memory_size),
        ],
        [
            offset_of!(Ours, max_compute_work_group_count),
            offset_of!(Theirs, max_compute_work_group_count),
        ],
        [
            offset_of!(Ours, max_compute_work_group_invocations),
            offset_of!(Theirs, max_compute_work_group_invocations),
        ],
        [
            offset_of!(Ours, max_compute_work_group_size),
            offset_of!(Theirs, max_compute_work_group_size),
        ],
        [
            offset_of!(Ours, min_uniform_buffer_offset_alignment),
            offset_of!(Theirs, min_uniform_buffer_offset_alignment),
        ],
        [
            offset_of!(Ours, min_storage_buffer_offset_alignment),
            offset_of!(Theirs, min_storage_buffer_offset_alignment),
        ],
        [offset_of!(Ours, timestamp_period), offset_of!(Theirs, timestamp_period)],
    ]);
}

#[test]
fn fields_of_device_properties() {
    type Ours = PhysicalDeviceProperties;
    type Theirs = ash::PhysicalDeviceProperties;
    assert_equal(&[
        [offset_of!(Ours, api_version), offset_of!(Theirs, api_version)],
        [offset_of!(Ours, vendor_id), offset_of!(Theirs, vendor_id)],
        [offset_of!(Ours, device_id), offset_of!(Theirs, device_id)],
        [offset_of!(Ours, device_type), offset_of!(Theirs, device_type)],
        [offset_of!(Ours, device_name), offset_of!(Theirs, device_name)],
        [offset_of!(Ours, pipeline_cache_uuid), offset_of!(Theirs, pipeline_cache_uuid)],
        [offset_of!(Ours, limits), offset_of!(Theirs, limits)],
    ]);
}

#[test]
fn fields_of_device_vulkan11_properties() {
    type Ours = PhysicalDeviceVulkan11Properties;
    type Theirs = ash::PhysicalDeviceVulkan11Properties<'static>;
    assert_equal(&[
        [offset_of!(Ours, device_uuid), offset_of!(Theirs, device_uuid)],
        [offset_of!(Ours, driver_uuid), offset_of!(Theirs, driver_uuid)],
        [offset_of!(Ours, subgroup_size), offset_of!(Theirs, subgroup_size)],
        [
            offset_of!(Ours, subgroup_supported_stages),
            offset_of!(Theirs, subgroup_supported_stages),
        ],
        [
            offset_of!(Ours, subgroup_supported_operations),
            offset_of!(Theirs, subgroup_supported_operations),
        ],
        [
            offset_of!(Ours, max_memory_allocation_size),
            offset_of!(Theirs, max_memory_allocation_size),
        ],
    ]);
}

#[test]
fn fields_of_device_vulkan12_properties() {
    type Ours = PhysicalDeviceVulkan12Properties;
    type Theirs = ash::PhysicalDeviceVulkan12Properties<'static>;
    assert_equal(&[
        [offset_of!(Ours, driver_name), offset_of!(Theirs, driver_name)],
        [offset_of!(Ours, driver_info), offset_of!(Theirs, driver_info)],
    ]);
}

#[test]
fn fields_of_device_features() {
    type Ours = PhysicalDeviceFeatures;
    type Theirs = ash::PhysicalDeviceFeatures;
    assert_equal(&[
        [offset_of!(Ours, shader_float64), offset_of!(Theirs, shader_float64)],
        [offset_of!(Ours, shader_int64), offset_of!(Theirs, shader_int64)],
        [offset_of!(Ours, shader_int16), offset_of!(Theirs, shader_int16)],
    ]);
}

#[test]
fn fields_of_device_vulkan11_features() {
    type Ours = PhysicalDeviceVulkan11Features;
    type Theirs = ash::PhysicalDeviceVulkan11Features<'static>;
    assert_equal(&[
        [
            offset_of!(Ours, storage_buffer16_bit_access),
            offset_of!(Theirs, storage_buffer16_bit_access),
        ],
        [
            offset_of!(Ours, uniform_and_storage_buffer16_bit_access),
            offset_of!(Theirs, uniform_and_storage_buffer16_bit_access),
        ],
        [offset_of!(Ours, storage_push_constant16), offset_of!(Theirs, storage_push_constant16)],
    ]);
}

#[test]
fn fields_of_device_vulkan12_features() {
    type Ours = PhysicalDeviceVulkan12Features;
    type Theirs = ash::PhysicalDeviceVulkan12Features<'static>;
    assert_equal(&[
        [
            offset_of!(Ours, storage_buffer8_bit_access),
            offset_of!(Theirs, storage_buffer8_bit_access),
        ],
        [
            offset_of!(Ours, uniform_and_storage_buffer8_bit_access),
            offset_of!(Theirs, uniform_and_storage_buffer8_bit_access),
        ],
        [offset_of!(Ours, storage_push_constant8), offset_of!(Theirs, storage_push_constant8)],
        [
            offset_of!(Ours, shader_buffer_int64_atomics),
            offset_of!(Theirs, shader_buffer_int64_atomics),
        ],
        [
            offset_of!(Ours, shader_shared_int64_atomics),
            offset_of!(Theirs, shader_shared_int64_atomics),
        ],
        [offset_of!(Ours, shader_float16), offset_of!(Theirs, shader_float16)],
        [offset_of!(Ours, shader_int8), offset_of!(Theirs, shader_int8)],
        [
            offset_of!(Ours, shader_subgroup_extended_types),
            offset_of!(Theirs, shader_subgroup_extended_types),
        ],
        [offset_of!(Ours, timeline_semaphore), offset_of!(Theirs, timeline_semaphore)],
    ]);
}

#[test]
fn fields_of_device_shader_atomic_float_features() {
    type Ours = PhysicalDeviceShaderAtomicFloatFeatures;
    type Theirs = ash::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static>;
    assert_equal(&[
        [
            offset_of!(Ours, shader_buffer_float32_atomics),
            offset_of!(Theirs, shader_buffer_float32_atomics),
        ],
        [
            offset_of!(Ours, shader_buffer_float32_atomic_add),
            offset_of!(Theirs, shader_buffer_float32_atomic_add),
        ],
    ]);
}

#[test]
fn fields_of_queue_family_properties() {
    type Ours = QueueFamilyProperties;
    type Theirs = ash::QueueFamilyProperties;
    assert_equal(&[
        [offset_of!(Ours, queue_flags), offset_of!(Theirs, queue_flags)],
        [offset_of!(Ours, timestamp_valid_bits), offset_of!(Theirs, timestamp_valid_bits)],
    ]);
}

#[test]
fn fields_of_extension_properties() {
    type Ours = ExtensionProperties;
    type Theirs = ash::ExtensionProperties;
    assert_equal(&[[offset_of!(Ours, extension_name), offset_of!(Theirs, extension_name)]]);
}

#[test]
fn fields_of_layer_properties() {
    type Ours = LayerProperties;
    type Theirs = ash::LayerProperties;
    assert_equal(&[[offset_of!(Ours, layer_name), offset_of!(Theirs, layer_name)]]);
}

#[test]
fn fields_of_device_memory_budget_properties() {
    type Ours = PhysicalDeviceMemoryBudgetProperties;
    type Theirs = ash::PhysicalDeviceMemoryBudgetPropertiesEXT<'static>;
    assert_equal(&[[offset_of!(Ours, heap_budget), offset_of!(Theirs, heap_budget)]]);
}

#[test]
fn fields_of_messenger_callback_data() {
    type Ours = MessengerCallbackData;
    type Theirs = ash::DebugUtilsMessengerCallbackDataEXT<'static>;
    assert_equal(&[
        [offset_of!(Ours, message_id_name), offset_of!(Theirs, p_message_id_name)],
        [offset_of!(Ours, message), offset_of!(Theirs, p_message)],
    ]);
}
