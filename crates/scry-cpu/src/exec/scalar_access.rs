//! Loads and stores of one element at a time: uniform accesses, and those of rare element types or
//! memories.

use std::cell::Cell;

use super::frame::Frame;
use super::indices::lane_indices;
use super::memory::element_offset;
use super::workgroup_memory::{WorkgroupBits, cell};
use crate::code::{Access, Index, MemorySpace};
use crate::lanes::BLOCK;

/// An element of an access for one lane: the offset of the first element, the number of this one
/// after it, and the lane.
#[derive(Clone, Copy)]
struct ElementIndex {
    offset: u64,
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
        let offset = element_offset(&access.address, index);
        for (nth, to) in (0..u64::from(access.count)).zip(access.to) {
            let which = ElementIndex { offset, nth, block: 0, lane: 0 };
            self.set_scalar(to, self.element(access, which));
        }
    }

    /// Executes a load of a rare element type or memory.
    pub(super) fn load_by_element(&self, access: &Access) {
        let pattern = self.pattern(&access.address.index);
        for block in self.blocks() {
            let indices = lane_indices(self.indices(&pattern, block));
            for (nth, to) in (0..u64::from(access.count)).zip(access.to) {
                let mut values = [0; BLOCK];
                for lane in 0..BLOCK {
                    let offset = element_offset(&access.address, indices[lane]);
                    values[lane] = self.element(access, ElementIndex { offset, nth, block, lane });
                }
                self.files().set_block(access.ty.size(), to as usize + block, &values);
            }
        }
    }

    /// Executes a store of a rare element type or memory.
    pub(super) fn store_by_element(&self, access: &Access) {
        let pattern = self.pattern(&access.address.index);
        for block in self.blocks() {
            let indices = lane_indices(self.indices(&pattern, block));
            let active = self.active(block);
            for (nth, from) in (0..u64::from(access.count)).zip(access.from) {
                let values = self.files().widened_block(access.ty.size(), from.at(block));
                for lane in 0..BLOCK {
                    if active[lane] != 0 {
                        let offset = element_offset(&access.address, indices[lane]);
                        self.set_element(
                            access,
                            ElementIndex { offset, nth, block, lane },
                            values[lane],
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

    fn set_element(&self, access: &Access, which: ElementIndex, bits: u64) {
        match access.ty.size() {
            1 => self.set_element_of(access.address.space, which, bits as u8),
            2 => self.set_element_of(access.address.space, which, bits as u16),
            4 => self.set_element_of(access.address.space, which, bits as u32),
            _ => self.set_element_of(access.address.space, which, bits),
        }
    }

    /// Reads one element; zero if it is out of bounds.
    fn element_of<B: WorkgroupBits>(&self, space: MemorySpace, which: ElementIndex) -> B {
        let ElementIndex { offset, nth, block, lane } = which;
        match space {
            MemorySpace::Binding(binding) => {
                self.regions[binding as usize].get(offset + nth * size_of::<B>() as u64)
            }
            MemorySpace::Shared(start) => {
                let cells = B::cells(&self.scratch.shared);
                cell(cells, u64::from(start) + offset + nth).map_or(B::ZERO, Cell::get)
            }
            MemorySpace::Local { start, len } => self
                .local(B::file(self.files()), start, len, offset + nth, block)
                .map_or(B::ZERO, |lanes| lanes.get()[lane]),
        }
    }

    /// Writes one element, unless it is out of bounds.
    fn set_element_of<B: WorkgroupBits>(&self, space: MemorySpace, which: ElementIndex, value: B) {
        let ElementIndex { offset, nth, block, lane } = which;
        match space {
            MemorySpace::Binding(binding) => {
                self.regions[binding as usize].set(offset + nth * size_of::<B>() as u64, value);
            }
            MemorySpace::Shared(start) => {
                let cells = B::cells(&self.scratch.shared);
                if let Some(cell) = cell(cells, u64::from(start) + offset + nth) {
                    cell.set(value);
                }
            }
            MemorySpace::Local { start, len } => {
                let file = B::file(self.files());
                if let Some(block_lanes) = self.local(file, start, len, offset + nth, block) {
                    let lanes: &Cell<[B]> = block_lanes;
                    lanes.as_slice_of_cells()[lane].set(value);
                }
            }
        }
    }
}
