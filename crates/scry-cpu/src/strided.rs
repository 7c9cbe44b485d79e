//! Strided words, in registers or in plain memory, and the loop over them.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::access::prefetch;
use crate::lanes::{BLOCK, Block};

/// Memory without concurrent writes while it is read, or accesses while it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain<'a> {
    start: *mut u8,
    size: u64,
    memory: PhantomData<&'a Cell<u8>>,
}

/// The strides of blocks of lanes, in rows and between rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    pub rows: usize,
    /// Blocks of a row.
    pub blocks: usize,
}

/// Words for some blocks of lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a> {
    first: *mut u8,
    /// Bytes from the words of one block to those of the next, and from one row to the next.
    apart: [isize; 2],
    grid: Grid,
    /// Whether one word is broadcast to all lanes of a block.
    shared: bool,
    /// Prefetch distance in bytes; 0 if the next access is known to be close.
    ahead: usize,
    memory: PhantomData<&'a Cell<u8>>,
}

impl<'a> Plain<'a> {
    /// # Safety
    /// The bytes are there for `'a` and initialised, and no other thread interferes, as above.
    pub(crate) unsafe fn new(start: *mut u8, size: u64) -> Self {
        Self { start, size, memory: PhantomData }
    }

    /// One thread's registers or memory.
    pub(crate) fn of(blocks: &'a [Block<u32>]) -> Self {
        // SAFETY: blocks lie one after the other without gaps; cells are one thread's, and may be
        // written through shared references.
        unsafe { Self::new(blocks.as_ptr().cast_mut().cast(), size_of_val(blocks) as u64) }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.size == 0
    }

    /// Returns the words of a grid of blocks from a byte on, with the strides of blocks and rows in
    /// bytes; `None` if some are out of bounds.
    #[inline(always)]
    pub(crate) fn words(
        self,
        byte: u64,
        apart: [i64; 2],
        grid: Grid,
        shared: bool,
    ) -> Option<Words<'a>> {
        let width = size_of::<u32>() * if shared { 1 } else { BLOCK };
        let last = [grid.blocks as i64 - 1, grid.rows as i64 - 1];
        let along = apart[0].checked_mul(last[0])?;
        let across = apart[1].checked_mul(last[1])?;
        let lowest = along.min(0).checked_add(across.min(0))?;
        let highest = along.max(0).checked_add(across.max(0))?;
        let end = byte.checked_add_signed(highest)?.checked_add(width as u64)?;
        if last[0] < 0 || last[1] < 0 || byte.checked_add_signed(lowest).is_none() {
            return None;
        }
        (end <= self.size).then(|| Words {
            first: self.start.wrapping_add(byte as usize),
            apart: [apart[0] as isize, apart[1] as isize],
            grid,
            shared,
            ahead: 0,
            memory: PhantomData,
        })
    }
}

impl Words<'_> {
    /// The same, with prefetching.
    #[inline(always)]
    pub(crate) fn streaming(self) -> Self {
        const BYTES: usize = size_of::<u32>() * BLOCK;
        // Rows that are all the same stay in the cache, and need no prefetching.
        let line = self.apart[0] == BYTES as isize && (self.grid.rows == 1 || self.apart[1] != 0);
        Self { ahead: if line { self.grid.blocks * BYTES } else { 0 }, ..self }
    }
}

/// Stores `f` of each lane of `a`, `b` and `c` to `d`. Only `a` may be a broadcast within a block.
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
    let grid = d.grid;
    assert!(abc.iter().all(|words| words.grid == grid), "words of as many blocks");
    assert!(a.shared == SHARED && !b.shared && !c.shared && !d.shared, "a word for each lane");
    for row in 0..grid.rows as isize {
        // Not by `map`, which is not compiled with the caller's target features.
        let (a, b, c, d) = (a.row(row), b.row(row), c.row(row), d.row(row));
        for block in 0..grid.blocks as isize {
            if AHEAD {
                a.fetch(block);
                b.fetch(block);
                c.fetch(block);
            }
            let mut result = [0; BLOCK];
            // SAFETY: there are as many rows and blocks, and a word for each lane where one is
            // read.
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
}

/// Writes to `d` what becomes of each lane of `c` when each term in turn is multiplied by its
/// factor and added; `last` then makes the result of that and of a lane of the words beside it.
#[inline(always)]
pub(crate) fn fold<const N: usize>(
    [c, d]: [Words<'_>; 2],
    terms: [(Words<'_>, f32); N],
    multiply_add: impl Fn(f32, f32, f32) -> f32,
    end: Option<Words<'_>>,
    last: impl Fn(f32, f32) -> f32,
) {
    let grid = d.grid;
    let mut ahead = c.ahead != 0;
    assert!(c.is_run(grid) && d.is_run(grid), "a word for each lane");
    for (x, _) in &terms {
        assert!(x.is_run(grid), "a word for each lane");
        ahead |= x.ahead != 0;
    }
    assert!(end.is_none_or(|end| end.is_run(grid)), "a word for each lane");
    for row in 0..grid.rows as isize {
        let (c, d, end) = (c.row(row), d.row(row), end.unwrap_or(c).row(row));
        let mut x = [c; N];
        for nth in 0..N {
            x[nth] = terms[nth].0.row(row);
        }
        for block in 0..grid.blocks {
            let byte = block * size_of::<[u32; BLOCK]>();
            if ahead {
                c.fetch_run(byte);
                for x in &x {
                    x.fetch_run(byte);
                }
            }
            // SAFETY: there are as many rows and blocks, one after the other, and a word for each
            // lane.
            unsafe {
                let mut sum = [0.0; BLOCK];
                let start = c.get_run(byte);
                for lane in 0..BLOCK {
                    sum[lane] = f32::from_bits(start[lane]);
                }
                for nth in 0..N {
                    let (x, y) = (x[nth].get_run(byte), terms[nth].1);
                    for lane in 0..BLOCK {
                        sum[lane] = multiply_add(f32::from_bits(x[lane]), y, sum[lane]);
                    }
                }
                let (end, mut result) = (end.get_run(byte), [0; BLOCK]);
                for lane in 0..BLOCK {
                    result[lane] = last(sum[lane], f32::from_bits(end[lane])).to_bits();
                }
                d.first.wrapping_add(byte).cast::<[u32; BLOCK]>().write_unaligned(result);
            }
        }
    }
}

/// Words of one row.
#[derive(Clone, Copy)]
struct Row {
    first: *mut u8,
    apart: isize,
    ahead: usize,
}

impl Words<'_> {
    /// Whether there is a word for each lane of a grid, whose blocks follow each other closely.
    #[inline(always)]
    pub(crate) fn is_run(&self, grid: Grid) -> bool {
        let close = grid.blocks == 1 || self.apart[0] == size_of::<[u32; BLOCK]>() as isize;
        self.grid == grid && !self.shared && close
    }

    #[inline(always)]
    fn row(&self, row: isize) -> Row {
        let [apart, across] = self.apart;
        Row { first: self.first.wrapping_offset(row * across), apart, ahead: self.ahead }
    }
}

impl Row {
    #[inline(always)]
    fn at(self, block: isize) -> *mut u8 {
        self.first.wrapping_offset(block * self.apart)
    }

    /// Prefetches the next words.
    #[inline(always)]
    fn fetch(self, block: isize) {
        prefetch(self.at(block).wrapping_add(self.ahead));
    }

    /// The same from a byte of the row on.
    #[inline(always)]
    fn fetch_run(self, byte: usize) {
        if self.ahead != 0 {
            prefetch(self.first.wrapping_add(byte + self.ahead));
        }
    }

    /// # Safety
    /// There is a word for each lane of a block from this byte of the row on.
    #[inline(always)]
    unsafe fn get_run(self, byte: usize) -> [u32; BLOCK] {
        // SAFETY: as the caller promises; that the words are there was found out before this was
        // made.
        unsafe { self.first.wrapping_add(byte).cast::<[u32; BLOCK]>().read_unaligned() }
    }

    /// # Safety
    /// There is such a block, and a word for each lane.
    #[inline(always)]
    unsafe fn get(self, block: isize) -> [u32; BLOCK] {
        // SAFETY: as the caller promises; that the words are there was found out before this was
        // made.
        unsafe { self.at(block).cast::<[u32; BLOCK]>().read_unaligned() }
    }
}
