//! Allocations: buffers of the device, and host memory for results.

use std::sync::{Arc, Mutex};

use wgpu::{BufferDescriptor, BufferUsages};

use super::device::Gpu;
use crate::api::error::{GpuError, OutOfMemoryError, Result};
use crate::backend::describe_buffer;
use crate::backend::shared::command_checks::{check_range, host_access_problem};
use crate::backend::shared::locks::lock;
use crate::core::command::BufferRange;
use crate::core::driver::MemoryKind;

/// Sizes of buffers are multiples of this many bytes, so that bindings can be rounded up to it.
pub(super) const GRANULARITY: u64 = 16;

/// Bytes that WebGPU copies and binds at least, and that their offsets are multiples of.
pub(super) const WORD: u64 = 4;

/// An allocation.
pub(super) struct Block {
    pub(super) content: Content,
    pub(super) size: u64,
    pub(super) kind: MemoryKind,
}

/// Where an allocation is.
pub(super) enum Content {
    /// A buffer of the device: `Device` and `Upload` memory.
    Buffer(wgpu::Buffer),
    /// `Readback` memory: host memory to which finished submissions copy their results.
    Host(Mutex<Vec<u8>>),
}

impl Block {
    /// Allocates memory.
    pub(super) fn new(gpu: &Arc<Gpu>, kind: MemoryKind, size: u64, label: &str) -> Result<Self> {
        let content = match kind {
            MemoryKind::Readback => Content::Host(Mutex::new(host_memory(gpu, size, label)?)),
            MemoryKind::Device | MemoryKind::Upload => {
                let usage = BufferUsages::STORAGE
                    | BufferUsages::UNIFORM
                    | BufferUsages::INDIRECT
                    | BufferUsages::COPY_SRC
                    | BufferUsages::COPY_DST;
                Content::Buffer(buffer(gpu, usage, size, label)?)
            }
        };
        Ok(Self { content, size, kind })
    }

    /// Returns the buffer of a range, which must be within it.
    pub(super) fn buffer(&self, range: BufferRange) -> Result<&wgpu::Buffer, String> {
        check_range(range, self.size)?;
        match &self.content {
            Content::Buffer(buffer) => Ok(buffer),
            Content::Host(_) => Err(format!("{range:?} is readback memory, not a buffer")),
        }
    }

    /// Copies bytes into `Upload` memory.
    pub(super) fn write(&self, gpu: &Gpu, offset: u64, data: &[u8]) -> Result<()> {
        let Content::Buffer(buffer) = &self.content else {
            return Err(self.host_access_error(gpu, "write", offset, data.len()));
        };
        let fits = offset.checked_add(data.len() as u64).is_some_and(|end| end <= self.size);
        if self.kind != MemoryKind::Upload || !fits || !offset.is_multiple_of(WORD) {
            return Err(self.host_access_error(gpu, "write", offset, data.len()));
        }
        let (words, rest) = data.split_at(data.len() / WORD as usize * WORD as usize);
        gpu.call("Queue::write_buffer", || {
            if !words.is_empty() {
                gpu.queue.write_buffer(buffer, offset, words);
            }
            if !rest.is_empty() {
                // The ring that the core suballocates has no other data in this word.
                let mut word = [0; WORD as usize];
                word[..rest.len()].copy_from_slice(rest);
                gpu.queue.write_buffer(buffer, offset + words.len() as u64, &word);
            }
        })
    }

    /// Copies bytes out of `Readback` memory.
    pub(super) fn read(&self, gpu: &Gpu, offset: u64, out: &mut [u8]) -> Result<()> {
        let error = || self.host_access_error(gpu, "read", offset, out.len());
        let Content::Host(bytes) = &self.content else { return Err(error()) };
        let bytes = lock(bytes);
        let start = usize::try_from(offset).map_err(|_| error())?;
        let range = start..start.saturating_add(out.len());
        let Some(source) = bytes.get(range) else { return Err(error()) };
        out.copy_from_slice(source);
        Ok(())
    }

    /// Stores results in `Readback` memory, if they fit.
    pub(super) fn store(&self, offset: u64, data: &[u8]) {
        if let Content::Host(bytes) = &self.content
            && let Ok(start) = usize::try_from(offset)
            && let Some(to) = lock(bytes).get_mut(start..start + data.len())
        {
            to.copy_from_slice(data);
        }
    }

    fn host_access_error(
        &self,
        gpu: &Gpu,
        call: &'static str,
        offset: u64,
        len: usize,
    ) -> GpuError {
        let needed = if call == "write" { MemoryKind::Upload } else { MemoryKind::Readback };
        let why = host_access_problem((self.kind, self.size), call, needed, offset, len);
        gpu.defect_error(call, why)
    }
}

/// Creates a buffer. A size above the device's limit is an error of wgpu; here it is out of memory.
pub(super) fn buffer(
    gpu: &Gpu,
    usage: BufferUsages,
    size: u64,
    label: &str,
) -> Result<wgpu::Buffer> {
    if size > gpu.info.limits.max_buffer_size {
        return Err(out_of_memory(gpu, size, label));
    }
    let label = Some(label).filter(|label| !label.is_empty());
    let size = size.next_multiple_of(GRANULARITY);
    let descriptor = BufferDescriptor { label, size, usage, mapped_at_creation: false };
    let created = gpu.call("Device::create_buffer", || gpu.device.create_buffer(&descriptor));
    created.map_err(|error| match error {
        GpuError::OutOfMemory(_) => out_of_memory(gpu, size, label.unwrap_or_default()),
        other => other,
    })
}

/// Allocates zeroed host memory.
fn host_memory(gpu: &Gpu, size: u64, label: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let reserved = usize::try_from(size).is_ok_and(|size| bytes.try_reserve_exact(size).is_ok());
    if !reserved {
        return Err(out_of_memory(gpu, size, label));
    }
    bytes.resize(size as usize, 0);
    Ok(bytes)
}

fn out_of_memory(gpu: &Gpu, size: u64, label: &str) -> GpuError {
    GpuError::OutOfMemory(OutOfMemoryError {
        function: None,
        device: gpu.info.name.clone(),
        requested: Some(size),
        label: describe_buffer(label),
        detail: "wgpu does not report how much is free".to_owned(),
        help: "drop buffers that are no longer used, or work in parts".to_owned(),
    })
}
