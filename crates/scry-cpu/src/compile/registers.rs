//! Register allocation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use scry_ir::kir::Type;

use crate::lanes::Sizes;

/// A file of lane registers: 0 to 3 for lanes of 1, 2, 4 and 8 bytes.
pub(crate) fn file(ty: Type) -> usize {
    ty.size().trailing_zeros() as usize
}

/// The register allocator.
#[derive(Debug)]
pub(crate) struct Registers {
    /// Blocks of a register.
    blocks: u32,
    free: [Vec<u32>; 4],
    next: [u32; 4],
    /// Registers in use by position of their last use.
    busy: BinaryHeap<Reverse<(u32, usize, u32)>>,
}

impl Registers {
    pub(crate) fn new(blocks: u32) -> Self {
        Self { blocks, free: Default::default(), next: [0; 4], busy: BinaryHeap::new() }
    }

    /// Allocates a register until after position `last`.
    pub(crate) fn until(&mut self, last: u32, ty: Type) -> u32 {
        let file = file(ty);
        let start = self.free[file].pop().unwrap_or_else(|| self.take(file, self.blocks));
        self.busy.push(Reverse((last, file, start)));
        start
    }

    /// Allocates a register for the whole kernel.
    pub(crate) fn forever(&mut self, ty: Type) -> u32 {
        self.take(file(ty), self.blocks)
    }

    /// Allocates one block for the whole kernel.
    pub(crate) fn block(&mut self, ty: Type) -> u32 {
        self.take(file(ty), 1)
    }

    /// Allocates `count` contiguous registers for the whole kernel.
    pub(crate) fn array(&mut self, ty: Type, count: u32) -> u32 {
        self.take(file(ty), self.blocks * count)
    }

    fn take(&mut self, file: usize, blocks: u32) -> u32 {
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

    /// Blocks of each file.
    pub(crate) fn sizes(&self) -> Sizes {
        let [bytes, halves, words, doubles] = self.next.map(|next| next as usize);
        Sizes { bytes, halves, words, doubles }
    }
}
