//! Methods for commands that are written into a command buffer, and for those of extensions.

use std::ffi::CStr;
use std::ptr;

use super::device::{Device, Outcome};
use super::{
    Buffer, BufferCopy, CommandBuffer, CommandBufferBeginInfo, DescriptorSet, Finder, Instance,
    MemoryBarrier, ObjectNameInfo, ObjectNamer, Pipeline, PipelineLayout, PipelineStageFlags,
    PushDescriptors, QueryPool, ShaderStageFlags,
};

/// Commands that are written into a command buffer.
impl Device {
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn begin_command_buffer(
        &self,
        commands: CommandBuffer,
        info: &CommandBufferBeginInfo,
    ) -> Outcome<()> {
        // SAFETY: by the contract.
        unsafe { (self.commands.begin)(commands, info) }.ok()
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn end_command_buffer(&self, commands: CommandBuffer) -> Outcome<()> {
        // SAFETY: by the contract.
        unsafe { (self.commands.end)(commands) }.ok()
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn cmd_bind_pipeline(&self, commands: CommandBuffer, pipeline: Pipeline) {
        // SAFETY: by the contract.
        unsafe { (self.commands.bind_pipeline)(commands, super::BIND_POINT_COMPUTE, pipeline) }
    }

    /// Binds set 0.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn cmd_bind_descriptor_set(
        &self,
        commands: CommandBuffer,
        layout: PipelineLayout,
        set: DescriptorSet,
    ) {
        let (bind, point) = (self.commands.bind_sets, super::BIND_POINT_COMPUTE);
        // SAFETY: by the contract.
        unsafe { bind(commands, point, layout, 0, 1, &set, 0, ptr::null()) }
    }

    /// A barrier for all memory.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn cmd_pipeline_barrier(
        &self,
        commands: CommandBuffer,
        (from, to): (PipelineStageFlags, PipelineStageFlags),
        memory: &MemoryBarrier,
    ) {
        let (barrier, none) = (self.commands.barrier, ptr::null());
        // SAFETY: by the contract.
        unsafe { barrier(commands, from, to, 0, 1, memory, 0, none, 0, none) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn cmd_copy_buffer(
        &self,
        commands: CommandBuffer,
        from: Buffer,
        to: Buffer,
        region: &BufferCopy,
    ) {
        // SAFETY: by the contract.
        unsafe { (self.commands.copy)(commands, from, to, 1, region) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn cmd_dispatch(&self, commands: CommandBuffer, [x, y, z]: [u32; 3]) {
        // SAFETY: by the contract.
        unsafe { (self.commands.dispatch)(commands, x, y, z) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn cmd_fill_buffer(
        &self,
        commands: CommandBuffer,
        buffer: Buffer,
        (offset, size): (u64, u64),
        pattern: u32,
    ) {
        // SAFETY: by the contract.
        unsafe { (self.commands.fill)(commands, buffer, offset, size, pattern) }
    }

    /// Pushes constants from the first on, to compute shaders.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn cmd_push_constants(
        &self,
        commands: CommandBuffer,
        layout: PipelineLayout,
        data: &[u8],
    ) {
        let (push, stage) = (self.commands.push_constants, ShaderStageFlags::COMPUTE);
        let (len, start) = (data.len() as u32, data.as_ptr().cast());
        // SAFETY: by the contract.
        unsafe { push(commands, layout, stage, 0, len, start) }
    }

    /// Resets the first queries of a pool.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn cmd_reset_queries(
        &self,
        commands: CommandBuffer,
        pool: QueryPool,
        count: u32,
    ) {
        // SAFETY: by the contract.
        unsafe { (self.commands.reset_queries)(commands, pool, 0, count) }
    }

    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn cmd_write_timestamp(
        &self,
        commands: CommandBuffer,
        stage: PipelineStageFlags,
        pool: QueryPool,
        index: u32,
    ) {
        // SAFETY: by the contract.
        unsafe { (self.commands.write_timestamp)(commands, stage, pool, index) }
    }
}

/// Commands of extensions.
impl Device {
    /// The command that pushes descriptors, on a device that has the extension enabled.
    pub(crate) fn push_descriptors(&self, instance: &Instance) -> Option<PushDescriptors> {
        // SAFETY: the command's type.
        unsafe { self.extra(instance, c"vkCmdPushDescriptorSetWithTemplateKHR") }
    }

    /// The command that names objects, on a device of an instance that has the extension enabled.
    pub(crate) fn object_namer(&self, instance: &Instance) -> Option<ObjectNamer> {
        // SAFETY: the command's type.
        unsafe { self.extra(instance, c"vkSetDebugUtilsObjectNameEXT") }
    }

    /// Names an object.
    ///
    /// # Safety
    /// As Vulkan says of the command.
    pub(crate) unsafe fn name_object(
        &self,
        namer: ObjectNamer,
        info: &ObjectNameInfo,
    ) -> Outcome<()> {
        // SAFETY: by the contract.
        unsafe { namer(self.handle, info) }.ok()
    }

    /// # Safety
    /// `F` is the type of the command's function pointer.
    unsafe fn extra<F: Copy>(&self, instance: &Instance, name: &CStr) -> Option<F> {
        let find = |name: &CStr| {
            // SAFETY: the device is alive.
            unsafe { (instance.commands.get_device_proc_addr)(self.handle, name.as_ptr()) }
        };
        // SAFETY: by the contract.
        unsafe { Finder::new(&find).find(name) }
    }
}
