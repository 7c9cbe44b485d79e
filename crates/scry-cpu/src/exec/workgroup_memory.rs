//! Workgroup memory, for loads, stores and atomics.

use std::cell::Cell;

use super::memory::{LaneMemory, lane_offset};
use super::scratch::SharedMemory;
use crate::access::{AtomicBits, get_contiguous, set_contiguous};
use crate::lanes::{BLOCK, Bits, Block, Sizes};

/// Workgroup memory of one element size. It needs no atomics, since one thread executes all
/// invocations of a workgroup.
impl<B: Bits> LaneMemory<B> for [Block<B>] {
    const ELEMENT: u64 = 1;

    #[inline(always)]
    fn get(&self, offset: u64) -> B {
        cell(self, offset).map_or(B::ZERO, Cell::get)
    }

    #[inline(always)]
    fn set(&self, offset: u64, value: B) {
        if let Some(cell) = cell(self, offset) {
            cell.set(value);
        }
    }

    #[inline(always)]
    fn get_run(&self, offset: u64, step: u64) -> [B; BLOCK] {
        match (step, get_contiguous(self, offset)) {
            (1, Some(run)) => run,
            _ => get_strided(self, offset, step),
        }
    }

    #[inline(always)]
    fn get_blocks(&self, offset: u64, to: &[Block<B>]) -> bool {
        for (nth, block) in to.iter().enumerate() {
            match get_contiguous(self, offset + (nth * BLOCK) as u64) {
                Some(run) => block.set(run),
                None => return false,
            }
        }
        true
    }

    #[inline(always)]
    fn set_blocks(&self, offset: u64, from: &[Block<B>]) -> bool {
        let (first, aligned) = (offset as usize / BLOCK, offset.is_multiple_of(BLOCK as u64));
        let to = first.checked_add(from.len()).and_then(|end| <[_]>::get(self, first..end));
        let Some(to) = to.filter(|_| aligned) else { return false };
        to.iter().zip(from).for_each(|(to, from)| to.set(from.get()));
        true
    }

    #[inline(always)]
    fn set_run(&self, offset: u64, step: u64, values: [B; BLOCK]) {
        if step != 1 || !set_contiguous(self, offset, values) {
            set_strided(self, offset, step, values);
        }
    }

    #[inline(always)]
    fn set_active(&self, _: u64, _: u64, _: [B; BLOCK], _: [u8; BLOCK]) -> bool {
        false
    }
}

#[inline(never)]
fn get_strided<B: Bits>(memory: &[Block<B>], offset: u64, step: u64) -> [B; BLOCK] {
    let mut values = [B::ZERO; BLOCK];
    for (lane, value) in values.iter_mut().enumerate() {
        *value = LaneMemory::get(memory, lane_offset(offset, step, lane));
    }
    values
}

#[inline(never)]
fn set_strided<B: Bits>(memory: &[Block<B>], offset: u64, step: u64, values: [B; BLOCK]) {
    for (lane, value) in values.into_iter().enumerate() {
        LaneMemory::set(memory, lane_offset(offset, step, lane), value);
    }
}

/// Returns an element of workgroup memory, if it is in bounds.
#[inline(always)]
pub(super) fn cell<B: Bits>(memory: &[Block<B>], offset: u64) -> Option<&Cell<B>> {
    let block: &Cell<[B]> = memory.get(offset as usize / BLOCK)?;
    block.as_slice_of_cells().get(offset as usize % BLOCK)
}

/// Lane bits that can be in workgroup memory.
pub(super) trait WorkgroupBits: AtomicBits {
    /// Returns the workgroup memory of elements of this width.
    fn cells(memory: &SharedMemory) -> &[Block<Self>];

    /// Returns the number of elements of this width of a workgroup.
    fn elements(sizes: Sizes) -> usize;
}

impl WorkgroupBits for u8 {
    /// Returns the workgroup memory of elements of this width.
    fn cells(memory: &SharedMemory) -> &[Block<Self>] {
        &memory.b8
    }

    fn elements(sizes: Sizes) -> usize {
        sizes.b8
    }
}

impl WorkgroupBits for u16 {
    /// Returns the workgroup memory of elements of this width.
    fn cells(memory: &SharedMemory) -> &[Block<Self>] {
        &memory.b16
    }

    fn elements(sizes: Sizes) -> usize {
        sizes.b16
    }
}

impl WorkgroupBits for u32 {
    /// Returns the workgroup memory of elements of this width.
    fn cells(memory: &SharedMemory) -> &[Block<Self>] {
        &memory.b32
    }

    fn elements(sizes: Sizes) -> usize {
        sizes.b32
    }
}

impl WorkgroupBits for u64 {
    /// Returns the workgroup memory of elements of this width.
    fn cells(memory: &SharedMemory) -> &[Block<Self>] {
        &memory.b64
    }

    fn elements(sizes: Sizes) -> usize {
        sizes.b64
    }
}
