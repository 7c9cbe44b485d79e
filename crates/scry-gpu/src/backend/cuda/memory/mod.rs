//! Allocations: device memory from a pool, and pinned host memory.

mod pinned;

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use self::pinned::{FreeBlocks, PinnedBlock};
use super::device::Gpu;
use super::ffi::types::{self, Code, DevicePtr, MemoryPool, PoolAccess, PoolProperties, Stream};
use super::lock;
use crate::api::error::{GpuError, OutOfMemoryError, Result, TooLargeError};
use crate::backend::describe_buffer;
use crate::backend::shared::command_checks::host_access_problem;
use crate::core::driver::MemoryKind;

/// Allocation granularity in bytes: kernels and fills access whole words up to the end.
const GRANULARITY: u64 = 16;

/// The device's memory.
pub(super) struct Heap {
    /// The pool; null if the device does not support pools.
    pool: MemoryPool,
    /// Executes only allocations and frees, and never waits for other streams. Memory is freed when
    /// no work uses it, so every stream may use a new allocation at once.
    stream: Stream,
    free_pinned: Mutex<FreeBlocks>,
    /// Bytes of device memory in live allocations.
    allocated: AtomicU64,
    gpu: Arc<Gpu>,
}

/// An allocation of device memory or of pinned host memory.
pub(super) struct Block {
    /// Its address on the device; a multiple of 256.
    pub(super) address: DevicePtr,
    /// Requested bytes.
    pub(super) size: u64,
    /// Allocated bytes.
    capacity: u64,
    kind: MemoryKind,
    /// The host and device addresses of pinned memory; `None` for device memory.
    pinned: Option<PinnedBlock>,
    heap: Arc<Heap>,
}

impl Heap {
    /// Creates an empty heap.
    pub(super) fn new(gpu: &Arc<Gpu>) -> Result<Arc<Self>> {
        let _current = gpu.current()?;
        // From here on, the drop frees everything.
        let mut heap = Self {
            pool: MemoryPool::NULL,
            stream: Stream::NULL,
            free_pinned: Mutex::default(),
            allocated: AtomicU64::new(0),
            gpu: Arc::clone(gpu),
        };
        if gpu.has_pools {
            heap.make_pool()?;
        }
        Ok(Arc::new(heap))
    }

    /// Returns the bytes of device memory in live allocations.
    #[cfg(test)]
    pub(super) fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Relaxed)
    }

    fn make_pool(&mut self) -> Result<()> {
        let (api, gpu) = (self.gpu.api, &self.gpu);
        let properties = PoolProperties::for_device(gpu.device);
        // SAFETY: the context is current; the driver reads the properties and writes a handle.
        let code = unsafe { (api.mem_pool_create)(&raw mut self.pool, &raw const properties) };
        gpu.check("cuMemPoolCreate", code)?;
        // Freed memory stays in the pool.
        let mut threshold = u64::MAX;
        // SAFETY: the value of this attribute is a `u64`.
        let code = unsafe {
            let (attribute, value) = (types::POOL_RELEASE_THRESHOLD, &raw mut threshold);
            (api.mem_pool_set_attribute)(self.pool, attribute, value.cast::<c_void>())
        };
        gpu.check("cuMemPoolSetAttribute", code)?;
        // SAFETY: the driver writes a handle.
        let code = unsafe { (api.stream_create)(&raw mut self.stream, types::STREAM_NON_BLOCKING) };
        gpu.check("cuStreamCreate", code)
    }

    /// Lets all other devices that can access this one read and write its memory, allocated already
    /// or later.
    pub(super) fn share_with_peers(&self) -> Result<()> {
        if self.pool.is_null() {
            return Ok(());
        }
        let _current = self.gpu.current()?;
        let accesses: Vec<PoolAccess> =
            self.gpu.peers()?.into_iter().map(PoolAccess::read_write).collect();
        if accesses.is_empty() {
            return Ok(());
        }
        let (accesses, count) = (accesses.as_ptr(), accesses.len());
        // SAFETY: the pool is alive; the driver reads `count` descriptions.
        let code = unsafe { (self.gpu.api.mem_pool_set_access)(self.pool, accesses, count) };
        self.gpu.check("cuMemPoolSetAccess", code)
    }

    /// Allocates memory.
    pub(super) fn allocate(
        self: &Arc<Self>,
        kind: MemoryKind,
        size: u64,
        label: &str,
    ) -> Result<Block> {
        let limit = self.gpu.info.limits.max_buffer_size;
        if kind == MemoryKind::Device && size > limit {
            return Err(self.too_large(size, limit, label));
        }
        let _current = self.gpu.current()?;
        let (address, capacity, pinned) = match kind {
            MemoryKind::Device => {
                let capacity = size.next_multiple_of(GRANULARITY);
                (self.device_memory(capacity, size, label)?, capacity, None)
            }
            MemoryKind::Upload | MemoryKind::Readback => {
                let capacity = pinned::capacity(size);
                let block = self.host_memory(capacity, size, label)?;
                (block.address, capacity, Some(block))
            }
        };
        Ok(Block { address, size, capacity, kind, pinned, heap: Arc::clone(self) })
    }

    fn device_memory(&self, capacity: u64, size: u64, label: &str) -> Result<DevicePtr> {
        let mut address = self.allocate_device(capacity);
        if address == Err(Code::OUT_OF_MEMORY) && self.trim() {
            address = self.allocate_device(capacity);
        }
        let address = address.map_err(|code| match code {
            Code::OUT_OF_MEMORY => self.out_of_device_memory(size, label),
            code => {
                let call =
                    if self.pool.is_null() { "cuMemAlloc" } else { "cuMemAllocFromPoolAsync" };
                self.gpu.failed(call, code)
            }
        })?;
        self.allocated.fetch_add(capacity, Ordering::Relaxed);
        Ok(address)
    }

    /// Allocates memory that every stream may use at once.
    fn allocate_device(&self, capacity: u64) -> Result<DevicePtr, Code> {
        let bytes = usize::try_from(capacity).map_err(|_| Code::OUT_OF_MEMORY)?;
        let api = self.gpu.api;
        let mut address = 0;
        if self.pool.is_null() {
            // SAFETY: the context is current; the driver writes an address.
            unsafe { (api.mem_alloc)(&raw mut address, bytes) }.ok()?;
            return Ok(address);
        }
        // SAFETY: as above; pool and stream are alive.
        unsafe {
            (api.mem_alloc_from_pool_async)(&raw mut address, bytes, self.pool, self.stream)
                .ok()?;
            // The stream executes only allocations and frees, so this returns at once.
            (api.stream_synchronize)(self.stream).ok()?;
        }
        Ok(address)
    }

    /// Returns the pool's free memory to the system; false if there is no pool.
    fn trim(&self) -> bool {
        if self.pool.is_null() {
            return false;
        }
        // SAFETY: the pool is alive. Frees that are still pending are waited for first.
        unsafe {
            let _ = (self.gpu.api.stream_synchronize)(self.stream).ok();
            (self.gpu.api.mem_pool_trim_to)(self.pool, 0).ok().is_ok()
        }
    }

    /// Frees memory that no unfinished submission uses.
    fn free(&self, address: DevicePtr, capacity: u64) {
        self.allocated.fetch_sub(capacity, Ordering::Relaxed);
        let api = self.gpu.api;
        // SAFETY: the address is that of an allocation whose owner is being dropped.
        let (call, code) = unsafe {
            match self.pool.is_null() {
                true => ("cuMemFree", (api.mem_free)(address)),
                false => ("cuMemFreeAsync", (api.mem_free_async)(address, self.stream)),
            }
        };
        self.gpu.log_failed_free(call, code);
    }

    /// Returns a free block of pinned memory, or allocates one.
    fn host_memory(&self, capacity: u64, size: u64, label: &str) -> Result<PinnedBlock> {
        if let Some(block) = lock(&self.free_pinned).take(capacity) {
            return Ok(block);
        }
        if capacity > pinned::MAX_SMALL {
            return self.pin(capacity, size, label);
        }
        let slab = self.pin(pinned::SLAB_SIZE, size, label)?;
        Ok(lock(&self.free_pinned).split_slab(slab, capacity))
    }

    /// Allocates pinned memory. If there is too little, first frees the large blocks that are kept
    /// for reuse.
    fn pin(&self, capacity: u64, size: u64, label: &str) -> Result<PinnedBlock> {
        let mut block = self.try_pin(capacity);
        if matches!(block, Err((_, Code::OUT_OF_MEMORY))) {
            let idle = lock(&self.free_pinned).take_large();
            idle.into_iter().for_each(|block| self.unpin(block));
            block = self.try_pin(capacity);
        }
        block.map_err(|(call, code)| match code {
            Code::OUT_OF_MEMORY => self.out_of_pinned_memory(size, label),
            code => self.gpu.failed(call, code),
        })
    }

    /// Allocates pinned memory. An error is the failed call, and its code.
    fn try_pin(&self, capacity: u64) -> Result<PinnedBlock, (&'static str, Code)> {
        const ALLOCATE: &str = "cuMemHostAlloc";
        let exhausted = (ALLOCATE, Code::OUT_OF_MEMORY);
        let bytes = usize::try_from(capacity).map_err(|_| exhausted)?;
        let api = self.gpu.api;
        let (mut host, mut address) = (std::ptr::null_mut(), 0);
        // SAFETY: the context is current; the driver writes an address.
        let code = unsafe { (api.mem_host_alloc)(&raw mut host, bytes, types::HOST_MEMORY) };
        code.ok().map_err(|code| (ALLOCATE, code))?;
        // SAFETY: the memory was allocated mapped into the device; the driver writes an address.
        let code = unsafe { (api.mem_host_get_device_pointer)(&raw mut address, host, 0) };
        let block = NonNull::new(host.cast::<u8>()).map(|host| PinnedBlock { host, address });
        let block = block.ok_or(exhausted)?;
        code.ok().map_err(|code| {
            self.unpin(block);
            ("cuMemHostGetDevicePointer", code)
        })?;
        Ok(block)
    }

    fn unpin(&self, block: PinnedBlock) {
        // SAFETY: nothing uses the memory, which `try_pin` allocated.
        let code = unsafe { (self.gpu.api.mem_free_host)(block.host.as_ptr().cast()) };
        self.gpu.log_failed_free("cuMemFreeHost", code);
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

    /// Returns the error for exhausted device memory, with the free bytes and those of this heap.
    fn out_of_device_memory(&self, size: u64, label: &str) -> GpuError {
        let memory = match self.gpu.memory() {
            Ok((free, total)) => format!("{free} of the device's {total} bytes are free"),
            Err(_) => format!("the device has {} bytes", self.gpu.info.memory),
        };
        let allocated = self.allocated.load(Ordering::Relaxed);
        self.out_of_memory(
            size,
            label,
            format!("{memory}, and this Device's buffers hold {allocated}"),
            "drop buffers that are no longer used, end other programs that use the GPU, or work in \
             parts",
        )
    }

    fn out_of_pinned_memory(&self, size: u64, label: &str) -> GpuError {
        let detail = "the system pins no more of the host's memory".to_owned();
        let help = "drop pending transfers, raise the process's memory limit, or work in parts";
        self.out_of_memory(size, label, detail, help)
    }

    fn out_of_memory(&self, size: u64, label: &str, detail: String, help: &str) -> GpuError {
        let device = self.gpu.info.name.clone();
        GpuError::OutOfMemory(OutOfMemoryError {
            function: None,
            device,
            requested: Some(size),
            label: describe_buffer(label),
            detail,
            help: help.to_owned(),
        })
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        let Some(_current) = self.gpu.current_to_free() else { return };
        let pinned = lock(&self.free_pinned).take_all();
        pinned.into_iter().for_each(|block| self.unpin(block));
        let api = self.gpu.api;
        if !self.stream.is_null() {
            // SAFETY: every allocation holds an `Arc` of this, so nothing uses the stream any more.
            let code = unsafe { (api.stream_destroy)(self.stream) };
            self.gpu.log_failed_free("cuStreamDestroy", code);
        }
        if !self.pool.is_null() {
            // SAFETY: all memory of the pool was freed, for the same reason.
            let code = unsafe { (api.mem_pool_destroy)(self.pool) };
            self.gpu.log_failed_free("cuMemPoolDestroy", code);
        }
    }
}

impl Block {
    /// Copies bytes to the allocation.
    pub(super) fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let start = self.mapped(MemoryKind::Upload, "write", offset, data.len())?;
        // SAFETY: `mapped` checked that the range is within the allocation, which lives as long as
        // `self`; by the contract of `Driver` nothing else accesses the range meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), start, data.len()) };
        Ok(())
    }

    /// Copies bytes from the allocation.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let start = self.mapped(MemoryKind::Readback, "read", offset, out.len())?;
        // SAFETY: as in `write`; the device's writes were made visible to the host.
        unsafe { std::ptr::copy_nonoverlapping(start, out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    /// Returns the host's address of a range. An error unless the range is within the allocation,
    /// and the allocation of this kind.
    fn mapped(
        &self,
        kind: MemoryKind,
        call: &'static str,
        offset: u64,
        len: usize,
    ) -> Result<*mut u8> {
        let end = offset.checked_add(len as u64);
        match (self.pinned, end) {
            (Some(block), Some(end)) if end <= self.size && self.kind == kind => {
                // SAFETY: the offset is within the allocation.
                Ok(unsafe { block.host.add(offset as usize) }.as_ptr())
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
        let heap = &self.heap;
        let Some(_current) = heap.gpu.current_to_free() else { return };
        match self.pinned {
            None => heap.free(self.address, self.capacity),
            Some(block) => {
                let excess = lock(&heap.free_pinned).put(self.capacity, block);
                excess.into_iter().for_each(|block| heap.unpin(block));
            }
        }
    }
}
