//! Workgroup memory, for loads, stores and atomics.

use std::cell::Cell;

use super::memory::{Memory, lane_place};
use super::scratch::SharedMemory;
use crate::access::{Shared, neighbours, set_neighbours};
use crate::lanes::{BLOCK, Bits, Block, Sizes};

/// Workgroup memory of one element size. One thread executes all invocations of a workgroup.
impl<B: Bits> Memory<B> for [Block<B>] {
    const ELEMENT: u64 = 1;

    #[inline(always)]
    fn get(&self, place: u64) -> B {
        cell(self, place).map_or(B::ZERO, Cell::get)
    }

    #[inline(always)]
    fn set(&self, place: u64, value: B) {
        if let Some(cell) = cell(self, place) {
            cell.set(value);
        }
    }

    #[inline(always)]
    fn get_run(&self, place: u64, step: u64) -> [B; BLOCK] {
        match (step, neighbours(self, place)) {
            (1, Some(run)) => run,
            _ => get_apart(self, place, step),
        }
    }

    #[inline(always)]
    fn get_all(&self, place: u64, to: &[Block<B>]) -> bool {
        for (nth, block) in to.iter().enumerate() {
            match neighbours(self, place + (nth * BLOCK) as u64) {
                Some(run) => block.set(run),
                None => return false,
            }
        }
        true
    }

    #[inline(always)]
    fn set_all(&self, place: u64, from: &[Block<B>]) -> bool {
        let (first, aligned) = (place as usize / BLOCK, place.is_multiple_of(BLOCK as u64));
        let to = first.checked_add(from.len()).and_then(|end| <[_]>::get(self, first..end));
        let Some(to) = to.filter(|_| aligned) else { return false };
        to.iter().zip(from).for_each(|(to, from)| to.set(from.get()));
        true
    }

    #[inline(always)]
    fn set_run(&self, place: u64, step: u64, values: [B; BLOCK]) {
        if step != 1 || !set_neighbours(self, place, values) {
            set_apart(self, place, step, values);
        }
    }

    #[inline(always)]
    fn set_some(&self, _: u64, _: u64, _: [B; BLOCK], _: [u8; BLOCK]) -> bool {
        false
    }
}

#[inline(never)]
fn get_apart<B: Bits>(memory: &[Block<B>], place: u64, step: u64) -> [B; BLOCK] {
    let mut values = [B::ZERO; BLOCK];
    for (lane, value) in values.iter_mut().enumerate() {
        *value = Memory::get(memory, lane_place(place, step, lane));
    }
    values
}

#[inline(never)]
fn set_apart<B: Bits>(memory: &[Block<B>], place: u64, step: u64, values: [B; BLOCK]) {
    for (lane, value) in values.into_iter().enumerate() {
        Memory::set(memory, lane_place(place, step, lane), value);
    }
}

/// An element of workgroup memory.
#[inline(always)]
pub(super) fn cell<B: Bits>(memory: &[Block<B>], place: u64) -> Option<&Cell<B>> {
    let block: &Cell<[B]> = memory.get(place as usize / BLOCK)?;
    block.as_slice_of_cells().get(place as usize % BLOCK)
}

/// Bits of workgroup memory.
pub(super) trait InShared: Shared {
    fn cells(memory: &SharedMemory) -> &[Block<Self>];

    /// Elements of this width that a workgroup has.
    fn elements(sizes: Sizes) -> usize;
}

impl InShared for u8 {
    fn cells(memory: &SharedMemory) -> &[Block<Self>] {
        &memory.bytes
    }

    fn elements(sizes: Sizes) -> usize {
        sizes.bytes
    }
}

impl InShared for u16 {
    fn cells(memory: &SharedMemory) -> &[Block<Self>] {
        &memory.halves
    }

    fn elements(sizes: Sizes) -> usize {
        sizes.halves
    }
}

impl InShared for u32 {
    fn cells(memory: &SharedMemory) -> &[Block<Self>] {
        &memory.words
    }

    fn elements(sizes: Sizes) -> usize {
        sizes.words
    }
}

impl InShared for u64 {
    fn cells(memory: &SharedMemory) -> &[Block<Self>] {
        &memory.doubles
    }

    fn elements(sizes: Sizes) -> usize {
        sizes.doubles
    }
}
