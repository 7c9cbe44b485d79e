//! Loads and stores of one element at a time: uniform accesses, and those of rare element types or
//! memories.

use std::cell::Cell;

use super::frame::Frame;
use super::indices::each;
use super::memory::place;
use super::workgroup_memory::{InShared, cell};
use crate::code::{Access, Index, MemorySpace};
use crate::lanes::BLOCK;

/// An element of an access: the place of the first one, its number after that, and the lane.
#[derive(Clone, Copy)]
struct ElementIndex {
    place: u64,
    nth: u64,
    block: usize,
    lane: usize,
}

impl Frame<'_> {
    /// Executes a load from a uniform address.
    pub(super) fn load_scalar(&self, access: &Access) {
        let index = match access.address.index {
            Index::Scalar(scalar) => self.scalar(scalar) as u32,
            _ => 0,
        };
        let place = place(&access.address, index);
        for (nth, to) in (0..u64::from(access.count)).zip(access.to) {
            let which = ElementIndex { place, nth, block: 0, lane: 0 };
            self.set_scalar(to, self.element(access, which));
        }
    }

    pub(super) fn load_rare(&self, access: &Access) {
        let pattern = self.pattern(&access.address.index);
        for block in self.blocks() {
            let indices = each(self.indices(&pattern, block));
            for (nth, to) in (0..u64::from(access.count)).zip(access.to) {
                let mut words = [0; BLOCK];
                for lane in 0..BLOCK {
                    let place = place(&access.address, indices[lane]);
                    words[lane] = self.element(access, ElementIndex { place, nth, block, lane });
                }
                self.files().set_words(access.ty.size(), to as usize + block, &words);
            }
        }
    }

    pub(super) fn store_rare(&self, access: &Access) {
        let pattern = self.pattern(&access.address.index);
        for block in self.blocks() {
            let indices = each(self.indices(&pattern, block));
            let active = self.active(block);
            for (nth, from) in (0..u64::from(access.count)).zip(access.from) {
                let words = self.files().words_of(access.ty.size(), from.at(block));
                for lane in 0..BLOCK {
                    if active[lane] != 0 {
                        let place = place(&access.address, indices[lane]);
                        self.set_element(
                            access,
                            ElementIndex { place, nth, block, lane },
                            words[lane],
                        );
                    }
                }
            }
        }
    }

    fn element(&self, access: &Access, which: ElementIndex) -> u64 {
        match access.ty.size() {
            1 => self.element_of::<u8>(access.address.space, which).into(),
            2 => self.element_of::<u16>(access.address.space, which).into(),
            4 => self.element_of::<u32>(access.address.space, which).into(),
            _ => self.element_of::<u64>(access.address.space, which),
        }
    }

    fn set_element(&self, access: &Access, which: ElementIndex, word: u64) {
        match access.ty.size() {
            1 => self.set_element_of(access.address.space, which, word as u8),
            2 => self.set_element_of(access.address.space, which, word as u16),
            4 => self.set_element_of(access.address.space, which, word as u32),
            _ => self.set_element_of(access.address.space, which, word),
        }
    }

    /// Reads one element; zero if it is out of bounds.
    fn element_of<B: InShared>(&self, space: MemorySpace, which: ElementIndex) -> B {
        let ElementIndex { place, nth, block, lane } = which;
        match space {
            MemorySpace::Binding(binding) => {
                self.regions[binding as usize].get(place + nth * size_of::<B>() as u64)
            }
            MemorySpace::Shared(start) => {
                let cells = B::cells(&self.scratch.shared);
                cell(cells, u64::from(start) + place + nth).map_or(B::ZERO, Cell::get)
            }
            MemorySpace::Local { start, len } => self
                .local(B::file(self.files()), start, len, place + nth, block)
                .map_or(B::ZERO, |of_block| of_block.get()[lane]),
        }
    }

    /// Writes one element, unless it is out of bounds.
    fn set_element_of<B: InShared>(&self, space: MemorySpace, which: ElementIndex, value: B) {
        let ElementIndex { place, nth, block, lane } = which;
        match space {
            MemorySpace::Binding(binding) => {
                self.regions[binding as usize].set(place + nth * size_of::<B>() as u64, value);
            }
            MemorySpace::Shared(start) => {
                let cells = B::cells(&self.scratch.shared);
                if let Some(cell) = cell(cells, u64::from(start) + place + nth) {
                    cell.set(value);
                }
            }
            MemorySpace::Local { start, len } => {
                let file = B::file(self.files());
                if let Some(of_block) = self.local(file, start, len, place + nth, block) {
                    let lanes: &Cell<[B]> = of_block;
                    lanes.as_slice_of_cells()[lane].set(value);
                }
            }
        }
    }
}
