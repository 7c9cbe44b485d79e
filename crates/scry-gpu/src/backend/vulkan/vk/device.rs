//! Commands of a device.

use std::ffi::c_void;
use std::mem::transmute;

use super::{
    Buffer, BufferCopy, BufferCreateInfo, CommandBuffer, CommandBufferAllocateInfo,
    CommandBufferBeginInfo, CommandPool, CommandPoolCreateInfo, ComputePipelineCreateInfo,
    DescriptorPool, DescriptorPoolCreateInfo, DescriptorSet, DescriptorSetAllocateInfo,
    DescriptorSetLayout, DescriptorSetLayoutCreateInfo, DescriptorUpdateTemplate,
    DescriptorUpdateTemplateCreateInfo, DeviceHandle, DeviceMemory, Fence, Finder,
    MemoryAllocateInfo, MemoryBarrier, MemoryRequirements, ObjectNameInfo, Pipeline, PipelineCache,
    PipelineCacheCreateInfo, PipelineLayout, PipelineLayoutCreateInfo, PipelineStageFlags,
    QueryPool, QueryPoolCreateInfo, Queue, Result, Semaphore, SemaphoreCreateInfo,
    SemaphoreWaitInfo, ShaderModule, ShaderModuleCreateInfo, ShaderStageFlags, SubmitInfo,
};

pub(super) type Outcome<T> = std::result::Result<T, Result>;

/// Makes an object.
pub(super) type Create<I, H> =
    unsafe extern "system" fn(DeviceHandle, *const I, *const c_void, *mut H) -> Result;
/// Destroys an object.
pub(super) type Destroy<H> = unsafe extern "system" fn(DeviceHandle, H, *const c_void);
/// Allocates objects from a pool.
type Allocate<I, H> = unsafe extern "system" fn(DeviceHandle, *const I, *mut H) -> Result;
/// Resets a pool.
type Reset<H> = unsafe extern "system" fn(DeviceHandle, H, u32) -> Result;

type CreatePipelines = unsafe extern "system" fn(
    DeviceHandle,
    PipelineCache,
    u32,
    *const ComputePipelineCreateInfo,
    *const c_void,
    *mut Pipeline,
) -> Result;
type CacheData =
    unsafe extern "system" fn(DeviceHandle, PipelineCache, *mut usize, *mut c_void) -> Result;
type QueryResults = unsafe extern "system" fn(
    DeviceHandle,
    QueryPool,
    u32,
    u32,
    usize,
    *mut c_void,
    u64,
    u32,
) -> Result;
type MapMemory = unsafe extern "system" fn(
    DeviceHandle,
    DeviceMemory,
    u64,
    u64,
    u32,
    *mut *mut c_void,
) -> Result;
type BindSets = unsafe extern "system" fn(
    CommandBuffer,
    i32,
    PipelineLayout,
    u32,
    u32,
    *const DescriptorSet,
    u32,
    *const u32,
);
type WaitForMemory = unsafe extern "system" fn(
    CommandBuffer,
    PipelineStageFlags,
    PipelineStageFlags,
    u32,
    u32,
    *const MemoryBarrier,
    u32,
    *const c_void,
    u32,
    *const c_void,
);
type PushConstants = unsafe extern "system" fn(
    CommandBuffer,
    PipelineLayout,
    ShaderStageFlags,
    u32,
    u32,
    *const c_void,
);
type UpdateSet =
    unsafe extern "system" fn(DeviceHandle, DescriptorSet, DescriptorUpdateTemplate, *const c_void);

pub(super) struct DeviceCommands {
    pub(super) destroy: unsafe extern "system" fn(DeviceHandle, *const c_void),
    pub(super) queue: unsafe extern "system" fn(DeviceHandle, u32, u32, *mut Queue),
    pub(super) submit: unsafe extern "system" fn(Queue, u32, *const SubmitInfo, Fence) -> Result,

    pub(super) create_buffer: Create<BufferCreateInfo, Buffer>,
    pub(super) destroy_buffer: Destroy<Buffer>,
    pub(super) requirements:
        unsafe extern "system" fn(DeviceHandle, Buffer, *mut MemoryRequirements),
    pub(super) allocate_memory: Create<MemoryAllocateInfo, DeviceMemory>,
    pub(super) free_memory: Destroy<DeviceMemory>,
    pub(super) bind_memory:
        unsafe extern "system" fn(DeviceHandle, Buffer, DeviceMemory, u64) -> Result,
    pub(super) map_memory: MapMemory,

    pub(super) create_command_pool: Create<CommandPoolCreateInfo, CommandPool>,
    pub(super) destroy_command_pool: Destroy<CommandPool>,
    pub(super) reset_command_pool: Reset<CommandPool>,
    pub(super) allocate_command_buffers: Allocate<CommandBufferAllocateInfo, CommandBuffer>,
    pub(super) begin:
        unsafe extern "system" fn(CommandBuffer, *const CommandBufferBeginInfo) -> Result,
    pub(super) end: unsafe extern "system" fn(CommandBuffer) -> Result,

    pub(super) create_descriptor_pool: Create<DescriptorPoolCreateInfo, DescriptorPool>,
    pub(super) destroy_descriptor_pool: Destroy<DescriptorPool>,
    pub(super) reset_descriptor_pool: Reset<DescriptorPool>,
    pub(super) allocate_sets: Allocate<DescriptorSetAllocateInfo, DescriptorSet>,
    pub(super) create_set_layout: Create<DescriptorSetLayoutCreateInfo, DescriptorSetLayout>,
    pub(super) destroy_set_layout: Destroy<DescriptorSetLayout>,
    pub(super) create_template:
        Create<DescriptorUpdateTemplateCreateInfo, DescriptorUpdateTemplate>,
    pub(super) destroy_template: Destroy<DescriptorUpdateTemplate>,
    pub(super) update_set: UpdateSet,

    pub(super) create_shader_module: Create<ShaderModuleCreateInfo, ShaderModule>,
    pub(super) destroy_shader_module: Destroy<ShaderModule>,
    pub(super) create_pipeline_layout: Create<PipelineLayoutCreateInfo, PipelineLayout>,
    pub(super) destroy_pipeline_layout: Destroy<PipelineLayout>,
    pub(super) create_pipelines: CreatePipelines,
    pub(super) destroy_pipeline: Destroy<Pipeline>,
    pub(super) create_pipeline_cache: Create<PipelineCacheCreateInfo, PipelineCache>,
    pub(super) destroy_pipeline_cache: Destroy<PipelineCache>,
    pub(super) cache_data: CacheData,

    pub(super) create_semaphore: Create<SemaphoreCreateInfo, Semaphore>,
    pub(super) destroy_semaphore: Destroy<Semaphore>,
    pub(super) semaphore_value:
        unsafe extern "system" fn(DeviceHandle, Semaphore, *mut u64) -> Result,
    pub(super) wait:
        unsafe extern "system" fn(DeviceHandle, *const SemaphoreWaitInfo, u64) -> Result,
    pub(super) create_query_pool: Create<QueryPoolCreateInfo, QueryPool>,
    pub(super) destroy_query_pool: Destroy<QueryPool>,
    pub(super) query_results: QueryResults,

    pub(super) bind_pipeline: unsafe extern "system" fn(CommandBuffer, i32, Pipeline),
    pub(super) bind_sets: BindSets,
    pub(super) barrier: WaitForMemory,
    pub(super) copy:
        unsafe extern "system" fn(CommandBuffer, Buffer, Buffer, u32, *const BufferCopy),
    pub(super) dispatch: unsafe extern "system" fn(CommandBuffer, u32, u32, u32),
    pub(super) fill: unsafe extern "system" fn(CommandBuffer, Buffer, u64, u64, u32),
    pub(super) push_constants: PushConstants,
    pub(super) reset_queries: unsafe extern "system" fn(CommandBuffer, QueryPool, u32, u32),
    pub(super) write_timestamp:
        unsafe extern "system" fn(CommandBuffer, PipelineStageFlags, QueryPool, u32),
}

impl DeviceCommands {
    #[expect(clippy::missing_transmute_annotations, reason = "the fields have the types")]
    pub(super) fn find(finder: &Finder<'_>) -> Outcome<Self> {
        // SAFETY: each name's command has the field's type.
        let commands = unsafe {
            Self {
                destroy: transmute(finder.get(c"vkDestroyDevice")),
                queue: transmute(finder.get(c"vkGetDeviceQueue")),
                submit: transmute(finder.get(c"vkQueueSubmit")),
                create_buffer: transmute(finder.get(c"vkCreateBuffer")),
                destroy_buffer: transmute(finder.get(c"vkDestroyBuffer")),
                requirements: transmute(finder.get(c"vkGetBufferMemoryRequirements")),
                allocate_memory: transmute(finder.get(c"vkAllocateMemory")),
                free_memory: transmute(finder.get(c"vkFreeMemory")),
                bind_memory: transmute(finder.get(c"vkBindBufferMemory")),
                map_memory: transmute(finder.get(c"vkMapMemory")),
                create_command_pool: transmute(finder.get(c"vkCreateCommandPool")),
                destroy_command_pool: transmute(finder.get(c"vkDestroyCommandPool")),
                reset_command_pool: transmute(finder.get(c"vkResetCommandPool")),
                allocate_command_buffers: transmute(finder.get(c"vkAllocateCommandBuffers")),
                begin: transmute(finder.get(c"vkBeginCommandBuffer")),
                end: transmute(finder.get(c"vkEndCommandBuffer")),
                create_descriptor_pool: transmute(finder.get(c"vkCreateDescriptorPool")),
                destroy_descriptor_pool: transmute(finder.get(c"vkDestroyDescriptorPool")),
                reset_descriptor_pool: transmute(finder.get(c"vkResetDescriptorPool")),
                allocate_sets: transmute(finder.get(c"vkAllocateDescriptorSets")),
                create_set_layout: transmute(finder.get(c"vkCreateDescriptorSetLayout")),
                destroy_set_layout: transmute(finder.get(c"vkDestroyDescriptorSetLayout")),
                create_template: transmute(finder.get(c"vkCreateDescriptorUpdateTemplate")),
                destroy_template: transmute(finder.get(c"vkDestroyDescriptorUpdateTemplate")),
                update_set: transmute(finder.get(c"vkUpdateDescriptorSetWithTemplate")),
                create_shader_module: transmute(finder.get(c"vkCreateShaderModule")),
                destroy_shader_module: transmute(finder.get(c"vkDestroyShaderModule")),
                create_pipeline_layout: transmute(finder.get(c"vkCreatePipelineLayout")),
                destroy_pipeline_layout: transmute(finder.get(c"vkDestroyPipelineLayout")),
                create_pipelines: transmute(finder.get(c"vkCreateComputePipelines")),
                destroy_pipeline: transmute(finder.get(c"vkDestroyPipeline")),
                create_pipeline_cache: transmute(finder.get(c"vkCreatePipelineCache")),
                destroy_pipeline_cache: transmute(finder.get(c"vkDestroyPipelineCache")),
                cache_data: transmute(finder.get(c"vkGetPipelineCacheData")),
                create_semaphore: transmute(finder.get(c"vkCreateSemaphore")),
                destroy_semaphore: transmute(finder.get(c"vkDestroySemaphore")),
                semaphore_value: transmute(finder.get(c"vkGetSemaphoreCounterValue")),
                wait: transmute(finder.get(c"vkWaitSemaphores")),
                create_query_pool: transmute(finder.get(c"vkCreateQueryPool")),
                destroy_query_pool: transmute(finder.get(c"vkDestroyQueryPool")),
                query_results: transmute(finder.get(c"vkGetQueryPoolResults")),
                bind_pipeline: transmute(finder.get(c"vkCmdBindPipeline")),
                bind_sets: transmute(finder.get(c"vkCmdBindDescriptorSets")),
                barrier: transmute(finder.get(c"vkCmdPipelineBarrier")),
                copy: transmute(finder.get(c"vkCmdCopyBuffer")),
                dispatch: transmute(finder.get(c"vkCmdDispatch")),
                fill: transmute(finder.get(c"vkCmdFillBuffer")),
                push_constants: transmute(finder.get(c"vkCmdPushConstants")),
                reset_queries: transmute(finder.get(c"vkCmdResetQueryPool")),
                write_timestamp: transmute(finder.get(c"vkCmdWriteTimestamp")),
            }
        };
        finder.complete()?;
        Ok(commands)
    }
}

/// Pushes descriptors into a command buffer: `VK_KHR_push_descriptor`.
pub(crate) type PushDescriptors = unsafe extern "system" fn(
    CommandBuffer,
    DescriptorUpdateTemplate,
    PipelineLayout,
    u32,
    *const c_void,
);
/// Names objects for tools: `VK_EXT_debug_utils`.
pub(crate) type ObjectNamer =
    unsafe extern "system" fn(DeviceHandle, *const ObjectNameInfo) -> Result;

/// An open device.
pub(crate) struct Device {
    pub(super) handle: DeviceHandle,
    pub(super) commands: DeviceCommands,
}
