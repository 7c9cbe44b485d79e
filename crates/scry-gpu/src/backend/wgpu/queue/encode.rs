//! Resolves steps to operations that WebGPU has.

use std::sync::Arc;

use wgpu::{BindGroup, BufferUsages};

use super::launch::Launch;
use super::word_kernels::{MAX_BYTES, Span, WordKernels};
use crate::api::error::Result;
use crate::backend::shared::command_checks::no_allocation;
use crate::backend::wgpu::compile::Kernel;
use crate::backend::wgpu::device::Gpu;
use crate::backend::wgpu::memory::{self, Block, Content};
use crate::core::command::{BufferRange, Command, Dispatch, Step};
use crate::core::driver::{KernelMark, MemoryMark};
use crate::core::id::Slots;

/// The resources that steps refer to by id.
#[derive(Clone, Copy)]
pub(in crate::backend::wgpu) struct Tables<'a> {
    pub(in crate::backend::wgpu) blocks: &'a Slots<MemoryMark, Arc<Block>>,
    pub(in crate::backend::wgpu) kernels: &'a Slots<KernelMark, Arc<Kernel>>,
}

/// An operation with resolved resources, which it keeps alive.
pub(in crate::backend::wgpu) enum Operation {
    /// Zeroes words.
    Clear { buffer: wgpu::Buffer, offset: u64, size: u64 },
    /// Copies words between different buffers.
    Copy { src: (wgpu::Buffer, u64), dst: (wgpu::Buffer, u64), size: u64 },
    /// Copies bytes to readback memory.
    Readback(Readback),
    /// Runs a kernel.
    Launch(Launch),
}

/// A copy to readback memory.
pub(in crate::backend::wgpu) struct Readback {
    /// Buffer, and first of the words that contain the bytes.
    pub(super) src: (wgpu::Buffer, u64),
    /// Bytes of these words.
    pub(super) size: u64,
    /// The bytes among them.
    pub(super) bytes: std::ops::Range<usize>,
    /// Destination, and its first byte.
    pub(super) dst: (Arc<Block>, u64),
}

impl Operation {
    /// Copies words between different buffers.
    pub(super) fn copy(src: Span<'_>, dst: Span<'_>) -> Self {
        Self::Copy {
            src: (src.buffer.clone(), src.offset),
            dst: (dst.buffer.clone(), dst.offset),
            size: dst.size,
        }
    }
}

/// Maximum number of cached bind groups: programs that swap buffers alternate between a few.
const MAX_CACHED_GROUPS: usize = 8;

/// The bind groups of the last dispatches. The tables do not change during encoding, so equal ids
/// refer to the same buffers.
#[derive(Default)]
pub(super) struct GroupCache<'s> {
    groups: [Option<(&'s Dispatch, BindGroup)>; MAX_CACHED_GROUPS],
    /// Index of the next entry to replace.
    next: usize,
}

impl<'s> GroupCache<'s> {
    /// Returns the bind group of a dispatch with the same kernel and bindings.
    pub(super) fn find(&self, dispatch: &Dispatch) -> Option<BindGroup> {
        let is_same = |cached: &Dispatch| {
            cached.kernel == dispatch.kernel && cached.bindings == dispatch.bindings
        };
        let found = self.groups.iter().flatten().find(|(cached, _)| is_same(cached));
        found.map(|(_, group)| group.clone())
    }

    /// Caches a bind group in place of the oldest one.
    pub(super) fn insert(&mut self, dispatch: &'s Dispatch, group: &BindGroup) {
        self.groups[self.next] = Some((dispatch, group.clone()));
        self.next = (self.next + 1) % MAX_CACHED_GROUPS;
    }
}

/// The state while steps are resolved.
pub(super) struct Encoder<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) word_kernels: &'a WordKernels,
    pub(super) tables: Tables<'a>,
    pub(super) operations: Vec<Operation>,
    pub(super) cached_groups: GroupCache<'a>,
}

/// Resolves steps.
pub(in crate::backend::wgpu) fn resolve(
    gpu: &Gpu,
    word_kernels: &WordKernels,
    tables: Tables<'_>,
    steps: &[Step],
) -> Result<Vec<Operation>> {
    let operations = Vec::with_capacity(steps.len());
    let cached_groups = GroupCache::default();
    let mut encoder = Encoder { gpu, word_kernels, tables, operations, cached_groups };
    for step in steps {
        match step {
            Step::Barrier(_) => {}
            Step::Run(Command::Fill { dst, pattern }) => encoder.fill(*dst, *pattern)?,
            Step::Run(Command::Copy { src, dst }) => encoder.copy(*src, *dst)?,
            Step::Run(Command::Dispatch(dispatch)) => encoder.launch(dispatch)?,
        }
    }
    Ok(encoder.operations)
}

impl<'a> Encoder<'a> {
    fn block(&self, range: BufferRange) -> Result<&'a Arc<Block>> {
        self.tables
            .blocks
            .get(range.memory)
            .ok_or_else(|| self.gpu.defect_error("Queue::submit", no_allocation(range.memory)))
    }

    /// Returns the bytes of a range, which must be within the buffer of its allocation.
    pub(super) fn span(&self, range: BufferRange) -> Result<Span<'a>> {
        let buffer = self.block(range)?.buffer(range);
        let buffer = buffer.map_err(|why| self.gpu.defect_error("Queue::submit", why))?;
        Ok(Span { buffer, offset: range.offset, size: range.size })
    }

    fn fill(&mut self, dst: BufferRange, pattern: u32) -> Result<()> {
        let dst = self.span(dst)?;
        if !dst.is_words() {
            let why = format!("{} bytes at {} are not whole words", dst.size, dst.offset);
            return Err(self.gpu.defect_error("CommandEncoder::clear_buffer", why));
        }
        if pattern == 0 {
            let Span { buffer, offset, size } = dst;
            self.operations.push(Operation::Clear { buffer: buffer.clone(), offset, size });
            return Ok(());
        }
        for (_, part) in dst.parts(MAX_BYTES) {
            self.operations.push(self.word_kernels.fill(self.gpu, part, pattern)?);
        }
        Ok(())
    }

    fn copy(&mut self, src: BufferRange, dst: BufferRange) -> Result<()> {
        let from = self.span(src)?;
        let is_disjoint =
            src.memory != dst.memory || src.end() <= dst.offset || dst.end() <= src.offset;
        if src.size != dst.size || !is_disjoint {
            let why = format!("{src:?} and {dst:?} differ in size or overlap");
            return Err(self.gpu.defect_error("CommandEncoder::copy_buffer_to_buffer", why));
        }
        let block = self.block(dst)?;
        if let Content::Host(_) = block.content {
            self.readback(from, (block, dst));
            return Ok(());
        }
        let to = self.span(dst)?;
        if src.memory != dst.memory {
            return self.copy_between(from, to);
        }
        // WebGPU copies only between different buffers.
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        let size = from.size.min(MAX_BYTES) + 2 * memory::WORD;
        let scratch = memory::buffer(self.gpu, usage, size, "copy within a buffer")?;
        for (start, part) in from.parts(MAX_BYTES) {
            let words = part.words();
            let copied = Span { buffer: &scratch, offset: 0, size: words.size };
            self.operations.push(Operation::copy(words, copied));
            let copied = copied.part(part.offset - words.offset, part.size);
            self.copy_between(copied, to.part(start, part.size))?;
        }
        Ok(())
    }

    /// Copies between different buffers.
    fn copy_between(&mut self, src: Span<'_>, dst: Span<'_>) -> Result<()> {
        if src.is_words() && dst.is_words() {
            self.operations.push(Operation::copy(src, dst));
            return Ok(());
        }
        for (start, part) in dst.parts(MAX_BYTES) {
            let from = src.part(start, part.size);
            self.operations.push(self.word_kernels.copy(self.gpu, from, part)?);
        }
        Ok(())
    }

    fn readback(&mut self, src: Span<'_>, (block, dst): (&Arc<Block>, BufferRange)) {
        let words = src.words();
        let start = (src.offset - words.offset) as usize;
        self.operations.push(Operation::Readback(Readback {
            src: (words.buffer.clone(), words.offset),
            size: words.size,
            bytes: start..start + src.size as usize,
            dst: (block.clone(), dst.offset),
        }));
    }
}
