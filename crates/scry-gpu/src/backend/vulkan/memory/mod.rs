//! Allocations: each is a buffer, in memory that `allocator` suballocates.

mod allocator;
mod buffer_cache;
mod free_ranges;

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use ash::vk;

use self::allocator::{Allocation, AllocationError, Allocator, BlockSizes, LiveAllocation};
use self::buffer_cache::BufferCache;
use super::device::Gpu;
use super::lock;
use crate::api::error::{GpuError, OutOfMemoryError, Result, TooLargeError};
use crate::api::info::DeviceKind;
use crate::backend::describe_buffer;
use crate::backend::shared::command_checks::host_access_problem;
use crate::core::driver::MemoryKind;

const MIB: u64 = 1 << 20;

/// Minimum size in bytes of upload allocations in host memory. Smaller ones are parameters, which
/// kernels read: they are in device memory that is host-visible, if there is any. Larger ones are
/// copied to the device, which is faster through host memory: the device's DMA engine reads that at
/// 50 GB/s over PCIe 5, whereas several host threads write to device memory at 31 GB/s.
const STAGING_THRESHOLD: u64 = MIB;

/// The device's memory.
pub(super) struct Heap {
    allocator: Mutex<ManuallyDrop<Allocator>>,
    /// Unused buffers in device memory.
    idle: Mutex<BufferCache<BackedBuffer>>,
    gpu: Arc<Gpu>,
}

/// A buffer and its memory.
pub(super) struct Block {
    pub(super) buffer: vk::Buffer,
    /// Requested bytes.
    pub(super) size: u64,
    /// Bytes of the buffer, at least `size`.
    capacity: u64,
    allocation: ManuallyDrop<Allocation>,
    kind: MemoryKind,
    heap: Arc<Heap>,
}

/// A buffer and the memory that it is bound to.
type BackedBuffer = (vk::Buffer, Allocation);

impl Heap {
    /// Creates an empty heap.
    pub(super) fn new(gpu: &Arc<Gpu>) -> Arc<Self> {
        let allocator = Allocator::new(gpu, block_sizes(gpu.info.kind));
        Arc::new(Self {
            allocator: Mutex::new(ManuallyDrop::new(allocator)),
            idle: Mutex::new(BufferCache::new(cache_limit(gpu.info.kind, gpu.info.memory))),
            gpu: Arc::clone(gpu),
        })
    }

    /// Creates a buffer of `size` bytes with memory of the given kind, usable for every purpose.
    pub(super) fn allocate(
        self: &Arc<Self>,
        kind: MemoryKind,
        size: u64,
        label: &str,
    ) -> Result<Block> {
        let limit = self.gpu.info.limits.max_buffer_size;
        if size > limit {
            return Err(self.too_large(size, limit, label));
        }
        if kind == MemoryKind::Device {
            let idle = lock(&self.idle).take(size);
            if let Some((capacity, (buffer, allocation))) = idle {
                lock(&self.allocator).set_label(&allocation, label);
                let allocation = ManuallyDrop::new(allocation);
                self.gpu.set_name(buffer, label);
                let heap = Arc::clone(self);
                return Ok(Block { buffer, size, capacity, allocation, kind, heap });
            }
        }
        self.allocate_new(kind, size, label)
    }

    fn allocate_new(self: &Arc<Self>, kind: MemoryKind, size: u64, label: &str) -> Result<Block> {
        // Rounded up, so that kernels and fills of 32-bit words reach the last byte.
        let capacity = size.next_multiple_of(16);
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::UNIFORM_BUFFER
            | vk::BufferUsageFlags::INDIRECT_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        let info = vk::BufferCreateInfo::default().size(capacity).usage(usage);
        // SAFETY: the size is within the device's limit, and not zero.
        let buffer = unsafe { self.gpu.raw.create_buffer(&info, None) };
        let buffer = buffer.map_err(|code| self.buffer_error(size, label, code))?;
        let mut allocation = self.allocate_memory(buffer, kind, label);
        if allocation.is_err() && self.trim() {
            allocation = self.allocate_memory(buffer, kind, label);
        }
        let block = allocation.map(|allocation| Block {
            buffer,
            size,
            capacity,
            allocation: ManuallyDrop::new(allocation),
            kind,
            heap: Arc::clone(self),
        });
        if block.is_err() {
            // SAFETY: the buffer was just created, and nothing uses it.
            unsafe { self.gpu.raw.destroy_buffer(buffer, None) };
        }
        let mut block = block.map_err(|error| self.allocation_error(size, label, error))?;
        if let Err(error) = block.bind() {
            // With a capacity of 0 the drop destroys the unbound buffer instead of caching it.
            block.capacity = 0;
            return Err(error);
        }
        self.gpu.set_name(buffer, label);
        Ok(block)
    }

    /// Empties the cache of unused buffers, and changes its limit in bytes.
    #[cfg(test)]
    pub(super) fn set_cache_limit(&self, limit: u64) {
        self.trim();
        *lock(&self.idle) = BufferCache::new(limit);
    }

    /// Returns the bytes of live allocations.
    #[cfg(test)]
    pub(super) fn allocated(&self) -> u64 {
        lock(&self.allocator).live().iter().map(|it| it.size).sum()
    }

    /// Allocates memory for a buffer.
    fn allocate_memory(
        &self,
        buffer: vk::Buffer,
        kind: MemoryKind,
        label: &str,
    ) -> Result<Allocation, AllocationError> {
        // SAFETY: the buffer is the device's.
        let wanted = unsafe { self.gpu.raw.get_buffer_memory_requirements(buffer) };
        let is_parameter = kind == MemoryKind::Upload && wanted.size < STAGING_THRESHOLD;
        let flags: &[vk::MemoryPropertyFlags] = match kind {
            MemoryKind::Device => &[vk::MemoryPropertyFlags::DEVICE_LOCAL],
            _ if is_parameter => {
                &[host_memory() | vk::MemoryPropertyFlags::DEVICE_LOCAL, host_memory()]
            }
            _ => &[host_memory() | vk::MemoryPropertyFlags::HOST_CACHED, host_memory()],
        };
        lock(&self.allocator).allocate(&wanted, flags, label)
    }

    /// Destroys all cached buffers; returns whether there were any.
    fn trim(&self) -> bool {
        let idle = lock(&self.idle).drain();
        let had_any = !idle.is_empty();
        idle.into_iter().for_each(|buffer| self.destroy(buffer));
        had_any
    }

    /// Destroys a buffer that no unfinished submission uses.
    fn destroy(&self, (buffer, allocation): BackedBuffer) {
        // SAFETY: by the contract of `Driver` no unfinished submission uses the buffer, and its
        // owner passed it by value.
        unsafe { self.gpu.raw.destroy_buffer(buffer, None) };
        lock(&self.allocator).free(allocation);
    }

    fn too_large(&self, size: u64, limit: u64, label: &str) -> GpuError {
        GpuError::TooLarge(TooLargeError {
            label: None,
            function: None,
            what: format!("{} of memory", describe_buffer(label)),
            requested: format!("{size} bytes"),
            device: self.gpu.info.name.clone(),
            limit: format!("{limit} bytes"),
            limit_name: "max_buffer_size",
            help: "divide the data among several buffers".to_owned(),
        })
    }

    /// Returns the error for a buffer that could not be created.
    fn buffer_error(&self, size: u64, label: &str, code: vk::Result) -> GpuError {
        match code {
            vk::Result::ERROR_OUT_OF_HOST_MEMORY | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => {
                self.out_of_memory(size, label)
            }
            code => self.gpu.failed("vkCreateBuffer", code),
        }
    }

    /// Returns the error for memory that could not be allocated.
    fn allocation_error(&self, size: u64, label: &str, error: AllocationError) -> GpuError {
        let out_of_memory =
            [vk::Result::ERROR_OUT_OF_DEVICE_MEMORY, vk::Result::ERROR_OUT_OF_HOST_MEMORY];
        match error {
            AllocationError::HeapTooSmall => self.out_of_memory(size, label),
            AllocationError::Call(_, code) if out_of_memory.contains(&code) => {
                self.out_of_memory(size, label)
            }
            AllocationError::Call(call, code) => self.gpu.failed(call, code),
            AllocationError::NoMemoryType => {
                let why = "the device has no memory type for a buffer of this kind";
                self.gpu.defect_error("vkAllocateMemory", why.to_owned())
            }
        }
    }

    /// Returns the error for exhausted memory, with the budget and the largest allocations.
    pub(super) fn out_of_memory(&self, size: u64, label: &str) -> GpuError {
        let memory = self.gpu.info.memory;
        let budget = match self.gpu.memory_budget() {
            Some(budget) => {
                format!("this process may allocate {budget} of the device's {memory} bytes")
            }
            None => format!("the device has {memory} bytes"),
        };
        let allocator = lock(&self.allocator);
        let live = allocator.live();
        let bytes: u64 = live.iter().map(|it| it.size).sum();
        let largest = match live.is_empty() {
            true => String::new(),
            false => format!(", the largest: {}", largest(&live).join(", ")),
        };
        GpuError::OutOfMemory(OutOfMemoryError {
            function: None,
            device: self.gpu.info.name.clone(),
            requested: Some(size),
            label: describe_buffer(label),
            detail: format!(
                "{budget}, and {} allocations hold {} bytes{largest}",
                live.len(),
                bytes
            ),
            help: "drop buffers that are no longer used, or work in parts".to_owned(),
        })
    }
}

/// Returns the block sizes of memory that is not host-visible, and of memory that is.
fn block_sizes(kind: DeviceKind) -> [BlockSizes; 2] {
    match kind {
        // The system commits pages at the first access: large blocks cost nothing, and new buffers
        // reuse committed pages.
        DeviceKind::Software => [(256 * MIB, 256 * MIB); 2],
        _ => [(32 * MIB, 256 * MIB), (16 * MIB, 64 * MIB)],
    }
}

/// Returns the flags of host-visible coherent memory, which needs no flush.
fn host_memory() -> vk::MemoryPropertyFlags {
    vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT
}

/// Formats the five largest allocations.
fn largest(live: &[&LiveAllocation]) -> Vec<String> {
    let mut remaining = live.to_vec();
    let mut texts = Vec::new();
    while let Some((at, it)) = remaining.iter().enumerate().rev().max_by_key(|(_, it)| it.size) {
        texts.push(format!("{} ({} bytes)", describe_buffer(&it.label), it.size));
        remaining.remove(at);
        if texts.len() == 5 {
            break;
        }
    }
    texts
}

/// Returns the size limit of the buffer cache in bytes.
fn cache_limit(kind: DeviceKind, memory: u64) -> u64 {
    match kind {
        // Allocating is cheap: the allocator keeps large blocks.
        DeviceKind::Software => 0,
        _ => memory / 16,
    }
}

impl Block {
    fn bind(&self) -> Result<()> {
        // SAFETY: buffer and memory are new, and the memory was allocated for this buffer.
        let bound = unsafe {
            self.heap.gpu.raw.bind_buffer_memory(
                self.buffer,
                self.allocation.memory,
                self.allocation.offset,
            )
        };
        bound.map_err(|code| self.heap.gpu.failed("vkBindBufferMemory", code))
    }

    /// Copies bytes to the allocation.
    pub(super) fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let start = self.mapped(MemoryKind::Upload, "write", offset, data.len())?;
        // SAFETY: `mapped` checked that the range is within the mapping, which outlives `self`; by
        // the contract of `Driver` nothing else accesses the range meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), start, data.len()) };
        Ok(())
    }

    /// Writes the first word atomically; kernels may read it at the same time.
    pub(super) fn signal(&self, word: u32) -> Result<()> {
        let start = self.mapped(MemoryKind::Upload, "cancel", 0, size_of::<u32>())?;
        // SAFETY: `mapped` checked that the word is within the mapping, which outlives `self`; a
        // buffer's memory is aligned to 16 bytes, and the host accesses it only here, atomically.
        let shared = unsafe { AtomicU32::from_ptr(start.cast()) };
        // An exchange: a store could stay in a write-combining buffer of the CPU for a while.
        shared.swap(word, Ordering::SeqCst);
        Ok(())
    }

    /// Copies bytes from the allocation.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let start = self.mapped(MemoryKind::Readback, "read", offset, out.len())?;
        // SAFETY: as in `write`; the device's writes were made visible to the host.
        unsafe { std::ptr::copy_nonoverlapping(start, out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    /// Returns the host address of a range. An error unless the range is within the allocation, and
    /// the allocation of this kind.
    fn mapped(
        &self,
        kind: MemoryKind,
        call: &'static str,
        offset: u64,
        len: usize,
    ) -> Result<*mut u8> {
        let end = offset.checked_add(len as u64);
        let mapping = self.allocation.mapped();
        match (mapping, end) {
            (Some(mapping), Some(end)) if end <= self.size && self.kind == kind => {
                // SAFETY: the offset is within the mapping, so within the address space.
                Ok(unsafe { mapping.add(offset as usize) }.as_ptr())
            }
            _ => {
                let why = host_access_problem((self.kind, self.size), call, kind, offset, len);
                Err(self.heap.gpu.defect_error(call, why))
            }
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.heap.gpu.is_abandoned() {
            return;
        }
        // SAFETY: the allocation is taken once, here.
        let bound = (self.buffer, unsafe { ManuallyDrop::take(&mut self.allocation) });
        let evicted = match self.kind {
            MemoryKind::Device => lock(&self.heap.idle).insert(self.capacity, bound),
            MemoryKind::Upload | MemoryKind::Readback => vec![bound],
        };
        evicted.into_iter().for_each(|bound| self.heap.destroy(bound));
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        if self.gpu.is_abandoned() {
            return;
        }
        self.trim();
        // SAFETY: every block holds an `Arc` of `self`, so none is left; the allocator is dropped
        // once, here.
        unsafe { ManuallyDrop::drop(&mut lock(&self.allocator)) };
    }
}
