//! Encodes steps into a command buffer.

use std::ffi::c_void;
use std::sync::Arc;

use ash::vk;
use scry_ir::SpirvOptions;

use super::command_buffers::Commands;
use super::timing::Timer;
use crate::api::error::Result;
use crate::backend::shared::command_checks::{
    check_arguments, check_range, no_allocation, no_kernel,
};
use crate::backend::vulkan::compile::Kernel;
use crate::backend::vulkan::device::Gpu;
use crate::backend::vulkan::memory::Block;
use crate::core::command::{
    Barrier, BoundBuffer, BufferRange, Command, Dispatch, Groups, Stages, Step,
};
use crate::core::driver::{KernelMark, MemoryMark};
use crate::core::id::Slots;

/// The driver's allocations.
pub(crate) type Blocks = Slots<MemoryMark, Arc<Block>>;
/// The driver's kernels.
pub(crate) type Kernels = Slots<KernelMark, Kernel>;

/// The resources that steps refer to by id.
#[derive(Clone, Copy)]
pub(crate) struct Tables<'a> {
    pub(crate) blocks: &'a Blocks,
    pub(crate) kernels: &'a Kernels,
    /// The buffer of the stop word; null before a kernel polls it.
    pub(crate) stop: vk::Buffer,
}

/// Maximum number of cached descriptor sets. Programs that swap buffers alternate between two or
/// three sets; a larger cache would only cost lookups.
const MAX_CACHED_SETS: usize = 8;

/// Cache of the last descriptor sets written for a command buffer, with the first dispatch that
/// used each. The tables do not change during encoding, so equal ids refer to the same buffers.
#[derive(Default)]
struct SetCache<'s> {
    sets: [Option<(&'s Dispatch, vk::DescriptorSet)>; MAX_CACHED_SETS],
    /// Index of the next entry to replace.
    next: usize,
}

impl<'s> SetCache<'s> {
    /// Returns the set with the bindings of a dispatch, if it is cached.
    fn find(&self, dispatch: &Dispatch) -> Option<vk::DescriptorSet> {
        let is_same = |cached: &Dispatch| {
            cached.kernel == dispatch.kernel && cached.bindings == dispatch.bindings
        };
        self.sets.iter().flatten().find(|(cached, _)| is_same(cached)).map(|(_, set)| *set)
    }

    /// Caches a set in place of the oldest one.
    fn insert(&mut self, dispatch: &'s Dispatch, set: vk::DescriptorSet) {
        self.sets[self.next] = Some((dispatch, set));
        self.next = (self.next + 1) % MAX_CACHED_SETS;
    }
}

/// Encodes steps into a command buffer in the recording state, by `vkCmd*` calls.
pub(crate) struct Encoder<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) tables: Tables<'a>,
    pub(crate) commands: &'a mut Commands,
    pub(crate) timer: Option<&'a Timer>,
    /// Scratch memory for the bindings of one dispatch, reused between calls.
    pub(crate) bindings: &'a mut Vec<vk::DescriptorBufferInfo>,
}

impl<'a> Encoder<'a> {
    /// Encodes the steps.
    pub(crate) fn encode(&mut self, steps: &[Step]) -> Result<()> {
        if let Some(timer) = self.timer {
            timer.reset(self.commands.buffer);
        }
        let mut previous = None;
        let mut cached_sets = SetCache::default();
        let mut dispatches = 0;
        for step in steps {
            match step {
                Step::Barrier(barrier) => self.barrier(*barrier),
                Step::Run(Command::Fill { dst, pattern }) => self.fill(*dst, *pattern)?,
                Step::Run(Command::Copy { src, dst }) => self.copy(*src, *dst)?,
                Step::Run(Command::Dispatch(dispatch)) => {
                    self.write_timestamp(dispatches * 2);
                    self.dispatch(dispatch, previous, &mut cached_sets)?;
                    previous = Some(dispatch);
                    self.write_timestamp(dispatches * 2 + 1);
                    dispatches += 1;
                }
            }
        }
        Ok(())
    }

    fn write_timestamp(&self, index: u32) {
        if let Some(timer) = self.timer {
            timer.write_timestamp(self.commands.buffer, index);
        }
    }

    fn barrier(&self, barrier: Barrier) {
        let (from, writes) = source_masks(barrier.before);
        let (to, accesses) = destination_masks(barrier.after);
        if from.is_empty() || to.is_empty() {
            return;
        }
        let memory =
            [vk::MemoryBarrier::default().src_access_mask(writes).dst_access_mask(accesses)];
        let flags = vk::DependencyFlags::empty();
        // SAFETY: the command buffer is being recorded.
        unsafe {
            self.gpu.raw.cmd_pipeline_barrier(
                self.commands.buffer,
                from,
                to,
                flags,
                &memory,
                &[],
                &[],
            );
        }
    }

    fn fill(&self, dst: BufferRange, pattern: u32) -> Result<()> {
        let BufferRange { offset, size, .. } = dst;
        let buffer = self.buffer("vkCmdFillBuffer", dst)?;
        if !(offset.is_multiple_of(4) && size.is_multiple_of(4)) {
            let why = format!("{size} bytes at {offset} are not whole words");
            return Err(self.gpu.defect_error("vkCmdFillBuffer", why));
        }
        let commands = self.commands.buffer;
        // SAFETY: `Self::buffer` checked that the range is in a live buffer.
        unsafe {
            self.gpu.raw.cmd_fill_buffer(commands, buffer, offset, size, pattern);
        }
        Ok(())
    }

    fn copy(&self, src: BufferRange, dst: BufferRange) -> Result<()> {
        let from = self.buffer("vkCmdCopyBuffer", src)?;
        let to = self.buffer("vkCmdCopyBuffer", dst)?;
        let disjoint =
            src.memory != dst.memory || src.end() <= dst.offset || dst.end() <= src.offset;
        if src.size != dst.size || !disjoint {
            let why = format!("{src:?} and {dst:?} differ in size or overlap");
            return Err(self.gpu.defect_error("vkCmdCopyBuffer", why));
        }
        let region = [vk::BufferCopy::default()
            .src_offset(src.offset)
            .dst_offset(dst.offset)
            .size(src.size)];
        let commands = self.commands.buffer;
        // SAFETY: `Self::buffer` checked that both ranges are in live buffers; they do not overlap.
        unsafe { self.gpu.raw.cmd_copy_buffer(commands, from, to, &region) };
        Ok(())
    }

    /// Returns the buffer of a range, which must be within its allocation.
    fn buffer(&self, call: &'static str, range: BufferRange) -> Result<vk::Buffer> {
        let Some(block) = self.tables.blocks.get(range.memory) else {
            return Err(self.gpu.defect_error(call, no_allocation(range.memory)));
        };
        check_range(range, block.size).map_err(|why| self.gpu.defect_error(call, why))?;
        Ok(block.buffer)
    }

    /// Encodes a launch. What the previous launch bound stays bound: copies, fills and barriers do
    /// not change it.
    fn dispatch<'s>(
        &mut self,
        dispatch: &'s Dispatch,
        previous: Option<&Dispatch>,
        cached_sets: &mut SetCache<'s>,
    ) -> Result<()> {
        let kernel = self.kernel(dispatch)?;
        let commands = self.commands.buffer;
        let previous = previous.filter(|previous| previous.kernel == dispatch.kernel);
        if previous.is_none() {
            let (device, point) = (&self.gpu.raw, vk::PipelineBindPoint::COMPUTE);
            // SAFETY: the command buffer is being recorded, and the kernel is alive.
            unsafe { device.cmd_bind_pipeline(commands, point, kernel.pipeline) };
        }
        if previous.is_none_or(|previous| previous.bindings != dispatch.bindings) {
            self.bind(kernel, dispatch, cached_sets)?;
        }
        self.push_immediates(kernel, &dispatch.immediates);
        match &dispatch.groups {
            // SAFETY: pipeline, bindings and immediates are set as the kernel requires; the core
            // checked the number of workgroups.
            Groups::Direct([x, y, z]) => unsafe {
                self.gpu.raw.cmd_dispatch(commands, *x, *y, *z);
            },
            Groups::Indirect(counts) => self.dispatch_indirect(**counts)?,
        }
        Ok(())
    }

    /// Launches the bound kernel on a native grid that an earlier launch wrote. The core's barrier
    /// orders that launch only before the kernel: the grid is read at an earlier pipeline stage.
    fn dispatch_indirect(&self, counts: BufferRange) -> Result<()> {
        let buffer = self.buffer("vkCmdDispatchIndirect", counts)?;
        if counts.size != Groups::SIZE || !counts.offset.is_multiple_of(4) {
            let why = format!("{} bytes at {} are not a grid", counts.size, counts.offset);
            return Err(self.gpu.defect_error("vkCmdDispatchIndirect", why));
        }
        let barriers = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE)
            .dst_access_mask(vk::AccessFlags::INDIRECT_COMMAND_READ)];
        let (from, to) =
            (vk::PipelineStageFlags::COMPUTE_SHADER, vk::PipelineStageFlags::DRAW_INDIRECT);
        let (commands, flags) = (self.commands.buffer, vk::DependencyFlags::empty());
        // SAFETY: as for direct launches. `Self::buffer` checked that the three counts are in a
        // live buffer; every buffer has the usage `INDIRECT_BUFFER`. The kernel that wrote the
        // counts keeps them within the device's limits.
        unsafe {
            let device = &self.gpu.raw;
            device.cmd_pipeline_barrier(commands, from, to, flags, &barriers, &[], &[]);
            device.cmd_dispatch_indirect(commands, buffer, counts.offset);
        }
        Ok(())
    }

    /// Returns the kernel of a dispatch, after checking its bindings and immediates.
    fn kernel(&self, dispatch: &Dispatch) -> Result<&'a Kernel> {
        let defect = |why: String| self.gpu.defect_error("vkCmdDispatch", why);
        let id = dispatch.kernel;
        let kernel = self.tables.kernels.get(id).ok_or_else(|| defect(no_kernel(id)))?;
        check_arguments(dispatch, (kernel.bindings, kernel.immediates)).map_err(defect)?;
        Ok(kernel)
    }

    /// Binds the buffers of a launch, by push descriptors or by a descriptor set.
    fn bind<'s>(
        &mut self,
        kernel: &Kernel,
        dispatch: &'s Dispatch,
        cached_sets: &mut SetCache<'s>,
    ) -> Result<()> {
        if dispatch.bindings.is_empty() && !kernel.polls {
            return Ok(());
        }
        if let (true, Some(push)) = (kernel.pushes, &self.gpu.push) {
            let infos = self.binding_infos(kernel, &dispatch.bindings)?;
            let (commands, template) = (self.commands.buffer, kernel.template);
            // SAFETY: the template reads one info per binding of the kernel, and there are as
            // many; their buffers are alive.
            unsafe {
                push.cmd_push_descriptor_set_with_template(
                    commands,
                    template,
                    kernel.layout,
                    0,
                    infos,
                );
            }
            return Ok(());
        }
        let set = match cached_sets.find(dispatch) {
            Some(set) => set,
            None => {
                let set = self.write_set(kernel, &dispatch.bindings)?;
                cached_sets.insert(dispatch, set);
                set
            }
        };
        let (commands, point) = (self.commands.buffer, vk::PipelineBindPoint::COMPUTE);
        // SAFETY: the set is of the kernel's layout and holds live buffers; nothing updates it
        // before the commands have finished.
        unsafe {
            let device = &self.gpu.raw;
            device.cmd_bind_descriptor_sets(commands, point, kernel.layout, 0, &[set], &[]);
        }
        Ok(())
    }

    /// Allocates a descriptor set with these bindings.
    fn write_set(
        &mut self,
        kernel: &Kernel,
        bindings: &[BoundBuffer],
    ) -> Result<vk::DescriptorSet> {
        let set = self.commands.sets.allocate(kernel)?;
        let infos = self.binding_infos(kernel, bindings)?;
        // SAFETY: the template reads one info per binding of the kernel, and there are as many;
        // their buffers are alive. No command uses the set yet.
        unsafe { self.gpu.raw.update_descriptor_set_with_template(set, kernel.template, infos) };
        Ok(set)
    }

    /// Returns a pointer to the bindings as templates read them, valid until the next call.
    fn binding_infos(
        &mut self,
        kernel: &Kernel,
        bindings: &[BoundBuffer],
    ) -> Result<*const c_void> {
        self.bindings.clear();
        for BoundBuffer { range, .. } in bindings {
            let buffer = self.buffer("vkCmdDispatch", *range)?;
            let info = vk::DescriptorBufferInfo::default()
                .buffer(buffer)
                .offset(range.offset)
                .range(range.size);
            self.bindings.push(info);
        }
        if kernel.polls {
            let stop = vk::DescriptorBufferInfo::default().buffer(self.tables.stop);
            self.bindings.push(stop.range(SpirvOptions::STOP_SIZE.into()));
        }
        Ok(self.bindings.as_ptr().cast())
    }

    fn push_immediates(&self, kernel: &Kernel, immediates: &[u8]) {
        if immediates.is_empty() {
            return;
        }
        let mut padded = Vec::new();
        let words = if immediates.len().is_multiple_of(4) {
            immediates
        } else {
            padded.extend_from_slice(immediates);
            padded.resize(immediates.len().next_multiple_of(4), 0);
            &padded
        };
        let stage = vk::ShaderStageFlags::COMPUTE;
        let commands = self.commands.buffer;
        // SAFETY: the pipeline's layout has a range of exactly this many words.
        unsafe {
            self.gpu.raw.cmd_push_constants(commands, kernel.layout, stage, 0, words);
        }
    }
}

/// Returns the source stages and accesses of a barrier.
fn source_masks(stages: Stages) -> (vk::PipelineStageFlags, vk::AccessFlags) {
    use vk::{AccessFlags as Access, PipelineStageFlags as Stage};
    masks(
        stages,
        (Stage::COMPUTE_SHADER, Access::SHADER_WRITE),
        (Stage::TRANSFER, Access::TRANSFER_WRITE),
        (Stage::HOST, Access::HOST_WRITE),
    )
}

/// Returns the destination stages and accesses of a barrier.
fn destination_masks(stages: Stages) -> (vk::PipelineStageFlags, vk::AccessFlags) {
    use vk::{AccessFlags as Access, PipelineStageFlags as Stage};
    let shader = Access::SHADER_READ | Access::SHADER_WRITE | Access::UNIFORM_READ;
    let transfer = Access::TRANSFER_READ | Access::TRANSFER_WRITE;
    masks(
        stages,
        (Stage::COMPUTE_SHADER, shader),
        (Stage::TRANSFER, transfer),
        (Stage::HOST, Access::HOST_READ),
    )
}

/// Pipeline stages and memory accesses.
type Masks = (vk::PipelineStageFlags, vk::AccessFlags);

fn masks(stages: Stages, compute: Masks, transfer: Masks, host: Masks) -> Masks {
    let all = [(Stages::COMPUTE, compute), (Stages::TRANSFER, transfer), (Stages::HOST, host)];
    let empty = (vk::PipelineStageFlags::empty(), vk::AccessFlags::empty());
    all.into_iter()
        .filter(|(stage, _)| stages.contains(*stage))
        .fold(empty, |all, (_, mask)| (all.0 | mask.0, all.1 | mask.1))
}
