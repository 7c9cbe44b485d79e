//! Kernels for fills and copies that WebGPU has no commands for.

use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindingResource, Buffer, BufferBinding,
    BufferSize, BufferUsages, ComputePipeline, ComputePipelineDescriptor,
    PipelineCompilationOptions, ShaderModuleDescriptor, ShaderSource,
};

use super::encode::Operation;
use super::launch::{Launch, Workgroups};
use crate::api::error::Result;
use crate::backend::wgpu::device::Gpu;
use crate::backend::wgpu::memory::{self, GRANULARITY, WORD};

/// Invocations of a workgroup.
const INVOCATIONS: u64 = 256;

/// Bytes that one launch fills or copies at most: it has fewer workgroups than WebGPU guarantees,
/// and its window is smaller than the smallest limit of bindings.
pub(in crate::backend::wgpu) const MAX_BYTES: u64 = 32 << 20;

/// The pipelines.
pub(in crate::backend::wgpu) struct WordKernels {
    copy: ComputePipeline,
    fill: ComputePipeline,
}

/// A range of a buffer.
#[derive(Clone, Copy)]
pub(super) struct Span<'a> {
    pub(super) buffer: &'a Buffer,
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl<'a> Span<'a> {
    /// Returns a part of the range.
    pub(super) fn part(self, start: u64, size: u64) -> Self {
        Self { offset: self.offset + start, size, ..self }
    }

    /// Returns whether the range consists of whole words.
    pub(super) fn is_words(&self) -> bool {
        self.offset.is_multiple_of(WORD) && self.size.is_multiple_of(WORD)
    }

    /// Returns the smallest range of whole words that contains this one.
    pub(super) fn words(self) -> Self {
        let offset = self.offset / WORD * WORD;
        Self { offset, size: (self.offset + self.size).next_multiple_of(WORD) - offset, ..self }
    }

    /// Returns the parts of at most `max_size` bytes.
    pub(super) fn parts(self, max_size: u64) -> impl Iterator<Item = (u64, Self)> {
        let starts = (0..self.size).step_by(max_size as usize);
        starts.map(move |start| (start, self.part(start, max_size.min(self.size - start))))
    }

    /// Returns a binding of the words of the range, and the first byte of the range in it.
    fn window(self, alignment: u64) -> (BufferBinding<'a>, u64) {
        let offset = self.offset / alignment * alignment;
        let end = (self.offset + self.size).next_multiple_of(WORD);
        let size = BufferSize::new(end - offset);
        (BufferBinding { buffer: self.buffer, offset, size }, self.offset - offset)
    }
}

impl WordKernels {
    /// Compiles the kernels.
    pub(super) fn new(gpu: &Gpu) -> Result<Self> {
        Ok(Self {
            copy: pipeline(gpu, include_str!("words.wgsl"))?,
            fill: pipeline(gpu, include_str!("fill.wgsl"))?,
        })
    }

    /// Returns the launch that fills at most [`MAX_BYTES`] with a pattern.
    pub(super) fn fill(&self, gpu: &Gpu, dst: Span<'_>, pattern: u32) -> Result<Operation> {
        let (window, first) = dst.window(gpu.info.binding_alignment);
        let words = [first / WORD, dst.size / WORD, pattern.into()];
        launch(gpu, &self.fill, words, &[window], dst.size / WORD)
    }

    /// Returns the launch that copies at most [`MAX_BYTES`] between different buffers.
    pub(super) fn copy(&self, gpu: &Gpu, src: Span<'_>, dst: Span<'_>) -> Result<Operation> {
        let (from, src_first) = src.window(gpu.info.binding_alignment);
        let (to, dst_first) = dst.window(gpu.info.binding_alignment);
        let words = dst.words().size / WORD;
        launch(gpu, &self.copy, [src_first, dst_first, dst.size], &[from, to], words)
    }
}

fn pipeline(gpu: &Gpu, source: &str) -> Result<ComputePipeline> {
    gpu.call("Device::create_compute_pipeline", || {
        let source = ShaderSource::Wgsl(source.into());
        let module =
            gpu.device.create_shader_module(ShaderModuleDescriptor { label: None, source });
        gpu.device.create_compute_pipeline(&ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: PipelineCompilationOptions::default(),
            cache: None,
        })
    })
}

/// Returns a launch with at least `invocations` invocations.
fn launch(
    gpu: &Gpu,
    pipeline: &ComputePipeline,
    parameters: [u64; 3],
    windows: &[BufferBinding<'_>],
    invocations: u64,
) -> Result<Operation> {
    let mut bytes = [0; 16];
    for (to, parameter) in bytes.chunks_exact_mut(4).zip(parameters) {
        to.copy_from_slice(&(parameter as u32).to_le_bytes());
    }
    let parameters = uniform(gpu, &bytes)?;
    let buffers =
        std::iter::once(parameters.as_entire_buffer_binding()).chain(windows.iter().cloned());
    let entries: Vec<_> = (0..)
        .zip(buffers)
        .map(|(binding, buffer)| BindGroupEntry {
            binding,
            resource: BindingResource::Buffer(buffer),
        })
        .collect();
    let bind_group = gpu.call("Device::create_bind_group", || -> BindGroup {
        let layout = &pipeline.get_bind_group_layout(0);
        gpu.device.create_bind_group(&BindGroupDescriptor {
            label: None,
            layout,
            entries: &entries,
        })
    })?;
    Ok(Operation::Launch(Launch {
        pipeline: pipeline.clone(),
        bind_group: Some(bind_group),
        groups: Workgroups::Direct([invocations.div_ceil(INVOCATIONS) as u32, 1, 1]),
        immediates: Vec::new(),
        is_dispatch: false,
    }))
}

/// Creates a uniform buffer with this content.
pub(super) fn uniform(gpu: &Gpu, content: &[u8]) -> Result<Buffer> {
    let usage = BufferUsages::UNIFORM | BufferUsages::COPY_DST;
    let mut padded = content.to_vec();
    padded.resize(content.len().next_multiple_of(GRANULARITY as usize), 0);
    let buffer = memory::buffer(gpu, usage, padded.len() as u64, "parameters of a launch")?;
    gpu.call("Queue::write_buffer", || gpu.queue.write_buffer(&buffer, 0, &padded))?;
    Ok(buffer)
}
