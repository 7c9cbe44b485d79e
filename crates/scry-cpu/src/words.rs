//! Words that lie at even distances, in registers or in plain memory, and the loop over them.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::access::soon;
use crate::lanes::{BLOCK, Block};

/// Memory that no other thread writes while this one reads it, nor touches while this one writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain<'a> {
    start: *mut u8,
    size: u64,
    memory: PhantomData<&'a Cell<u8>>,
}

/// Words for some blocks of lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a> {
    first: *mut u8,
    /// Bytes from the words of one block to those of the next.
    apart: isize,
    blocks: usize,
    /// Whether there is one word for all lanes of a block, rather than one for each.
    shared: bool,
    /// Bytes between what is read and what may be read soon; 0 if that is known to be close.
    ahead: usize,
    memory: PhantomData<&'a Cell<u8>>,
}

impl<'a> Plain<'a> {
    /// # Safety
    /// The bytes are there for `'a` and initialised, and nobody interferes, as above.
    pub(crate) unsafe fn new(start: *mut u8, size: u64) -> Self {
        Self { start, size, memory: PhantomData }
    }

    /// One thread's registers or memory.
    pub(crate) fn of(blocks: &'a [Block<u32>]) -> Self {
        // SAFETY: blocks lie one after the other without gaps; cells are one thread's, and may be
        // written through shared references.
        unsafe { Self::new(blocks.as_ptr().cast_mut().cast(), size_of_val(blocks) as u64) }
    }

    /// The words of so many blocks from a byte on, so many bytes apart; none if some lie outside.
    #[inline(always)]
    pub(crate) fn words(
        self,
        byte: u64,
        apart: i64,
        blocks: usize,
        shared: bool,
    ) -> Option<Words<'a>> {
        let width = size_of::<u32>() * if shared { 1 } else { BLOCK };
        let reach = apart.checked_mul(blocks as i64 - 1)?;
        let lowest = byte.checked_add_signed(reach.min(0));
        let end = byte.checked_add_signed(reach.max(0))?.checked_add(width as u64)?;
        if blocks == 0 || lowest.is_none() || end > self.size {
            return None;
        }
        Some(Words {
            first: self.start.wrapping_add(byte as usize),
            apart: apart as isize,
            blocks,
            shared,
            ahead: 0,
            memory: PhantomData,
        })
    }
}

impl Words<'_> {
    /// The same, of which what follows may be read soon.
    #[inline(always)]
    pub(crate) fn streaming(self) -> Self {
        let line = self.apart == (size_of::<u32>() * BLOCK) as isize;
        Self { ahead: if line { self.blocks * self.apart as usize } else { 0 }, ..self }
    }
}

/// Writes to `d` what `f` makes of each lane of `a`, `b` and `c`. Only `a` may have one word for
/// all lanes of a block.
#[inline(always)]
pub(crate) fn each(abc: [Words<'_>; 3], d: Words<'_>, f: impl Fn([u32; 3]) -> u32) {
    let ahead = abc.iter().any(|words| words.ahead != 0);
    match (abc[0].shared, ahead) {
        (true, true) => each_as::<true, true>(abc, d, f),
        (true, false) => each_as::<true, false>(abc, d, f),
        (false, true) => each_as::<false, true>(abc, d, f),
        (false, false) => each_as::<false, false>(abc, d, f),
    }
}

#[inline(always)]
fn each_as<const SHARED: bool, const AHEAD: bool>(
    abc: [Words<'_>; 3],
    d: Words<'_>,
    f: impl Fn([u32; 3]) -> u32,
) {
    let [a, b, c] = abc;
    assert!(abc.iter().all(|words| words.blocks == d.blocks), "words of as many blocks");
    assert!(a.shared == SHARED && !b.shared && !c.shared && !d.shared, "a word for each lane");
    for block in 0..d.blocks as isize {
        if AHEAD {
            abc.iter().for_each(|words| words.fetch(block));
        }
        let mut result = [0; BLOCK];
        // SAFETY: there are as many blocks, and a word for each lane where one is read.
        unsafe {
            let a = if SHARED {
                [a.at(block).cast::<u32>().read_unaligned(); BLOCK]
            } else {
                a.get(block)
            };
            let (b, c) = (b.get(block), c.get(block));
            for lane in 0..BLOCK {
                result[lane] = f([a[lane], b[lane], c[lane]]);
            }
            d.at(block).cast::<[u32; BLOCK]>().write_unaligned(result);
        }
    }
}

impl Words<'_> {
    #[inline(always)]
    fn at(&self, block: isize) -> *mut u8 {
        self.first.wrapping_offset(block * self.apart)
    }

    /// # Safety
    /// There is such a block, and a word for each lane.
    #[inline(always)]
    unsafe fn get(&self, block: isize) -> [u32; BLOCK] {
        // SAFETY: as the caller promises; that the words are there was found out before this was
        // made.
        unsafe { self.at(block).cast::<[u32; BLOCK]>().read_unaligned() }
    }

    #[inline(always)]
    fn fetch(&self, block: isize) {
        soon(self.at(block).wrapping_add(self.ahead));
    }
}
