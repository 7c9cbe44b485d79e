//! Resolves launches: their bind groups, and copies of what a launch may not bind directly.

use scry_ir::{BufferBindingType, LaunchBlock};
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindingResource, Buffer, BufferBinding,
    BufferSize, BufferUsages, ComputePipeline,
};

use super::encode::{Encoder, Operation};
use super::word_kernels::{Span, uniform};
use crate::api::error::Result;
use crate::backend::shared::command_checks::{check_arguments, no_kernel};
use crate::backend::wgpu::compile::Kernel;
use crate::backend::wgpu::memory::{self, GRANULARITY, WORD};
use crate::core::command::{BoundBuffer, BufferRange, Dispatch, Groups};
use crate::core::driver::MemoryId;

/// A launch with resolved resources.
pub(in crate::backend::wgpu) struct Launch {
    pub(super) pipeline: ComputePipeline,
    pub(super) bind_group: Option<BindGroup>,
    pub(super) groups: Workgroups,
    /// Native immediates; whole words.
    pub(super) immediates: Vec<u8>,
    /// Whether it is a dispatch of the core, which timed submissions measure.
    pub(super) is_dispatch: bool,
}

/// Workgroups of a launch.
pub(super) enum Workgroups {
    Direct([u32; 3]),
    /// A native grid in a buffer, at an offset.
    Indirect(Buffer, u64),
}

impl<'a> Encoder<'a> {
    /// Resolves a launch, and pushes it after the copies that it needs.
    pub(super) fn launch(&mut self, dispatch: &'a Dispatch) -> Result<()> {
        let call = "ComputePass::dispatch_workgroups";
        let defect = |why: String| self.gpu.defect_error(call, why);
        let found = self.tables.kernels.get(dispatch.kernel);
        let kernel = found.ok_or_else(|| defect(no_kernel(dispatch.kernel)))?;
        check_arguments(dispatch, (kernel.bindings.len(), kernel.immediates)).map_err(defect)?;
        if let Some(why) = kernel.verdict.rejection() {
            return Err(self.gpu.rejected(why));
        }
        let bind_group = self.bind_group(kernel, dispatch)?;
        let groups = match &dispatch.groups {
            Groups::Direct(groups) => Workgroups::Direct(*groups),
            Groups::Indirect(grid) => {
                let (buffer, offset) = self.grid(dispatch, **grid)?;
                Workgroups::Indirect(buffer, offset)
            }
        };
        let mut immediates = Vec::new();
        if kernel.has_native_immediates() {
            immediates.extend_from_slice(&dispatch.immediates);
            immediates.resize(immediates.len().next_multiple_of(WORD as usize), 0);
        }
        self.operations.push(Operation::Launch(Launch {
            pipeline: kernel.pipeline.clone(),
            bind_group: Some(bind_group),
            groups,
            immediates,
            is_dispatch: true,
        }));
        Ok(())
    }

    /// Returns the buffer and the offset of a native grid.
    fn grid(&mut self, dispatch: &Dispatch, grid: BufferRange) -> Result<(Buffer, u64)> {
        if grid.size != Groups::SIZE || !grid.offset.is_multiple_of(WORD) {
            let why = format!("{} bytes at {} are not a grid", grid.size, grid.offset);
            return Err(self.gpu.defect_error("ComputePass::dispatch_workgroups_indirect", why));
        }
        if writes(dispatch, grid.memory) {
            return Ok((self.scratch_copy(grid)?, 0));
        }
        Ok((self.span(grid)?.buffer.clone(), grid.offset))
    }

    /// Returns the bind group of a launch. Those of launches with equal bindings are shared.
    fn bind_group(&mut self, kernel: &'a Kernel, dispatch: &'a Dispatch) -> Result<BindGroup> {
        let conflicts = dispatch.bindings.iter().any(|bound| is_conflict(dispatch, bound));
        let is_shareable = kernel.launch_block.is_none() && !conflicts;
        if is_shareable && let Some(group) = self.cached_groups.find(dispatch) {
            return Ok(group);
        }
        let mut bound = Vec::with_capacity(dispatch.bindings.len() + 1);
        for (binding, ty) in dispatch.bindings.iter().zip(&kernel.bindings) {
            bound.push(self.binding(dispatch, binding, *ty)?);
        }
        if let Some(block) = &kernel.launch_block {
            let content = launch_block(block, dispatch);
            bound.push((uniform(self.gpu, &content)?, 0, content.len() as u64));
        }
        let resource = |(buffer, offset, size): &'_ (Buffer, u64, u64)| {
            let size = BufferSize::new(*size);
            (buffer.clone(), *offset, size)
        };
        let bound: Vec<_> = bound.iter().map(resource).collect();
        let entries: Vec<_> = (0..)
            .zip(&bound)
            .map(|(binding, (buffer, offset, size))| BindGroupEntry {
                binding,
                resource: BindingResource::Buffer(BufferBinding {
                    buffer,
                    offset: *offset,
                    size: *size,
                }),
            })
            .collect();
        let (device, layout) = (&self.gpu.device, &kernel.layout);
        let descriptor = BindGroupDescriptor { label: None, layout, entries: &entries };
        let group =
            self.gpu.call("Device::create_bind_group", || device.create_bind_group(&descriptor))?;
        if is_shareable {
            self.cached_groups.insert(dispatch, &group);
        }
        Ok(group)
    }

    /// Returns buffer, offset and size of a binding. The size is rounded up to what WebGPU binds:
    /// kernels access no bytes after the range.
    fn binding(
        &mut self,
        dispatch: &Dispatch,
        bound: &BoundBuffer,
        ty: BufferBindingType,
    ) -> Result<(Buffer, u64, u64)> {
        let unit = match ty {
            BufferBindingType::Uniform => GRANULARITY,
            BufferBindingType::Storage => WORD,
        };
        let size = bound.range.size.next_multiple_of(unit);
        if is_conflict(dispatch, bound) {
            return Ok((self.scratch_copy(bound.range)?, 0, size));
        }
        Ok((self.span(bound.range)?.buffer.clone(), bound.range.offset, size))
    }

    /// Pushes a copy of a range that the launch reads to new memory; returns that memory. WebGPU
    /// permits no launch to bind a buffer both for reading and for writing, even if the ranges are
    /// disjoint, as the core has checked.
    fn scratch_copy(&mut self, range: BufferRange) -> Result<Buffer> {
        let src = self.span(range)?.words();
        let usage = BufferUsages::STORAGE
            | BufferUsages::UNIFORM
            | BufferUsages::INDIRECT
            | BufferUsages::COPY_DST;
        let scratch = memory::buffer(self.gpu, usage, src.size, "copy of a binding")?;
        let dst = Span { buffer: &scratch, offset: 0, size: src.size };
        self.operations.push(Operation::copy(src, dst));
        Ok(scratch)
    }
}

/// Returns whether a binding is only read, and another one writes the same allocation.
fn is_conflict(dispatch: &Dispatch, bound: &BoundBuffer) -> bool {
    !bound.writes && writes(dispatch, bound.range.memory)
}

fn writes(dispatch: &Dispatch, memory: MemoryId) -> bool {
    dispatch.bindings.iter().any(|other| other.writes && other.range.memory == memory)
}

/// Returns the content of a kernel's launch block.
fn launch_block(block: &LaunchBlock, dispatch: &Dispatch) -> Vec<u8> {
    let mut content = vec![0; block.size() as usize];
    for (word, hidden) in content.chunks_exact_mut(4).zip(&block.lengths) {
        let bound = dispatch.bindings.get(hidden.binding as usize);
        let size = bound.map_or(0, |bound| bound.range.size);
        let elements = size.saturating_sub(hidden.offset.into()) / u64::from(hidden.stride.max(1));
        word.copy_from_slice(&(elements as u32).to_le_bytes());
    }
    if block.immediates > 0 {
        let start = block.immediates_offset as usize;
        content[start..start + dispatch.immediates.len()].copy_from_slice(&dispatch.immediates);
    }
    content
}
