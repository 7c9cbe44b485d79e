//! Command buffers and the descriptor sets that they use.

use std::sync::Arc;

use ash::vk;

use crate::api::error::Result;
use crate::backend::vulkan::compile::Kernel;
use crate::backend::vulkan::device::Gpu;

/// A command buffer with its own pool, and the descriptor sets that it uses.
pub(crate) struct Commands {
    pub(crate) buffer: vk::CommandBuffer,
    pub(crate) sets: DescriptorSets,
    pool: vk::CommandPool,
    gpu: Arc<Gpu>,
}

impl Commands {
    /// Creates an empty command buffer.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(gpu.queue_family);
        // SAFETY: the queue family is the one that the device was opened with.
        let pool = unsafe { gpu.raw.create_command_pool(&info, None) }
            .map_err(|code| gpu.failed("vkCreateCommandPool", code))?;
        let mut commands = Self {
            buffer: vk::CommandBuffer::null(),
            sets: DescriptorSets::new(gpu),
            pool,
            gpu: Arc::clone(gpu),
        };
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the pool is new; if this fails, the drop destroys it.
        let buffers = unsafe { gpu.raw.allocate_command_buffers(&info) }
            .map_err(|code| gpu.failed("vkAllocateCommandBuffers", code))?;
        commands.buffer = buffers[0];
        Ok(commands)
    }

    /// Resets the command buffer and begins recording. Its previous execution must have finished.
    pub(crate) fn begin(&mut self, usage: vk::CommandBufferUsageFlags) -> Result<()> {
        self.sets.reset()?;
        let device = &self.gpu.raw;
        let info = vk::CommandBufferBeginInfo::default().flags(usage);
        // SAFETY: `&mut self` is exclusive access to the pool, and the previous execution has
        // finished.
        unsafe {
            device
                .reset_command_pool(self.pool, vk::CommandPoolResetFlags::empty())
                .map_err(|code| self.gpu.failed("vkResetCommandPool", code))?;
            device
                .begin_command_buffer(self.buffer, &info)
                .map_err(|code| self.gpu.failed("vkBeginCommandBuffer", code))
        }
    }

    /// Ends recording.
    pub(crate) fn end(&mut self) -> Result<()> {
        // SAFETY: the command buffer is being recorded, by this thread.
        unsafe { self.gpu.raw.end_command_buffer(self.buffer) }
            .map_err(|code| self.gpu.failed("vkEndCommandBuffer", code))
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        if self.gpu.is_abandoned() {
            return;
        }
        // SAFETY: dropped after the device has executed it, or before it was submitted.
        unsafe { self.gpu.raw.destroy_command_pool(self.pool, None) };
    }
}

/// Descriptors of each type in a pool, unless a kernel needs more.
const DESCRIPTORS_PER_POOL: u32 = 1024;
/// Sets in a pool.
const SETS_PER_POOL: u32 = 128;

/// Descriptor sets for kernels without push descriptors.
pub(crate) struct DescriptorSets {
    pools: Vec<vk::DescriptorPool>,
    /// The pool to allocate from; the ones before it are exhausted.
    current: usize,
    gpu: Arc<Gpu>,
}

impl DescriptorSets {
    fn new(gpu: &Arc<Gpu>) -> Self {
        Self { pools: Vec::new(), current: 0, gpu: Arc::clone(gpu) }
    }

    /// Frees all sets.
    fn reset(&mut self) -> Result<()> {
        self.current = 0;
        for pool in &self.pools {
            let flags = vk::DescriptorPoolResetFlags::empty();
            // SAFETY: the commands that used the sets have finished.
            unsafe { self.gpu.raw.reset_descriptor_pool(*pool, flags) }
                .map_err(|code| self.gpu.failed("vkResetDescriptorPool", code))?;
        }
        Ok(())
    }

    /// Allocates a set for the kernel's bindings.
    pub(crate) fn allocate(&mut self, kernel: &Kernel) -> Result<vk::DescriptorSet> {
        let layouts = [kernel.set_layout];
        loop {
            let is_new_pool = self.current == self.pools.len();
            if is_new_pool {
                self.add_pool(kernel.bindings + usize::from(kernel.polls))?;
            }
            let info = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(self.pools[self.current])
                .set_layouts(&layouts);
            // SAFETY: `&mut self` is exclusive access to the pool; the layout is not for push
            // descriptors.
            match unsafe { self.gpu.raw.allocate_descriptor_sets(&info) } {
                Ok(sets) => return Ok(sets[0]),
                Err(vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL)
                    if !is_new_pool =>
                {
                    self.current += 1;
                }
                Err(code) => return Err(self.gpu.failed("vkAllocateDescriptorSets", code)),
            }
        }
    }

    /// Creates a pool for at least one set with this number of bindings.
    fn add_pool(&mut self, bindings: usize) -> Result<()> {
        let count = DESCRIPTORS_PER_POOL.max(u32::try_from(bindings).unwrap_or(u32::MAX));
        let sizes = [vk::DescriptorType::STORAGE_BUFFER, vk::DescriptorType::UNIFORM_BUFFER]
            .map(|ty| vk::DescriptorPoolSize::default().ty(ty).descriptor_count(count));
        let info =
            vk::DescriptorPoolCreateInfo::default().max_sets(SETS_PER_POOL).pool_sizes(&sizes);
        // SAFETY: a creation without preconditions.
        let pool = unsafe { self.gpu.raw.create_descriptor_pool(&info, None) }
            .map_err(|code| self.gpu.failed("vkCreateDescriptorPool", code))?;
        self.pools.push(pool);
        Ok(())
    }
}

impl Drop for DescriptorSets {
    fn drop(&mut self) {
        if self.gpu.is_abandoned() {
            return;
        }
        for pool in &self.pools {
            // SAFETY: dropped with the commands that used the sets.
            unsafe { self.gpu.raw.destroy_descriptor_pool(*pool, None) };
        }
    }
}
