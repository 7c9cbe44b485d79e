//! Suballocates device memory from large blocks, because drivers limit the number of allocations,
//! and each of them is slow.

use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk;

use super::free_ranges::FreeRanges;
use crate::backend::vulkan::device::Gpu;

/// Sizes in bytes of the first and of the largest shared block of a memory type: each block is
/// twice as large as the one before, up to the largest. An allocation that exceeds the next shared
/// block has a block of its own.
pub(crate) type BlockSizes = (u64, u64);

/// Suballocates the memory of a device.
pub(crate) struct Allocator {
    types: Vec<MemoryType>,
    /// Block sizes of memory types that are not host-visible, and of those that are.
    sizes: [BlockSizes; 2],
    /// Live allocations by index; free indices are in `unused`.
    live: Vec<LiveAllocation>,
    unused: Vec<usize>,
    gpu: Arc<Gpu>,
}

struct MemoryType {
    flags: vk::MemoryPropertyFlags,
    heap_size: u64,
    blocks: Vec<Option<MemoryBlock>>,
    /// Number of shared blocks.
    shared_count: usize,
}

struct MemoryBlock {
    memory: vk::DeviceMemory,
    /// `Some` if the memory is host-visible.
    mapped: Option<Mapping>,
    free: FreeRanges,
    /// Whether several allocations share the block.
    is_shared: bool,
}

/// The host address of a mapped block.
#[derive(Clone, Copy)]
struct Mapping(NonNull<u8>);

// SAFETY: only an address; code that dereferences it must synchronise the accesses.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// A live allocation, for out-of-memory reports.
#[derive(Clone, Default)]
pub(crate) struct LiveAllocation {
    pub(crate) label: String,
    /// 0 for a free entry.
    pub(crate) size: u64,
}

/// A range of device memory. Leaked if dropped without `Allocator::free`.
pub(crate) struct Allocation {
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) offset: u64,
    mapped: Option<Mapping>,
    size: u64,
    /// Indices of the memory type, of its block, and of the entry in `Allocator::live`.
    indices: (usize, usize, usize),
}

/// Reasons for a failed allocation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AllocationError {
    /// The heap is smaller than the requested size.
    HeapTooSmall,
    /// No memory type has the required flags.
    NoMemoryType,
    /// A Vulkan call failed.
    Call(&'static str, vk::Result),
}

impl Allocation {
    /// Returns the host address of the first byte, if the memory is mapped.
    pub(crate) fn mapped(&self) -> Option<NonNull<u8>> {
        // SAFETY: the allocation is within its block's mapping.
        self.mapped.map(|mapping| unsafe { mapping.0.add(self.offset as usize) })
    }
}

impl Allocator {
    /// Creates an allocator without blocks.
    pub(crate) fn new(gpu: &Arc<Gpu>, sizes: [BlockSizes; 2]) -> Self {
        let instance = &gpu.instance.raw;
        // SAFETY: the physical device belongs to the instance.
        let all = unsafe { instance.get_physical_device_memory_properties(gpu.physical) };
        let types = all.memory_types_as_slice().iter().map(|ty| MemoryType {
            flags: ty.property_flags,
            heap_size: all.memory_heaps[ty.heap_index as usize].size,
            blocks: Vec::new(),
            shared_count: 0,
        });
        Self {
            types: types.collect(),
            sizes,
            live: Vec::new(),
            unused: Vec::new(),
            gpu: Arc::clone(gpu),
        }
    }

    /// Allocates memory for a buffer, from the first memory type that has the first set of flags.
    /// If there is no such type, or it is exhausted, tries the next set.
    pub(crate) fn allocate(
        &mut self,
        wanted: &vk::MemoryRequirements,
        flags: &[vk::MemoryPropertyFlags],
        label: &str,
    ) -> Result<Allocation, AllocationError> {
        let mut failure = AllocationError::NoMemoryType;
        let mut tried = usize::MAX;
        for flags in flags {
            let fits = |(index, ty): (usize, &MemoryType)| {
                let allowed = wanted.memory_type_bits & (1 << index) != 0;
                (allowed && ty.flags.contains(*flags)).then_some(index)
            };
            let Some(index) = self.types.iter().enumerate().find_map(fits) else { continue };
            if index == tried {
                continue;
            }
            tried = index;
            match self.allocate_from(index, wanted, label) {
                Ok(allocation) => return Ok(allocation),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Allocates from a memory type.
    fn allocate_from(
        &mut self,
        index: usize,
        wanted: &vk::MemoryRequirements,
        label: &str,
    ) -> Result<Allocation, AllocationError> {
        let ty = &mut self.types[index];
        if wanted.size > ty.heap_size {
            return Err(AllocationError::HeapTooSmall);
        }
        let is_visible = ty.flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE);
        let block_size = ty.block_size(self.sizes[usize::from(is_visible)]);
        let is_shared = wanted.size <= block_size;
        let found = if is_shared { ty.allocate(wanted.size, wanted.alignment) } else { None };
        let (at, offset) = match found {
            Some(found) => found,
            None => {
                let size = block_size.max(wanted.size);
                let block = MemoryBlock::new(&self.gpu, index, size, is_visible, is_shared)?;
                let at = ty.add(block);
                // The start of the new block is aligned for every buffer.
                let start = ty.blocks[at].as_mut().and_then(|it| it.free.allocate(wanted.size, 1));
                (at, start.unwrap_or(0))
            }
        };
        let block = ty.blocks[at].as_ref().ok_or(AllocationError::HeapTooSmall)?;
        let (memory, mapped) = (block.memory, block.mapped);
        let entry = self.track(LiveAllocation { label: label.to_owned(), size: wanted.size });
        Ok(Allocation { memory, offset, mapped, size: wanted.size, indices: (index, at, entry) })
    }

    /// Changes the label of an allocation that is reused.
    pub(crate) fn set_label(&mut self, allocation: &Allocation, label: &str) {
        let (.., entry) = allocation.indices;
        label.clone_into(&mut self.live[entry].label);
    }

    /// Adds a live allocation; returns the index of its entry.
    fn track(&mut self, live: LiveAllocation) -> usize {
        match self.unused.pop() {
            Some(entry) => {
                self.live[entry] = live;
                entry
            }
            None => {
                self.live.push(live);
                self.live.len() - 1
            }
        }
    }

    /// Frees an allocation. A block without allocations is freed, too, unless it is the last shared
    /// block of its memory type.
    pub(crate) fn free(&mut self, allocation: Allocation) {
        let (index, at, entry) = allocation.indices;
        self.live[entry] = LiveAllocation::default();
        self.unused.push(entry);
        let ty = &mut self.types[index];
        let Some(block) = &mut ty.blocks[at] else { return };
        block.free.release(allocation.offset, allocation.size);
        if !block.free.is_unused() || (block.is_shared && ty.shared_count == 1) {
            return;
        }
        ty.shared_count -= usize::from(block.is_shared);
        let memory = block.memory;
        ty.blocks[at] = None;
        // SAFETY: no buffer is bound to the block any more.
        unsafe { self.gpu.raw.free_memory(memory, None) };
    }

    /// Returns all live allocations.
    pub(crate) fn live(&self) -> Vec<&LiveAllocation> {
        self.live.iter().filter(|live| live.size > 0).collect()
    }
}

impl Drop for Allocator {
    fn drop(&mut self) {
        for block in self.types.iter().flat_map(|ty| &ty.blocks).flatten() {
            // SAFETY: dropped after all buffers.
            unsafe { self.gpu.raw.free_memory(block.memory, None) };
        }
    }
}

impl MemoryType {
    /// Returns the size of the next shared block.
    fn block_size(&self, (first, largest): BlockSizes) -> u64 {
        // The limit of the shift avoids an overflow: no largest block is 128 times the first one.
        (first << self.shared_count.min(7)).min(largest)
    }

    /// Allocates bytes from an existing block; returns its index and the offset. Tries the blocks
    /// with the highest indices first.
    fn allocate(&mut self, size: u64, align: u64) -> Option<(usize, u64)> {
        let blocks = self.blocks.iter_mut().enumerate().rev();
        for (at, block) in blocks.filter_map(|(at, block)| Some((at, block.as_mut()?))) {
            if let Some(offset) = block.free.allocate(size, align) {
                return Some((at, offset));
            }
        }
        None
    }

    /// Adds a block; returns its index.
    fn add(&mut self, block: MemoryBlock) -> usize {
        self.shared_count += usize::from(block.is_shared);
        match self.blocks.iter().position(Option::is_none) {
            Some(at) => {
                self.blocks[at] = Some(block);
                at
            }
            None => {
                self.blocks.push(Some(block));
                self.blocks.len() - 1
            }
        }
    }
}

impl MemoryBlock {
    fn new(
        gpu: &Gpu,
        index: usize,
        size: u64,
        is_visible: bool,
        is_shared: bool,
    ) -> Result<Self, AllocationError> {
        let info =
            vk::MemoryAllocateInfo::default().allocation_size(size).memory_type_index(index as u32);
        // SAFETY: the memory type exists, and the structure has no extensions.
        let memory = unsafe { gpu.raw.allocate_memory(&info, None) }
            .map_err(|code| AllocationError::Call("vkAllocateMemory", code))?;
        let mut mapped = None;
        if is_visible {
            // SAFETY: the memory is new and host-visible.
            let start = unsafe {
                gpu.raw.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())
            };
            match start {
                Ok(start) => mapped = NonNull::new(start.cast()).map(Mapping),
                Err(code) => {
                    // SAFETY: nothing uses the memory.
                    unsafe { gpu.raw.free_memory(memory, None) };
                    return Err(AllocationError::Call("vkMapMemory", code));
                }
            }
        }
        Ok(Self { memory, mapped, free: FreeRanges::new(size), is_shared })
    }
}
