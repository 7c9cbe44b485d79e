//! Methods for the commands of a device that make, destroy and ask.

use std::ffi::c_void;
use std::ptr;

use super::device::{Create, Destroy, Device, Outcome};
use super::{
    Buffer, BufferCreateInfo, CommandBuffer, CommandBufferAllocateInfo, CommandPool,
    CommandPoolCreateInfo, ComputePipelineCreateInfo, DescriptorPool, DescriptorPoolCreateInfo,
    DescriptorSet, DescriptorSetAllocateInfo, DescriptorSetLayout, DescriptorSetLayoutCreateInfo,
    DescriptorUpdateTemplate, DescriptorUpdateTemplateCreateInfo, DeviceMemory, Fence,
    MemoryAllocateInfo, MemoryRequirements, Pipeline, PipelineCache, PipelineCacheCreateInfo,
    PipelineLayout, PipelineLayoutCreateInfo, QueryPool, QueryPoolCreateInfo, Queue, Result,
    Semaphore, SemaphoreCreateInfo, SemaphoreWaitInfo, ShaderModule, ShaderModuleCreateInfo,
    SubmitInfo,
};

/// Objects. What every unsafe method asks is what Vulkan asks for the command.
impl Device {
    /// # Safety
    /// As Vulkan says of the command.
    unsafe fn create<I, H>(&self, command: Create<I, H>, info: &I, null: H) -> Outcome<H> {
        let mut made = null;
        // SAFETY: by the contract.
        unsafe { command(self.handle, info, ptr::null(), &mut made) }.ok()?;
        Ok(made)
    }

    /// # Safety
    /// As Vulkan says of the command.
    unsafe fn destroy_object<H>(&self, command: Destroy<H>, object: H) {
        // SAFETY: by the contract.
        unsafe { command(self.handle, object, ptr::null()) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn create_buffer(&self, info: &BufferCreateInfo) -> Outcome<Buffer> {
        // SAFETY: by the contract.
        unsafe { self.create(self.commands.create_buffer, info, Buffer::null()) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn destroy_buffer(&self, object: Buffer) {
        // SAFETY: by the contract.
        unsafe { self.destroy_object(self.commands.destroy_buffer, object) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn create_command_pool(
        &self,
        info: &CommandPoolCreateInfo,
    ) -> Outcome<CommandPool> {
        // SAFETY: by the contract.
        unsafe { self.create(self.commands.create_command_pool, info, CommandPool::null()) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn destroy_command_pool(&self, object: CommandPool) {
        // SAFETY: by the contract.
        unsafe { self.destroy_object(self.commands.destroy_command_pool, object) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn create_descriptor_pool(
        &self,
        info: &DescriptorPoolCreateInfo,
    ) -> Outcome<DescriptorPool> {
        // SAFETY: by the contract.
        unsafe { self.create(self.commands.create_descriptor_pool, info, DescriptorPool::null()) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn destroy_descriptor_pool(&self, object: DescriptorPool) {
        // SAFETY: by the contract.
        unsafe { self.destroy_object(self.commands.destroy_descriptor_pool, object) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn create_descriptor_set_layout(
        &self,
        info: &DescriptorSetLayoutCreateInfo,
    ) -> Outcome<DescriptorSetLayout> {
        // SAFETY: by the contract.
        unsafe { self.create(self.commands.create_set_layout, info, DescriptorSetLayout::null()) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn destroy_descriptor_set_layout(&self, object: DescriptorSetLayout) {
        // SAFETY: by the contract.
        unsafe { self.destroy_object(self.commands.destroy_set_layout, object) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn create_descriptor_update_template(
        &self,
        info: &DescriptorUpdateTemplateCreateInfo,
    ) -> Outcome<DescriptorUpdateTemplate> {
        // SAFETY: by the contract.
        unsafe {
            self.create(self.commands.create_template, info, DescriptorUpdateTemplate::null())
        }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn destroy_descriptor_update_template(
        &self,
        object: DescriptorUpdateTemplate,
    ) {
        // SAFETY: by the contract.
        unsafe { self.destroy_object(self.commands.destroy_template, object) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn create_shader_module(
        &self,
        info: &ShaderModuleCreateInfo,
    ) -> Outcome<ShaderModule> {
        // SAFETY: by the contract.
        unsafe { self.create(self.commands.create_shader_module, info, ShaderModule::null()) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn destroy_shader_module(&self, object: ShaderModule) {
        // SAFETY: by the contract.
        unsafe { self.destroy_object(self.commands.destroy_shader_module, object) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn create_pipeline_layout(
        &self,
        info: &PipelineLayoutCreateInfo,
    ) -> Outcome<PipelineLayout> {
        // SAFETY: by the contract.
        unsafe { self.create(self.commands.create_pipeline_layout, info, PipelineLayout::null()) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn destroy_pipeline_layout(&self, object: PipelineLayout) {
        // SAFETY: by the contract.
        unsafe { self.destroy_object(self.commands.destroy_pipeline_layout, object) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn create_pipeline_cache(
        &self,
        info: &PipelineCacheCreateInfo,
    ) -> Outcome<PipelineCache> {
        // SAFETY: by the contract.
        unsafe { self.create(self.commands.create_pipeline_cache, info, PipelineCache::null()) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn destroy_pipeline_cache(&self, object: PipelineCache) {
        // SAFETY: by the contract.
        unsafe { self.destroy_object(self.commands.destroy_pipeline_cache, object) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn create_semaphore(&self, info: &SemaphoreCreateInfo) -> Outcome<Semaphore> {
        // SAFETY: by the contract.
        unsafe { self.create(self.commands.create_semaphore, info, Semaphore::null()) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn destroy_semaphore(&self, object: Semaphore) {
        // SAFETY: by the contract.
        unsafe { self.destroy_object(self.commands.destroy_semaphore, object) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn create_query_pool(
        &self,
        info: &QueryPoolCreateInfo,
    ) -> Outcome<QueryPool> {
        // SAFETY: by the contract.
        unsafe { self.create(self.commands.create_query_pool, info, QueryPool::null()) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn destroy_query_pool(&self, object: QueryPool) {
        // SAFETY: by the contract.
        unsafe { self.destroy_object(self.commands.destroy_query_pool, object) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn destroy_pipeline(&self, pipeline: Pipeline) {
        // SAFETY: by the contract.
        unsafe { self.destroy_object(self.commands.destroy_pipeline, pipeline) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn create_compute_pipeline(
        &self,
        cache: PipelineCache,
        info: &ComputePipelineCreateInfo,
    ) -> Outcome<Pipeline> {
        let mut made = Pipeline::null();
        let create = self.commands.create_pipelines;
        // SAFETY: by the contract.
        unsafe { create(self.handle, cache, 1, info, ptr::null(), &mut made) }.ok()?;
        Ok(made)
    }

    /// What the driver wants to keep of a pipeline cache.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn pipeline_cache_data(&self, cache: PipelineCache) -> Outcome<Vec<u8>> {
        let get = self.commands.cache_data;
        loop {
            let mut size = 0;
            // SAFETY: without room for the data, the command tells its size.
            unsafe { get(self.handle, cache, &mut size, ptr::null_mut()) }.ok()?;
            let mut data = vec![0u8; size];
            // SAFETY: there is room for so many bytes.
            match unsafe { get(self.handle, cache, &mut size, data.as_mut_ptr().cast()) } {
                // More has come meanwhile.
                Result::INCOMPLETE => continue,
                code => code.ok()?,
            }
            data.truncate(size);
            return Ok(data);
        }
    }
}

/// Memory.
impl Device {
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn memory_requirements(&self, buffer: Buffer) -> MemoryRequirements {
        let mut told = MemoryRequirements::default();
        // SAFETY: by the contract.
        unsafe { (self.commands.requirements)(self.handle, buffer, &mut told) };
        told
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn allocate_memory(
        &self,
        info: &MemoryAllocateInfo,
    ) -> Outcome<DeviceMemory> {
        // SAFETY: by the contract.
        unsafe { self.create(self.commands.allocate_memory, info, DeviceMemory::null()) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn free_memory(&self, memory: DeviceMemory) {
        // SAFETY: by the contract.
        unsafe { self.destroy_object(self.commands.free_memory, memory) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn bind_buffer_memory(
        &self,
        buffer: Buffer,
        memory: DeviceMemory,
        offset: u64,
    ) -> Outcome<()> {
        // SAFETY: by the contract.
        unsafe { (self.commands.bind_memory)(self.handle, buffer, memory, offset) }.ok()
    }

    /// Maps all of some memory; freeing it ends that.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn map_memory(&self, memory: DeviceMemory) -> Outcome<*mut c_void> {
        let mut start = ptr::null_mut();
        let (map, whole) = (self.commands.map_memory, super::WHOLE_SIZE);
        // SAFETY: by the contract.
        unsafe { map(self.handle, memory, 0, whole, 0, &mut start) }.ok()?;
        Ok(start)
    }
}

/// Pools, the queue, and waiting.
impl Device {
    /// Takes back all that was allocated from the pool.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn reset_command_pool(&self, pool: CommandPool) -> Outcome<()> {
        // SAFETY: by the contract.
        unsafe { (self.commands.reset_command_pool)(self.handle, pool, 0) }.ok()
    }

    /// Takes back all that was allocated from the pool.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn reset_descriptor_pool(&self, pool: DescriptorPool) -> Outcome<()> {
        // SAFETY: by the contract.
        unsafe { (self.commands.reset_descriptor_pool)(self.handle, pool, 0) }.ok()
    }

    /// One command buffer, of the primary level.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn allocate_command_buffer(
        &self,
        command_pool: CommandPool,
    ) -> Outcome<CommandBuffer> {
        let info = CommandBufferAllocateInfo {
            command_pool,
            command_buffer_count: 1,
            ..super::structure()
        };
        let mut made = CommandBuffer::null();
        // SAFETY: by the contract.
        unsafe { (self.commands.allocate_command_buffers)(self.handle, &info, &mut made) }.ok()?;
        Ok(made)
    }

    /// One descriptor set.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn allocate_descriptor_set(
        &self,
        descriptor_pool: DescriptorPool,
        layout: DescriptorSetLayout,
    ) -> Outcome<DescriptorSet> {
        let info = DescriptorSetAllocateInfo {
            descriptor_pool,
            descriptor_set_count: 1,
            set_layouts: &layout,
            ..super::structure()
        };
        let mut made = DescriptorSet::null();
        // SAFETY: by the contract.
        unsafe { (self.commands.allocate_sets)(self.handle, &info, &mut made) }.ok()?;
        Ok(made)
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn update_descriptor_set_with_template(
        &self,
        set: DescriptorSet,
        template: DescriptorUpdateTemplate,
        data: *const c_void,
    ) {
        // SAFETY: by the contract.
        unsafe { (self.commands.update_set)(self.handle, set, template, data) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn queue(&self, family: u32, index: u32) -> Queue {
        let mut queue = Queue::null();
        // SAFETY: by the contract.
        unsafe { (self.commands.queue)(self.handle, family, index, &mut queue) };
        queue
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn queue_submit(&self, queue: Queue, submission: &SubmitInfo) -> Outcome<()> {
        // SAFETY: by the contract.
        unsafe { (self.commands.submit)(queue, 1, submission, Fence::null()) }.ok()
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn semaphore_counter_value(&self, semaphore: Semaphore) -> Outcome<u64> {
        let mut value = 0;
        // SAFETY: by the contract.
        unsafe { (self.commands.semaphore_value)(self.handle, semaphore, &mut value) }.ok()?;
        Ok(value)
    }

    /// Waits, at most so many nanoseconds.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn wait_semaphores(
        &self,
        info: &SemaphoreWaitInfo,
        timeout: u64,
    ) -> Outcome<()> {
        // SAFETY: by the contract.
        unsafe { (self.commands.wait)(self.handle, info, timeout) }.ok()
    }

    /// The results of the first queries of a pool.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn query_results(&self, pool: QueryPool, out: &mut [u64]) -> Outcome<()> {
        let (get, count) = (self.commands.query_results, out.len() as u32);
        let (bytes, start) = (size_of_val(out), out.as_mut_ptr().cast());
        let (stride, flags) = (size_of::<u64>() as u64, super::QUERY_RESULT_64);
        // SAFETY: by the contract; there is room for so many results of 64 bits.
        unsafe { get(self.handle, pool, 0, count, bytes, start, stride, flags) }.ok()
    }

    /// Closes the device.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn destroy(&self) {
        // SAFETY: by the contract.
        unsafe { (self.commands.destroy)(self.handle, ptr::null()) }
    }
}
