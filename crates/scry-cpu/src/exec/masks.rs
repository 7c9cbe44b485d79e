//! Which lanes are active.

use super::frame::Frame;
use crate::code::Step;
use crate::lanes::{BLOCK, Bits};

impl Frame<'_> {
    /// A step at which lanes part or meet; where to go on, if not at the next step.
    pub(super) fn part(&mut self, step: &Step) -> Option<u32> {
        match step {
            Step::Split { condition, from, into, none } => {
                self.restrict(*condition, *from, *into, 0);
                self.look(*into).then_some(*none)
            }
            Step::Otherwise { condition, from, into, none } => {
                self.restrict(*condition, *from, *into, 1);
                self.look(*into).then_some(*none)
            }
            Step::Join { mask, none } => self.look(*mask).then_some(*none),
            Step::Enter { into } => {
                self.copy_mask(*into);
                self.mask = *into;
                None
            }
            Step::Leave { masks, to } => {
                self.remove(masks);
                Some(*to)
            }
            _ => None,
        }
    }

    /// The lanes of `from` where a condition holds, or with `flip` 1, does not hold.
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
        0..self.code.group.lanes().div_ceil(BLOCK)
    }

    /// Makes a mask the active one; whether it is empty.
    fn look(&mut self, mask: u32) -> bool {
        let file = u8::file(self.files());
        let (mut first, mut last, mut full) = (usize::MAX, 0, true);
        for block in self.all_blocks() {
            let active = file[mask as usize + block].get();
            let alive = file[self.code.masks.alive as usize + block].get();
            full &= active == alive;
            if active != [0; BLOCK] {
                first = first.min(block);
                last = block + 1;
            }
        }
        self.mask = mask;
        self.full = full;
        self.blocks = first.min(last)..last;
        last == 0
    }

    fn copy_mask(&self, into: u32) {
        let file = u8::file(self.files());
        for block in self.all_blocks() {
            file[into as usize + block].set(self.active(block));
        }
    }

    /// Takes the active lanes out of masks, the active one being the last or one of them.
    fn remove(&self, masks: &[u32]) {
        let file = u8::file(self.files());
        for block in self.blocks.clone() {
            let leaving = self.active(block);
            for mask in masks {
                let place = &file[*mask as usize + block];
                let there = place.get();
                place.set(std::array::from_fn(|lane| there[lane] & (leaving[lane] ^ 1)));
            }
        }
    }
}
