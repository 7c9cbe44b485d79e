//! Active-lane masks.

use super::frame::{Frame, Lanes};
use crate::code::{Exit, Side, Step};
use crate::lanes::{BLOCK, Bits};

impl Frame<'_> {
    /// Executes a step at which lanes diverge or reconverge. Returns the step to jump to, if any.
    pub(super) fn update_masks(&mut self, step: &Step) -> Option<u32> {
        match step {
            Step::Split { side, depth, if_empty } => {
                self.depths[*depth as usize] = (self.lanes, self.exit_count);
                self.take_side(side, true).then_some(*if_empty)
            }
            Step::Else { side, if_empty } => self.take_side(side, false).then_some(*if_empty),
            Step::Join { depth, mask, if_empty } => self.join(*depth, *mask).then_some(*if_empty),
            Step::Enter { depth, into } => {
                self.depths[*depth as usize] = (self.lanes, self.exit_count);
                self.copy_mask(*into);
                self.lanes.mask = *into;
                None
            }
            Step::Exit { exit, if_empty } => self.exit_lanes(exit).then_some(*if_empty),
            Step::Break { masks, to } => {
                self.remove(masks);
                Some(*to)
            }
            _ => None,
        }
    }

    /// Activates the lanes of one side of a branch. Returns whether the mask is empty.
    fn take_side(&mut self, side: &Side, is_then: bool) -> bool {
        match self.uniform_condition(side.number) {
            // All active lanes take this side. The other one was skipped, and changed no mask.
            Some(holds) if holds == is_then => {
                if side.needs_mask {
                    self.copy_mask(side.into);
                    self.lanes.mask = side.into;
                }
                false
            }
            Some(_) => true,
            None => {
                self.restrict(side.condition, side.from, side.into, (!is_then).into());
                self.activate(side.into)
            }
        }
    }

    /// Reactivates the lanes that diverged at a depth, except those that have left since. Returns
    /// whether the mask is empty.
    fn join(&mut self, depth: u32, mask: u32) -> bool {
        let (lanes, exit_count) = self.depths[depth as usize];
        if exit_count == self.exit_count {
            self.lanes = lanes;
            return false;
        }
        self.activate(mask)
    }

    /// Sets `into` to the lanes of `from` for which a condition holds, or with `flip` 1, does not
    /// hold.
    fn restrict(&self, condition: u32, from: u32, into: u32, flip: u8) {
        let file = u8::file(self.files());
        for block in self.all_blocks() {
            let mask = file[from as usize + block].get();
            let holds = file[condition as usize + block].get();
            let both = std::array::from_fn(|lane| mask[lane] & (holds[lane] ^ flip));
            file[into as usize + block].set(both);
        }
    }

    fn all_blocks(&self) -> std::ops::Range<usize> {
        0..self.block_count
    }

    /// Makes a mask the active one. Returns whether it is empty.
    fn activate(&mut self, mask: u32) -> bool {
        let file = u8::file(self.files());
        let (mut first, mut last, mut full, mut filled) = (usize::MAX, 0, true, 0);
        for block in self.all_blocks() {
            let active = file[mask as usize + block].get();
            let live = file[self.code.live_mask as usize + block].get();
            full &= active == live;
            if active != [0; BLOCK] {
                first = first.min(block);
                last = block + 1;
                filled += usize::from(active == [1; BLOCK]);
            }
        }
        let first = first.min(last);
        self.lanes = Lanes { mask, first, end: last, full, dense: filled == last - first };
        last == 0
    }

    /// Removes the leaving lanes from the exit's masks. Returns whether the active mask is empty.
    fn exit_lanes(&mut self, exit: &Exit) -> bool {
        let uniform = self.uniform_condition(exit.number);
        let uniform = uniform.map(|holds| u8::from(holds) == exit.leave_if);
        let all = uniform == Some(true)
            || exit.all.is_some_and(|all| self.scalar(all) == exit.leave_if.into());
        if uniform == Some(false) && !all {
            return false;
        }
        // Computes the leaving lanes of a whole block at a time.
        let (invert, leave_all) = (broadcast_byte(exit.leave_if ^ 1), broadcast_byte(all.into()));
        let file = u8::file(self.files());
        let blocks_as_u128 = |start: u32| {
            file[start as usize..][self.blocks()]
                .iter()
                .map(|block| u128::from_ne_bytes(block.get()))
        };
        let leaving = |active: u128, holds: u128| active & ((holds ^ invert) | leave_all);
        let lanes = || blocks_as_u128(self.lanes.mask).zip(blocks_as_u128(exit.condition));
        if lanes().fold(0, |any, (active, holds)| any | leaving(active, holds)) == 0 {
            return false;
        }
        for block in self.blocks() {
            let (active, holds) = (self.active(block), file[exit.condition as usize + block].get());
            let mut leaving = [0; BLOCK];
            for lane in 0..BLOCK {
                leaving[lane] = active[lane] & (holds[lane] ^ exit.leave_if ^ 1 | u8::from(all));
            }
            if leaving != [0; BLOCK] {
                self.remove_lanes(exit, block, leaving);
            }
        }
        self.exit_count += 1;
        self.activate(self.lanes.mask)
    }

    /// Removes lanes of a block from the masks of an exit, and writes its copies to them.
    fn remove_lanes(&self, exit: &Exit, block: usize, leaving: [u8; BLOCK]) {
        let (masks, registers) = (u8::file(self.files()), u32::file(self.files()));
        for mask in &exit.masks {
            let cell = &masks[*mask as usize + block];
            let old = cell.get();
            cell.set(std::array::from_fn(|lane| old[lane] & (leaving[lane] ^ 1)));
        }
        for (to, from) in &exit.copies {
            let (cell, value) = (&registers[*to as usize + block], self.scalar(*from) as u32);
            let mut lanes = cell.get();
            for lane in 0..BLOCK {
                // All bits set for lanes that leave.
                let mask = u32::from(leaving[lane]).wrapping_neg();
                lanes[lane] = (value & mask) | (lanes[lane] & !mask);
            }
            cell.set(lanes);
        }
    }

    fn copy_mask(&self, into: u32) {
        let file = u8::file(self.files());
        for block in self.all_blocks() {
            file[into as usize + block].set(self.active(block));
        }
    }

    /// Removes the active lanes from masks; the active mask is one of them.
    fn remove(&mut self, masks: &[u32]) {
        self.exit_count += 1;
        let file = u8::file(self.files());
        for block in self.blocks() {
            let leaving = self.active(block);
            for mask in masks {
                let cell = &file[*mask as usize + block];
                let old = cell.get();
                cell.set(std::array::from_fn(|lane| old[lane] & (leaving[lane] ^ 1)));
            }
        }
    }
}

/// Broadcasts a byte to all lanes of a block.
const fn broadcast_byte(byte: u8) -> u128 {
    u128::from_ne_bytes([byte; BLOCK])
}
