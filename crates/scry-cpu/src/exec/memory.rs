//! Loads and stores.

use std::cell::Cell;
use std::ops::Range;

use super::frame::Frame;
use super::indices::{ALL_BLOCKS_LOG2, Indices, Pattern, Rows, lane_indices, strided_rows};
use super::workgroup_memory::WorkgroupBits;
use crate::access::{AtomicBits, Region};
use crate::code::{Access, Address, MemorySpace};
use crate::lanes::{BLOCK, Bits, Block, IsaLevel};

/// The offset of an array in its memory, and the stride to the array of the next workgroup of the
/// batch.
#[derive(Clone, Copy)]
pub(super) struct ArrayStart {
    first: u64,
    workgroup_stride: u64,
    /// log2 of the number of blocks of a workgroup.
    pub(super) group_log2: u32,
}

impl ArrayStart {
    /// A binding, which all workgroups share.
    pub(super) const BINDING: Self =
        Self { first: 0, workgroup_stride: 0, group_log2: ALL_BLOCKS_LOG2 };

    /// Returns the stride between rows of 2^`row_log2` blocks that comes from the workgroups' own
    /// arrays: 0 unless each row is a workgroup.
    #[inline(always)]
    pub(super) fn row_stride(&self, row_log2: u32) -> u64 {
        if row_log2 == self.group_log2 { self.workgroup_stride } else { 0 }
    }

    /// Returns the start for the lanes of a block.
    #[inline(always)]
    pub(super) fn at(&self, block: usize) -> u64 {
        self.first + ((block as u32) >> self.group_log2) as u64 * self.workgroup_stride
    }
}

/// Returns whether strided accesses of these elements have a fast path: most kernels use 32 bits.
const fn has_strided_path<B: Bits>() -> bool {
    size_of::<B>() == size_of::<u32>()
}

/// Memory that loads read and stores write. Offsets and strides are in bytes of bindings, and in
/// elements of workgroup memory. Elements out of bounds read as zero, and are not written.
pub(super) trait LaneMemory<B> {
    /// Size of an element, in the unit of offsets and strides.
    const ELEMENT: u64;

    fn get(&self, offset: u64) -> B;
    fn set(&self, offset: u64, value: B);
    /// Loads a block of elements at a stride.
    fn get_run(&self, offset: u64, step: u64) -> [B; BLOCK];
    /// Loads contiguous whole blocks, if all are in bounds. Returns whether they are.
    fn get_blocks(&self, offset: u64, to: &[Block<B>]) -> bool;
    /// Stores contiguous whole blocks, if all are in bounds. Returns whether they are.
    fn set_blocks(&self, offset: u64, from: &[Block<B>]) -> bool;
    /// Stores a block of elements at a stride.
    fn set_run(&self, offset: u64, step: u64, values: [B; BLOCK]);
    /// Stores the active lanes of a block, if there is a fast path. Returns whether there is.
    fn set_active(&self, offset: u64, step: u64, values: [B; BLOCK], active: [u8; BLOCK]) -> bool;
}

impl<B: AtomicBits> LaneMemory<B> for Region {
    const ELEMENT: u64 = size_of::<B>() as u64;

    #[inline(always)]
    fn get(&self, offset: u64) -> B {
        self.get(offset)
    }

    #[inline(always)]
    fn set(&self, offset: u64, value: B) {
        self.set(offset, value);
    }

    #[inline(always)]
    fn get_run(&self, offset: u64, step: u64) -> [B; BLOCK] {
        self.get_run(offset, step)
    }

    #[inline(always)]
    fn get_blocks(&self, offset: u64, to: &[Block<B>]) -> bool {
        self.get_blocks(offset, to)
    }

    #[inline(always)]
    fn set_blocks(&self, offset: u64, from: &[Block<B>]) -> bool {
        self.set_blocks(offset, from)
    }

    #[inline(always)]
    fn set_run(&self, offset: u64, step: u64, values: [B; BLOCK]) {
        self.set_run(offset, step, values);
    }

    #[inline(always)]
    fn set_active(&self, offset: u64, step: u64, values: [B; BLOCK], active: [u8; BLOCK]) -> bool {
        step == <Self as LaneMemory<B>>::ELEMENT && self.set_active(offset, values, active)
    }
}

/// Returns the offset of the element with an index.
pub(super) fn element_offset(at: &Address, index: u32) -> u64 {
    u64::from(index) * u64::from(at.stride) + u64::from(at.offset)
}

/// Returns the stride between the elements of consecutive lanes, modulo 2^64: the step may be
/// negative.
#[inline(always)]
fn lane_stride(step: u32, stride: u32) -> u64 {
    i64::from(step as i32).wrapping_mul(stride.into()) as u64
}

/// Returns the offset of the element of a lane, modulo 2^64.
#[inline(always)]
pub(super) fn lane_offset(first: u64, step: u64, lane: usize) -> u64 {
    first.wrapping_add(step.wrapping_mul(lane as u64))
}

impl Frame<'_> {
    pub(super) fn load(&self, access: &Access) {
        match (access.ty.size(), access.address.space) {
            (4, _) => self.load_words(access),
            (2, MemorySpace::Binding(binding)) => {
                self.load_from::<u16, _>(
                    access,
                    &self.regions[binding as usize],
                    ArrayStart::BINDING,
                );
            }
            (8, MemorySpace::Binding(binding)) => {
                self.load_from::<u64, _>(
                    access,
                    &self.regions[binding as usize],
                    ArrayStart::BINDING,
                );
            }
            _ => self.load_by_element(access),
        }
    }

    /// Executes a load of 32-bit words. Most accesses are of these, and are also compiled for AVX2.
    fn load_words(&self, access: &Access) {
        match self.isa {
            IsaLevel::Base => self.load_of::<u32>(access),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` is only constructed if the CPU has the features.
            IsaLevel::Avx2 => unsafe { avx2::load_words(self, access) },
        }
    }

    #[inline(always)]
    fn load_of<B: WorkgroupBits>(&self, access: &Access) {
        match access.address.space {
            MemorySpace::Binding(binding) => {
                self.load_from::<B, _>(
                    access,
                    &self.regions[binding as usize],
                    ArrayStart::BINDING,
                );
            }
            MemorySpace::Shared(start) => {
                let start = self.shared_start::<B>(start);
                self.load_from::<B, _>(access, B::cells(&self.scratch.shared), start);
            }
            MemorySpace::Local { start, len } => self.load_local::<B>(access, start, len),
        }
    }

    #[inline(always)]
    fn load_from<B: Bits, M: LaneMemory<B> + ?Sized>(
        &self,
        access: &Access,
        memory: &M,
        start: ArrayStart,
    ) {
        let pattern = self.pattern(&access.address.index);
        if const { has_strided_path::<B>() }
            && let Some(rows) = strided_rows(&pattern)
        {
            return self.load_strided(access, memory, start, &rows);
        }
        self.load_scattered(access, &pattern, memory, start);
    }

    /// Executes a load whose indices have a constant stride within each block.
    #[inline(always)]
    fn load_strided<B: Bits, M: LaneMemory<B> + ?Sized>(
        &self,
        access: &Access,
        memory: &M,
        start: ArrayStart,
        rows: &Rows,
    ) {
        let file = B::file(self.files());
        let step = lane_stride(rows.step, access.address.stride);
        for (nth, to) in (0..u64::from(access.count)).zip(access.to) {
            let nth = nth * M::ELEMENT;
            let offset =
                |block| start.at(block) + nth + element_offset(&access.address, rows.origin(block));
            let to = &file[to as usize + self.lanes.first..to as usize + self.lanes.end];
            if step == 0 {
                for (block, to) in self.blocks().zip(to) {
                    to.set([memory.get(offset(block)); BLOCK]);
                }
                continue;
            }
            for part in self.rows_of(rows, start) {
                let to = &to[part.start - self.lanes.first..part.end - self.lanes.first];
                let contiguous = step == M::ELEMENT && rows.checked_row_origin(&part).is_some();
                if contiguous && memory.get_blocks(offset(part.start), to) {
                    continue;
                }
                for (block, to) in part.zip(to) {
                    to.set(match rows.checked_origin(block) {
                        Some(_) => memory.get_run(offset(block), step),
                        None => {
                            let base = start.at(block) + nth;
                            let indices = lane_indices(rows.indices(block));
                            gather(memory, base, &access.address, &indices)
                        }
                    });
                }
            }
        }
    }

    /// Executes a load with arbitrary indices (gather).
    fn load_scattered<B: Bits, M: LaneMemory<B> + ?Sized>(
        &self,
        access: &Access,
        pattern: &Pattern,
        memory: &M,
        start: ArrayStart,
    ) {
        let file = B::file(self.files());
        let at = &access.address;
        for block in self.blocks() {
            let indices = self.indices(pattern, block);
            for (nth, to) in (0..u64::from(access.count)).zip(access.to) {
                let base = start.at(block) + nth * M::ELEMENT;
                let values = match indices {
                    Indices::Run { first, step: 0 } => {
                        [memory.get(base + element_offset(at, first)); BLOCK]
                    }
                    Indices::Run { first, step } => memory
                        .get_run(base + element_offset(at, first), lane_stride(step, at.stride)),
                    Indices::Each(indices) => gather(memory, base, at, &indices),
                };
                file[to as usize + block].set(values);
            }
        }
    }

    pub(super) fn store(&self, access: &Access) {
        match (access.ty.size(), access.address.space) {
            (4, _) => self.store_words(access),
            (2, MemorySpace::Binding(binding)) => {
                self.store_to::<u16, _>(
                    access,
                    &self.regions[binding as usize],
                    ArrayStart::BINDING,
                );
            }
            (8, MemorySpace::Binding(binding)) => {
                self.store_to::<u64, _>(
                    access,
                    &self.regions[binding as usize],
                    ArrayStart::BINDING,
                );
            }
            _ => self.store_by_element(access),
        }
    }

    /// Executes a store of 32-bit words. Most accesses are of these, and are also compiled for
    /// AVX2.
    fn store_words(&self, access: &Access) {
        match self.isa {
            IsaLevel::Base => self.store_of::<u32>(access),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` is only constructed if the CPU has the features.
            IsaLevel::Avx2 => unsafe { avx2::store_words(self, access) },
        }
    }

    #[inline(always)]
    fn store_of<B: WorkgroupBits>(&self, access: &Access) {
        match access.address.space {
            MemorySpace::Binding(binding) => {
                self.store_to::<B, _>(access, &self.regions[binding as usize], ArrayStart::BINDING);
            }
            MemorySpace::Shared(start) => {
                let start = self.shared_start::<B>(start);
                self.store_to::<B, _>(access, B::cells(&self.scratch.shared), start);
            }
            MemorySpace::Local { start, len } => self.store_local::<B>(access, start, len),
        }
    }

    #[inline(always)]
    fn store_to<B: Bits, M: LaneMemory<B> + ?Sized>(
        &self,
        access: &Access,
        memory: &M,
        start: ArrayStart,
    ) {
        let pattern = self.pattern(&access.address.index);
        if const { has_strided_path::<B>() }
            && let Some(rows) = strided_rows(&pattern)
            && rows.step != 0
        {
            return self.store_strided(access, memory, start, &rows);
        }
        self.store_scattered(access, &pattern, memory, start);
    }

    /// Executes a store whose indices have a constant stride, as in [`Frame::load_strided`].
    #[inline(always)]
    fn store_strided<B: Bits, M: LaneMemory<B> + ?Sized>(
        &self,
        access: &Access,
        memory: &M,
        start: ArrayStart,
        rows: &Rows,
    ) {
        let file = B::file(self.files());
        let step = lane_stride(rows.step, access.address.stride);
        for (nth, from) in (0..u64::from(access.count)).zip(access.from) {
            let nth = nth * M::ELEMENT;
            let offset =
                |block| start.at(block) + nth + element_offset(&access.address, rows.origin(block));
            let contiguous = step == M::ELEMENT && from.step == 1;
            for part in self.rows_of(rows, start) {
                let mut next = part.start;
                while next < part.end {
                    let active = self.active(next);
                    if active == [0; BLOCK] {
                        next += 1;
                        continue;
                    }
                    let run = next..next
                        + if contiguous { self.count_full_blocks(next..part.end) } else { 0 };
                    let blocks = from.at(run.start)..from.at(run.end);
                    if !run.is_empty()
                        && rows.checked_row_origin(&run).is_some()
                        && memory.set_blocks(offset(next), &file[blocks])
                    {
                        next = run.end;
                        continue;
                    }
                    let values = file[from.at(next)].get();
                    let no_wrap = rows.checked_origin(next).is_some();
                    if no_wrap && active == [1; BLOCK] {
                        memory.set_run(offset(next), step, values);
                    } else if !(no_wrap && memory.set_active(offset(next), step, values, active)) {
                        let indices = lane_indices(rows.indices(next));
                        scatter(
                            memory,
                            start.at(next) + nth,
                            &access.address,
                            &indices,
                            active,
                            values,
                        );
                    }
                    next += 1;
                }
            }
        }
    }

    /// Returns the number of leading blocks whose lanes are all active.
    #[inline(always)]
    fn count_full_blocks(&self, blocks: Range<usize>) -> usize {
        if self.lanes.dense {
            return blocks.len();
        }
        blocks.clone().position(|block| self.active(block) != [1; BLOCK]).unwrap_or(blocks.len())
    }

    /// Splits the active blocks into rows, and into workgroups if each has its own memory.
    #[inline(always)]
    fn rows_of(
        &self,
        rows: &Rows,
        start: ArrayStart,
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let Range { start: first, end } = self.blocks();
        let row_log2 = rows.row_log2().min(start.group_log2);
        let mut next = first;
        std::iter::from_fn(move || {
            let block = next;
            next = (((block >> row_log2) + 1) << row_log2).min(end);
            (block < end).then_some(block..next)
        })
    }

    /// Executes a store with arbitrary indices (scatter), or the same index for all lanes.
    fn store_scattered<B: Bits, M: LaneMemory<B> + ?Sized>(
        &self,
        access: &Access,
        pattern: &Pattern,
        memory: &M,
        start: ArrayStart,
    ) {
        let file = B::file(self.files());
        let at = &access.address;
        for block in self.blocks() {
            let indices = self.indices(pattern, block);
            let active = self.active(block);
            for (nth, from) in (0..u64::from(access.count)).zip(access.from) {
                let base = start.at(block) + nth * M::ELEMENT;
                let values = file[from.at(block)].get();
                match indices {
                    Indices::Run { first, step } if step != 0 && active == [1; BLOCK] => {
                        memory.set_run(
                            base + element_offset(at, first),
                            lane_stride(step, at.stride),
                            values,
                        );
                    }
                    _ => {
                        let indices = lane_indices(indices);
                        scatter(memory, base, at, &indices, active, values);
                    }
                }
            }
        }
    }

    /// Returns the start of an array of workgroup memory.
    pub(super) fn shared_start<B: WorkgroupBits>(&self, start: u32) -> ArrayStart {
        if self.code.lane_layout.batch == 1 {
            return ArrayStart { first: start.into(), ..ArrayStart::BINDING };
        }
        let workgroup_stride = B::elements(self.code.shared) as u64;
        ArrayStart { first: start.into(), workgroup_stride, group_log2: self.group_log2() }
    }

    /// Returns the offset of an element for the lanes of a block. In workgroup memory, it includes
    /// the start of the workgroup's own memory.
    pub(super) fn workgroup_offset<B: WorkgroupBits>(
        &self,
        space: MemorySpace,
        block: usize,
        offset: u64,
    ) -> u64 {
        match space {
            MemorySpace::Shared(_) => offset + self.shared_start::<B>(0).at(block),
            MemorySpace::Binding(_) | MemorySpace::Local { .. } => offset,
        }
    }

    /// Loads from local memory, which has the layout of registers: all lanes of element 0, then all
    /// of element 1, and so on.
    fn load_local<B: Bits>(&self, access: &Access, start: u32, len: u32) {
        let file = B::file(self.files());
        let pattern = self.pattern(&access.address.index);
        for block in self.blocks() {
            let indices = lane_indices(self.indices(&pattern, block));
            for (nth, to) in (0..u64::from(access.count)).zip(access.to) {
                let mut values = [B::ZERO; BLOCK];
                for lane in 0..BLOCK {
                    let element = element_offset(&access.address, indices[lane]) + nth;
                    if let Some(lanes) = self.local(file, start, len, element, block) {
                        values[lane] = lanes.get()[lane];
                    }
                }
                file[to as usize + block].set(values);
            }
        }
    }

    fn store_local<B: Bits>(&self, access: &Access, start: u32, len: u32) {
        let file = B::file(self.files());
        let pattern = self.pattern(&access.address.index);
        for block in self.blocks() {
            let indices = lane_indices(self.indices(&pattern, block));
            let active = self.active(block);
            for (nth, from) in (0..u64::from(access.count)).zip(access.from) {
                let values = file[from.at(block)].get();
                for lane in (0..BLOCK).filter(|lane| active[*lane] != 0) {
                    let element = element_offset(&access.address, indices[lane]) + nth;
                    if let Some(to) = self.local(file, start, len, element, block) {
                        let lanes: &Cell<[B]> = to;
                        lanes.as_slice_of_cells()[lane].set(values[lane]);
                    }
                }
            }
        }
    }

    /// Returns a block of lanes of an element of a local array.
    #[inline(always)]
    pub(super) fn local<'f, B: Bits>(
        &self,
        file: &'f [Block<B>],
        start: u32,
        len: u32,
        element: u64,
        block: usize,
    ) -> Option<&'f Block<B>> {
        let blocks = self.code.lane_layout.lanes().div_ceil(BLOCK);
        (element < u64::from(len))
            .then(|| &file[start as usize + element as usize * blocks + block])
    }
}

/// Reads a block, element by element.
#[inline(never)]
fn gather<B: Bits, M: LaneMemory<B> + ?Sized>(
    memory: &M,
    start: u64,
    at: &Address,
    indices: &[u32; BLOCK],
) -> [B; BLOCK] {
    let mut values = [B::ZERO; BLOCK];
    for (value, index) in values.iter_mut().zip(indices) {
        *value = memory.get(start + element_offset(at, *index));
    }
    values
}

/// Writes the active lanes of a block, element by element.
#[inline(always)]
fn scatter<B: Bits, M: LaneMemory<B> + ?Sized>(
    memory: &M,
    start: u64,
    at: &Address,
    indices: &[u32; BLOCK],
    active: [u8; BLOCK],
    values: [B; BLOCK],
) {
    for lane in 0..BLOCK {
        if active[lane] != 0 {
            memory.set(start + element_offset(at, indices[lane]), values[lane]);
        }
    }
}

/// Accesses of 32-bit words, compiled for AVX2. Callers must check that the CPU supports it.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Access, Frame};

    // SAFETY: the caller has checked that the CPU has the feature.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn load_words(frame: &Frame<'_>, access: &Access) {
        frame.load_of::<u32>(access);
    }

    // SAFETY: the caller has checked that the CPU has the feature.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn store_words(frame: &Frame<'_>, access: &Access) {
        frame.store_of::<u32>(access);
    }
}
