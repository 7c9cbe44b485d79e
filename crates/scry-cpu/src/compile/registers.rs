//! Register allocation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use scry_ir::kir::Type;

use crate::lanes::Sizes;

/// Returns the index of a type's register file: 0 to 3 for lanes of 1, 2, 4 and 8 bytes.
pub(crate) fn file_index(ty: Type) -> usize {
    ty.size().trailing_zeros() as usize
}

/// The register allocator.
#[derive(Debug)]
pub(crate) struct Registers {
    /// Number of blocks of a register.
    blocks: u32,
    /// For each file, the first blocks of registers that can be allocated again.
    free: [Vec<u32>; 4],
    /// For each file, the first block that was never allocated.
    next: [u32; 4],
    /// Registers in use: position of the last use, file, and first block.
    busy: BinaryHeap<Reverse<(u32, usize, u32)>>,
}

impl Registers {
    pub(crate) fn new(blocks: u32) -> Self {
        Self { blocks, free: Default::default(), next: [0; 4], busy: BinaryHeap::new() }
    }

    /// Allocates a register that is free again after position `last`.
    pub(crate) fn allocate(&mut self, last: u32, ty: Type) -> u32 {
        let file = file_index(ty);
        let start = self.free[file].pop().unwrap_or_else(|| self.extend(file, self.blocks));
        self.busy.push(Reverse((last, file, start)));
        start
    }

    /// Allocates a register for the whole kernel.
    pub(crate) fn allocate_permanent(&mut self, ty: Type) -> u32 {
        self.extend(file_index(ty), self.blocks)
    }

    /// Allocates one block for the whole kernel.
    pub(crate) fn allocate_block(&mut self, ty: Type) -> u32 {
        self.extend(file_index(ty), 1)
    }

    /// Allocates `count` contiguous registers for the whole kernel.
    pub(crate) fn allocate_array(&mut self, ty: Type, count: u32) -> u32 {
        self.extend(file_index(ty), self.blocks * count)
    }

    /// Adds blocks to a file, and returns the first one.
    fn extend(&mut self, file: usize, blocks: u32) -> u32 {
        let start = self.next[file];
        self.next[file] += blocks;
        start
    }

    /// Frees the registers whose last use is at `position` or before.
    pub(crate) fn expire(&mut self, position: u32) {
        while let Some(Reverse((last, file, start))) = self.busy.peek().copied() {
            if last > position {
                break;
            }
            self.busy.pop();
            self.free[file].push(start);
        }
    }

    /// Returns the number of blocks of each file.
    pub(crate) fn sizes(&self) -> Sizes {
        let [b8, b16, b32, b64] = self.next.map(|next| next as usize);
        Sizes { b8, b16, b32, b64 }
    }
}
