//! Device memory, taken from the driver in large blocks and divided up.
//!
//! Drivers allow few allocations, and take their time over each.

use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk;

use super::free_ranges::Spans;
use crate::backend::vulkan::device::Gpu;

/// Sizes of blocks of one kind of memory: each is twice as large as the one before, up to the
/// second size. What is larger than a block has one of its own.
pub(crate) type BlockSizes = (u64, u64);

/// Divides up the memory of a device.
pub(crate) struct Allocator {
    types: Vec<MemoryType>,
    /// Sizes of blocks that the host cannot see, and of those that it can.
    sizes: [BlockSizes; 2],
    /// What is allocated, by number; numbers without an allocation are in `unused`.
    held: Vec<Held>,
    unused: Vec<usize>,
    gpu: Arc<Gpu>,
}

struct MemoryType {
    flags: vk::MemoryPropertyFlags,
    heap_size: u64,
    blocks: Vec<Option<MemoryBlock>>,
    /// Blocks that are shared.
    shared: usize,
}

struct MemoryBlock {
    memory: vk::DeviceMemory,
    mapped: Option<Mapping>,
    spans: Spans,
    is_shared: bool,
}

/// Where the host sees a block.
#[derive(Clone, Copy)]
struct Mapping(NonNull<u8>);

// SAFETY: an address alone; who reads or writes there takes care of the rest.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// An allocation, for the report of what is held.
#[derive(Clone, Default)]
pub(crate) struct Held {
    pub(crate) label: String,
    /// 0 for none.
    pub(crate) size: u64,
}

/// Some memory of the device. Dropped without being freed, it stays taken.
pub(crate) struct Allocation {
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) offset: u64,
    mapped: Option<Mapping>,
    size: u64,
    /// Type, block, and number among what is held.
    place: (usize, usize, usize),
}

/// Why there is no memory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal {
    /// The heap is smaller than what was asked for.
    Full,
    /// No type of memory fits.
    NoType,
    /// A call failed.
    Call(&'static str, vk::Result),
}

impl Allocation {
    /// The host's address of the first byte, if the host sees it.
    pub(crate) fn mapped(&self) -> Option<NonNull<u8>> {
        // SAFETY: the allocation lies within its block's mapping.
        self.mapped.map(|mapping| unsafe { mapping.0.add(self.offset as usize) })
    }
}

impl Allocator {
    /// Nothing is taken from the device yet.
    pub(crate) fn new(gpu: &Arc<Gpu>, sizes: [BlockSizes; 2]) -> Self {
        let instance = &gpu.instance.raw;
        // SAFETY: the physical device is one of the instance's.
        let all = unsafe { instance.get_physical_device_memory_properties(gpu.physical) };
        let types = all.memory_types_as_slice().iter().map(|ty| MemoryType {
            flags: ty.property_flags,
            heap_size: all.memory_heaps[ty.heap_index as usize].size,
            blocks: Vec::new(),
            shared: 0,
        });
        Self {
            types: types.collect(),
            sizes,
            held: Vec::new(),
            unused: Vec::new(),
            gpu: Arc::clone(gpu),
        }
    }

    /// Takes memory that a buffer asks for, with the first of these sets of flags that there is;
    /// with the next ones if that memory is used up.
    pub(crate) fn allocate(
        &mut self,
        wanted: &vk::MemoryRequirements,
        flags: &[vk::MemoryPropertyFlags],
        label: &str,
    ) -> Result<Allocation, Refusal> {
        let mut refusal = Refusal::NoType;
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
            match self.allocate_of(index, wanted, label) {
                Ok(allocation) => return Ok(allocation),
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }

    fn allocate_of(
        &mut self,
        index: usize,
        wanted: &vk::MemoryRequirements,
        label: &str,
    ) -> Result<Allocation, Refusal> {
        let ty = &mut self.types[index];
        if wanted.size > ty.heap_size {
            return Err(Refusal::Full);
        }
        let is_visible = ty.flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE);
        let block_size = ty.block_size(self.sizes[usize::from(is_visible)]);
        let is_shared = wanted.size <= block_size;
        let found = if is_shared { ty.take(wanted.size, wanted.alignment) } else { None };
        let (at, offset) = match found {
            Some(found) => found,
            None => {
                let size = block_size.max(wanted.size);
                let block = MemoryBlock::new(&self.gpu, index, size, is_visible, is_shared)?;
                let at = ty.add(block);
                let made = ty.blocks[at].as_mut().and_then(|it| it.spans.take(wanted.size, 1));
                (at, made.unwrap_or(0))
            }
        };
        let block = ty.blocks[at].as_ref().ok_or(Refusal::Full)?;
        let (memory, mapped) = (block.memory, block.mapped);
        let number = self.hold(Held { label: label.to_owned(), size: wanted.size });
        Ok(Allocation { memory, offset, mapped, size: wanted.size, place: (index, at, number) })
    }

    fn hold(&mut self, held: Held) -> usize {
        match self.unused.pop() {
            Some(number) => {
                self.held[number] = held;
                number
            }
            None => {
                self.held.push(held);
                self.held.len() - 1
            }
        }
    }

    /// Takes an allocation back. A block that is empty goes back to the device, unless it is the
    /// last one that can be shared.
    pub(crate) fn free(&mut self, allocation: Allocation) {
        let (index, at, number) = allocation.place;
        self.held[number] = Held::default();
        self.unused.push(number);
        let ty = &mut self.types[index];
        let Some(block) = &mut ty.blocks[at] else { return };
        block.spans.give(allocation.offset, allocation.size);
        if !block.spans.is_whole() || (block.is_shared && ty.shared == 1) {
            return;
        }
        ty.shared -= usize::from(block.is_shared);
        let memory = block.memory;
        ty.blocks[at] = None;
        // SAFETY: no buffer lies there any more.
        unsafe { self.gpu.raw.free_memory(memory, None) };
    }

    /// All that is allocated.
    pub(crate) fn held(&self) -> Vec<&Held> {
        self.held.iter().filter(|held| held.size > 0).collect()
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
    /// The size of the next block to share.
    fn block_size(&self, (least, most): BlockSizes) -> u64 {
        (least << self.shared.min(7)).min(most)
    }

    /// Takes bytes of a block that is there already, the newest first.
    fn take(&mut self, size: u64, align: u64) -> Option<(usize, u64)> {
        let blocks = self.blocks.iter_mut().enumerate().rev();
        for (at, block) in blocks.filter_map(|(at, block)| Some((at, block.as_mut()?))) {
            if let Some(offset) = block.spans.take(size, align) {
                return Some((at, offset));
            }
        }
        None
    }

    fn add(&mut self, block: MemoryBlock) -> usize {
        self.shared += usize::from(block.is_shared);
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
    ) -> Result<Self, Refusal> {
        let info =
            vk::MemoryAllocateInfo::default().allocation_size(size).memory_type_index(index as u32);
        // SAFETY: a plain allocation, of a type that the device has.
        let memory = unsafe { gpu.raw.allocate_memory(&info, None) }
            .map_err(|code| Refusal::Call("vkAllocateMemory", code))?;
        let mut mapped = None;
        if is_visible {
            // SAFETY: the memory is fresh, and visible to the host.
            let start = unsafe {
                gpu.raw.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())
            };
            match start {
                Ok(start) => mapped = NonNull::new(start.cast()).map(Mapping),
                Err(code) => {
                    // SAFETY: nothing uses the memory.
                    unsafe { gpu.raw.free_memory(memory, None) };
                    return Err(Refusal::Call("vkMapMemory", code));
                }
            }
        }
        Ok(Self { memory, mapped, spans: Spans::new(size), is_shared })
    }
}
