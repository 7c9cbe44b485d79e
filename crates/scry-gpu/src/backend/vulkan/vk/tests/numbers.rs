//! Numbers, held against those of the ash crate.

use ::ash::vk as ash;
use ::ash::vk::PhysicalDevicePCIBusInfoPropertiesEXT as PciBusInfo;

use super::super::*;

/// Holds what is here against what is there.
fn assert_equal<T: PartialEq + std::fmt::Debug>(all: &[[T; 2]]) {
    for (at, [ours, theirs]) in all.iter().enumerate() {
        assert_eq!(ours, theirs, "number {at}");
    }
}

/// The number of a structure's type here, and there.
fn numbers<T: Structure, A: ash::TaggedStructure>() -> [i32; 2] {
    [T::KIND, A::STRUCTURE_TYPE.as_raw()]
}

#[test]
fn structures_have_their_numbers() {
    let all = [
        numbers::<ApplicationInfo, ash::ApplicationInfo<'_>>(),
        numbers::<InstanceCreateInfo, ash::InstanceCreateInfo<'_>>(),
        numbers::<ValidationFeatures, ash::ValidationFeaturesEXT<'_>>(),
        numbers::<MessengerCreateInfo, ash::DebugUtilsMessengerCreateInfoEXT<'_>>(),
        numbers::<MessengerCallbackData, ash::DebugUtilsMessengerCallbackDataEXT<'_>>(),
        numbers::<ObjectNameInfo, ash::DebugUtilsObjectNameInfoEXT<'_>>(),
        numbers::<DeviceQueueCreateInfo, ash::DeviceQueueCreateInfo<'_>>(),
        numbers::<DeviceCreateInfo, ash::DeviceCreateInfo<'_>>(),
        numbers::<BufferCreateInfo, ash::BufferCreateInfo<'_>>(),
        numbers::<MemoryAllocateInfo, ash::MemoryAllocateInfo<'_>>(),
        numbers::<CommandPoolCreateInfo, ash::CommandPoolCreateInfo<'_>>(),
        numbers::<CommandBufferAllocateInfo, ash::CommandBufferAllocateInfo<'_>>(),
        numbers::<CommandBufferBeginInfo, ash::CommandBufferBeginInfo<'_>>(),
        numbers::<DescriptorSetAllocateInfo, ash::DescriptorSetAllocateInfo<'_>>(),
        numbers::<DescriptorPoolCreateInfo, ash::DescriptorPoolCreateInfo<'_>>(),
        numbers::<PipelineCacheCreateInfo, ash::PipelineCacheCreateInfo<'_>>(),
        numbers::<DescriptorSetLayoutCreateInfo, ash::DescriptorSetLayoutCreateInfo<'_>>(),
        numbers::<PipelineLayoutCreateInfo, ash::PipelineLayoutCreateInfo<'_>>(),
        numbers::<DescriptorUpdateTemplateCreateInfo, ash::DescriptorUpdateTemplateCreateInfo<'_>>(
        ),
        numbers::<ShaderModuleCreateInfo, ash::ShaderModuleCreateInfo<'_>>(),
        numbers::<PipelineShaderStageCreateInfo, ash::PipelineShaderStageCreateInfo<'_>>(),
        numbers::<ComputePipelineCreateInfo, ash::ComputePipelineCreateInfo<'_>>(),
        numbers::<MemoryBarrier, ash::MemoryBarrier<'_>>(),
        numbers::<TimelineSemaphoreSubmitInfo, ash::TimelineSemaphoreSubmitInfo<'_>>(),
        numbers::<SubmitInfo, ash::SubmitInfo<'_>>(),
        numbers::<SemaphoreTypeCreateInfo, ash::SemaphoreTypeCreateInfo<'_>>(),
        numbers::<SemaphoreCreateInfo, ash::SemaphoreCreateInfo<'_>>(),
        numbers::<SemaphoreWaitInfo, ash::SemaphoreWaitInfo<'_>>(),
        numbers::<QueryPoolCreateInfo, ash::QueryPoolCreateInfo<'_>>(),
        numbers::<PhysicalDeviceProperties2, ash::PhysicalDeviceProperties2<'_>>(),
        numbers::<PhysicalDeviceVulkan11Properties, ash::PhysicalDeviceVulkan11Properties<'_>>(),
        numbers::<PhysicalDeviceVulkan12Properties, ash::PhysicalDeviceVulkan12Properties<'_>>(),
        numbers::<
            PhysicalDevicePushDescriptorProperties,
            ash::PhysicalDevicePushDescriptorPropertiesKHR<'_>,
        >(),
        numbers::<
            PhysicalDeviceMaintenance4Properties,
            ash::PhysicalDeviceMaintenance4Properties<'_>,
        >(),
        numbers::<PhysicalDevicePCIBusInfoProperties, PciBusInfo<'_>>(),
        numbers::<PhysicalDeviceFeatures2, ash::PhysicalDeviceFeatures2<'_>>(),
        numbers::<PhysicalDeviceVulkan11Features, ash::PhysicalDeviceVulkan11Features<'_>>(),
        numbers::<PhysicalDeviceVulkan12Features, ash::PhysicalDeviceVulkan12Features<'_>>(),
        numbers::<
            PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures,
            ash::PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures<'_>,
        >(),
        numbers::<
            PhysicalDeviceShaderIntegerDotProductFeatures,
            ash::PhysicalDeviceShaderIntegerDotProductFeatures<'_>,
        >(),
        numbers::<
            PhysicalDeviceShaderAtomicFloatFeatures,
            ash::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'_>,
        >(),
        numbers::<PhysicalDeviceMemoryProperties2, ash::PhysicalDeviceMemoryProperties2<'_>>(),
        numbers::<
            PhysicalDeviceMemoryBudgetProperties,
            ash::PhysicalDeviceMemoryBudgetPropertiesEXT<'_>,
        >(),
    ];
    assert_equal(&all);
}

#[test]
fn flags_have_their_bits() {
    let all = [
        [AccessFlags::UNIFORM_READ.bits(), ash::AccessFlags::UNIFORM_READ.as_raw()],
        [AccessFlags::SHADER_READ.bits(), ash::AccessFlags::SHADER_READ.as_raw()],
        [AccessFlags::SHADER_WRITE.bits(), ash::AccessFlags::SHADER_WRITE.as_raw()],
        [AccessFlags::TRANSFER_READ.bits(), ash::AccessFlags::TRANSFER_READ.as_raw()],
        [AccessFlags::TRANSFER_WRITE.bits(), ash::AccessFlags::TRANSFER_WRITE.as_raw()],
        [AccessFlags::HOST_READ.bits(), ash::AccessFlags::HOST_READ.as_raw()],
        [AccessFlags::HOST_WRITE.bits(), ash::AccessFlags::HOST_WRITE.as_raw()],
        [BufferUsageFlags::TRANSFER_SRC.bits(), ash::BufferUsageFlags::TRANSFER_SRC.as_raw()],
        [BufferUsageFlags::TRANSFER_DST.bits(), ash::BufferUsageFlags::TRANSFER_DST.as_raw()],
        [BufferUsageFlags::UNIFORM_BUFFER.bits(), ash::BufferUsageFlags::UNIFORM_BUFFER.as_raw()],
        [BufferUsageFlags::STORAGE_BUFFER.bits(), ash::BufferUsageFlags::STORAGE_BUFFER.as_raw()],
        [
            CommandBufferUsageFlags::ONE_TIME_SUBMIT.bits(),
            ash::CommandBufferUsageFlags::ONE_TIME_SUBMIT.as_raw(),
        ],
        [
            CommandBufferUsageFlags::SIMULTANEOUS_USE.bits(),
            ash::CommandBufferUsageFlags::SIMULTANEOUS_USE.as_raw(),
        ],
    ];
    assert_equal(&all);
}

#[test]
fn flags_of_devices_have_their_bits() {
    let all = [
        [MemoryHeapFlags::DEVICE_LOCAL.bits(), ash::MemoryHeapFlags::DEVICE_LOCAL.as_raw()],
        [MemoryPropertyFlags::DEVICE_LOCAL.bits(), ash::MemoryPropertyFlags::DEVICE_LOCAL.as_raw()],
        [MemoryPropertyFlags::HOST_VISIBLE.bits(), ash::MemoryPropertyFlags::HOST_VISIBLE.as_raw()],
        [
            MemoryPropertyFlags::HOST_COHERENT.bits(),
            ash::MemoryPropertyFlags::HOST_COHERENT.as_raw(),
        ],
        [MemoryPropertyFlags::HOST_CACHED.bits(), ash::MemoryPropertyFlags::HOST_CACHED.as_raw()],
        [
            MessageSeverityFlags::WARNING.bits(),
            ash::DebugUtilsMessageSeverityFlagsEXT::WARNING.as_raw(),
        ],
        [
            MessageSeverityFlags::ERROR.bits(),
            ash::DebugUtilsMessageSeverityFlagsEXT::ERROR.as_raw(),
        ],
        [MessageTypeFlags::GENERAL.bits(), ash::DebugUtilsMessageTypeFlagsEXT::GENERAL.as_raw()],
        [
            MessageTypeFlags::VALIDATION.bits(),
            ash::DebugUtilsMessageTypeFlagsEXT::VALIDATION.as_raw(),
        ],
        [
            MessageTypeFlags::PERFORMANCE.bits(),
            ash::DebugUtilsMessageTypeFlagsEXT::PERFORMANCE.as_raw(),
        ],
        [
            PipelineStageFlags::COMPUTE_SHADER.bits(),
            ash::PipelineStageFlags::COMPUTE_SHADER.as_raw(),
        ],
        [PipelineStageFlags::TRANSFER.bits(), ash::PipelineStageFlags::TRANSFER.as_raw()],
        [
            PipelineStageFlags::BOTTOM_OF_PIPE.bits(),
            ash::PipelineStageFlags::BOTTOM_OF_PIPE.as_raw(),
        ],
        [PipelineStageFlags::HOST.bits(), ash::PipelineStageFlags::HOST.as_raw()],
        [QueueFlags::COMPUTE.bits(), ash::QueueFlags::COMPUTE.as_raw()],
        [ShaderStageFlags::COMPUTE.bits(), ash::ShaderStageFlags::COMPUTE.as_raw()],
        [SubgroupFeatureFlags::BASIC.bits(), ash::SubgroupFeatureFlags::BASIC.as_raw()],
        [SubgroupFeatureFlags::VOTE.bits(), ash::SubgroupFeatureFlags::VOTE.as_raw()],
        [SubgroupFeatureFlags::ARITHMETIC.bits(), ash::SubgroupFeatureFlags::ARITHMETIC.as_raw()],
        [SubgroupFeatureFlags::BALLOT.bits(), ash::SubgroupFeatureFlags::BALLOT.as_raw()],
        [SubgroupFeatureFlags::SHUFFLE.bits(), ash::SubgroupFeatureFlags::SHUFFLE.as_raw()],
        [
            SubgroupFeatureFlags::SHUFFLE_RELATIVE.bits(),
            ash::SubgroupFeatureFlags::SHUFFLE_RELATIVE.as_raw(),
        ],
        [SubgroupFeatureFlags::QUAD.bits(), ash::SubgroupFeatureFlags::QUAD.as_raw()],
        [
            SET_LAYOUT_PUSH_DESCRIPTORS,
            ash::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR.as_raw(),
        ],
        [
            INSTANCE_ENUMERATE_PORTABILITY,
            ash::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR.as_raw(),
        ],
        [QUERY_RESULT_64, ash::QueryResultFlags::TYPE_64.as_raw()],
        [API_VERSION_1_0, ash::API_VERSION_1_0],
        [API_VERSION_1_2, ash::API_VERSION_1_2],
        [API_VERSION_1_3, ash::API_VERSION_1_3],
    ];
    assert_equal(&all);
}

#[test]
fn choices_have_their_numbers() {
    let all = [
        [PhysicalDeviceType::INTEGRATED_GPU.0, ash::PhysicalDeviceType::INTEGRATED_GPU.as_raw()],
        [PhysicalDeviceType::DISCRETE_GPU.0, ash::PhysicalDeviceType::DISCRETE_GPU.as_raw()],
        [PhysicalDeviceType::VIRTUAL_GPU.0, ash::PhysicalDeviceType::VIRTUAL_GPU.as_raw()],
        [PhysicalDeviceType::CPU.0, ash::PhysicalDeviceType::CPU.as_raw()],
        [DescriptorType::UNIFORM_BUFFER.0, ash::DescriptorType::UNIFORM_BUFFER.as_raw()],
        [DescriptorType::STORAGE_BUFFER.0, ash::DescriptorType::STORAGE_BUFFER.as_raw()],
        [TEMPLATE_DESCRIPTOR_SET, ash::DescriptorUpdateTemplateType::DESCRIPTOR_SET.as_raw()],
        [
            TEMPLATE_PUSH_DESCRIPTORS,
            ash::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR.as_raw(),
        ],
        [BIND_POINT_COMPUTE, ash::PipelineBindPoint::COMPUTE.as_raw()],
        [CACHE_HEADER_VERSION_ONE as i32, ash::PipelineCacheHeaderVersion::ONE.as_raw()],
        [QUERY_TIMESTAMP, ash::QueryType::TIMESTAMP.as_raw()],
        [SEMAPHORE_TIMELINE, ash::SemaphoreType::TIMELINE.as_raw()],
        [
            VALIDATE_SYNCHRONIZATION,
            ash::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION.as_raw(),
        ],
        [<Buffer as Nameable>::TYPE, ash::ObjectType::BUFFER.as_raw()],
        [<Pipeline as Nameable>::TYPE, ash::ObjectType::PIPELINE.as_raw()],
    ];
    assert_equal(&all);
}

#[test]
fn codes_have_their_names() {
    for (number, name, _) in result::CODES {
        assert_eq!(format!("{:?}", ash::Result::from_raw(*number)), *name);
        assert_eq!(format!("{:?}", Result(*number)), *name);
    }
    let all = [
        (Result::SUCCESS, ash::Result::SUCCESS),
        (Result::TIMEOUT, ash::Result::TIMEOUT),
        (Result::INCOMPLETE, ash::Result::INCOMPLETE),
        (Result::ERROR_OUT_OF_HOST_MEMORY, ash::Result::ERROR_OUT_OF_HOST_MEMORY),
        (Result::ERROR_OUT_OF_DEVICE_MEMORY, ash::Result::ERROR_OUT_OF_DEVICE_MEMORY),
        (Result::ERROR_INITIALIZATION_FAILED, ash::Result::ERROR_INITIALIZATION_FAILED),
        (Result::ERROR_DEVICE_LOST, ash::Result::ERROR_DEVICE_LOST),
        (Result::ERROR_INCOMPATIBLE_DRIVER, ash::Result::ERROR_INCOMPATIBLE_DRIVER),
        (Result::ERROR_TOO_MANY_OBJECTS, ash::Result::ERROR_TOO_MANY_OBJECTS),
        (Result::ERROR_FRAGMENTED_POOL, ash::Result::ERROR_FRAGMENTED_POOL),
        (Result::ERROR_UNKNOWN, ash::Result::ERROR_UNKNOWN),
        (Result::ERROR_OUT_OF_POOL_MEMORY, ash::Result::ERROR_OUT_OF_POOL_MEMORY),
    ];
    for (ours, theirs) in all {
        assert_eq!(ours.0, theirs.as_raw());
    }
    assert_eq!(format!("{:?}", Result(-7_654_321)), "-7654321");
}
