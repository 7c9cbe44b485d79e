//! Strided 32-bit words, in registers or in memory, and the loops over them.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::access::prefetch;
use crate::lanes::{BLOCK, Block};

/// Memory that can be accessed non-atomically: no other thread writes what this thread reads, or
/// accesses what it writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain<'a> {
    start: *mut u8,
    size: u64,
    memory: PhantomData<&'a Cell<u8>>,
}

/// The shape of a number of blocks of lanes: rows of the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    pub rows: usize,
    /// Number of blocks of a row.
    pub blocks: usize,
}

/// The words of a grid of blocks of lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a> {
    first: *mut u8,
    /// Strides in bytes from one block to the next, and from one row to the next.
    strides: [isize; 2],
    grid: Grid,
    /// Whether one word is broadcast to all lanes of a block.
    broadcast: bool,
    /// Prefetch distance in bytes; 0 for no prefetching.
    prefetch_distance: usize,
    memory: PhantomData<&'a Cell<u8>>,
}

impl<'a> Plain<'a> {
    /// # Safety
    /// The bytes are alive for `'a` and initialised. No other thread writes them while they are
    /// read, or accesses them while they are written.
    pub(crate) unsafe fn new(start: *mut u8, size: u64) -> Self {
        Self { start, size, memory: PhantomData }
    }

    /// Returns the registers or memory of one thread.
    pub(crate) fn from_blocks(blocks: &'a [Block<u32>]) -> Self {
        // SAFETY: blocks are contiguous; cells are not shared between threads, and may be written
        // through shared references.
        unsafe { Self::new(blocks.as_ptr().cast_mut().cast(), size_of_val(blocks) as u64) }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.size == 0
    }

    /// Returns the words of a grid of blocks from a byte on; `None` if some are out of bounds.
    /// `strides` are those of blocks and rows, in bytes.
    #[inline(always)]
    pub(crate) fn words(
        self,
        byte: u64,
        strides: [i64; 2],
        grid: Grid,
        broadcast: bool,
    ) -> Option<Words<'a>> {
        let width = size_of::<u32>() * if broadcast { 1 } else { BLOCK };
        let last = [grid.blocks as i64 - 1, grid.rows as i64 - 1];
        let along = strides[0].checked_mul(last[0])?;
        let across = strides[1].checked_mul(last[1])?;
        let lowest = along.min(0).checked_add(across.min(0))?;
        let highest = along.max(0).checked_add(across.max(0))?;
        let end = byte.checked_add_signed(highest)?.checked_add(width as u64)?;
        if last[0] < 0 || last[1] < 0 || byte.checked_add_signed(lowest).is_none() {
            return None;
        }
        (end <= self.size).then(|| Words {
            first: self.start.wrapping_add(byte as usize),
            strides: [strides[0] as isize, strides[1] as isize],
            grid,
            broadcast,
            prefetch_distance: 0,
            memory: PhantomData,
        })
    }
}

impl Words<'_> {
    /// Returns the same words; with prefetching if they are sequential.
    #[inline(always)]
    pub(crate) fn with_prefetch(self) -> Self {
        const BYTES: usize = size_of::<u32>() * BLOCK;
        // Repeated rows stay in the cache, and need no prefetching.
        let is_sequential =
            self.strides[0] == BYTES as isize && (self.grid.rows == 1 || self.strides[1] != 0);
        let prefetch_distance = if is_sequential { self.grid.blocks * BYTES } else { 0 };
        Self { prefetch_distance, ..self }
    }
}

/// Stores `f` of each lane of `a`, `b` and `c` to `d`. Only `a` may be a broadcast within a block.
#[inline(always)]
pub(crate) fn map_lanes(abc: [Words<'_>; 3], d: Words<'_>, f: impl Fn([u32; 3]) -> u32) {
    let prefetch = abc.iter().any(|words| words.prefetch_distance != 0);
    match (abc[0].broadcast, prefetch) {
        (true, true) => map_lanes_with::<true, true>(abc, d, f),
        (true, false) => map_lanes_with::<true, false>(abc, d, f),
        (false, true) => map_lanes_with::<false, true>(abc, d, f),
        (false, false) => map_lanes_with::<false, false>(abc, d, f),
    }
}

#[inline(always)]
fn map_lanes_with<const BROADCAST: bool, const PREFETCH: bool>(
    abc: [Words<'_>; 3],
    d: Words<'_>,
    f: impl Fn([u32; 3]) -> u32,
) {
    let [a, b, c] = abc;
    let grid = d.grid;
    assert!(abc.iter().all(|words| words.grid == grid), "words of as many blocks");
    assert!(
        a.broadcast == BROADCAST && !b.broadcast && !c.broadcast && !d.broadcast,
        "a word for each lane"
    );
    for row in 0..grid.rows as isize {
        // Not by `map`: its code is not compiled with the caller's target features.
        let (a, b, c, d) = (a.row(row), b.row(row), c.row(row), d.row(row));
        for block in 0..grid.blocks as isize {
            if PREFETCH {
                a.prefetch_block(block);
                b.prefetch_block(block);
                c.prefetch_block(block);
            }
            let mut result = [0; BLOCK];
            // SAFETY: all operands have this grid. They have a word for each lane, except for `a`
            // if it is a broadcast.
            unsafe {
                let a = if BROADCAST {
                    [a.address(block).cast::<u32>().read_unaligned(); BLOCK]
                } else {
                    a.load_block(block)
                };
                let (b, c) = (b.load_block(block), c.load_block(block));
                for lane in 0..BLOCK {
                    result[lane] = f([a[lane], b[lane], c[lane]]);
                }
                d.address(block).cast::<[u32; BLOCK]>().write_unaligned(result);
            }
        }
    }
}

/// For each lane, adds the products of all terms to `c`, in order, and stores `last(sum, end)` to
/// `d`. Without `end`, the second argument of `last` is the lane of `c`.
#[inline(always)]
pub(crate) fn accumulate<const N: usize>(
    [c, d]: [Words<'_>; 2],
    terms: [(Words<'_>, f32); N],
    multiply_add: impl Fn(f32, f32, f32) -> f32,
    end: Option<Words<'_>>,
    last: impl Fn(f32, f32) -> f32,
) {
    let grid = d.grid;
    let mut prefetch = c.prefetch_distance != 0;
    assert!(c.is_contiguous(grid) && d.is_contiguous(grid), "a word for each lane");
    for (x, _) in &terms {
        assert!(x.is_contiguous(grid), "a word for each lane");
        prefetch |= x.prefetch_distance != 0;
    }
    assert!(end.is_none_or(|end| end.is_contiguous(grid)), "a word for each lane");
    for row in 0..grid.rows as isize {
        let (c, d, end) = (c.row(row), d.row(row), end.unwrap_or(c).row(row));
        let mut x = [c; N];
        for nth in 0..N {
            x[nth] = terms[nth].0.row(row);
        }
        for block in 0..grid.blocks {
            let byte = block * size_of::<[u32; BLOCK]>();
            if prefetch {
                c.prefetch_at(byte);
                for x in &x {
                    x.prefetch_at(byte);
                }
            }
            // SAFETY: all operands have this grid, contiguous blocks, and a word for each lane.
            unsafe {
                let mut sum = [0.0; BLOCK];
                let start = c.load_at(byte);
                for lane in 0..BLOCK {
                    sum[lane] = f32::from_bits(start[lane]);
                }
                for nth in 0..N {
                    let (x, y) = (x[nth].load_at(byte), terms[nth].1);
                    for lane in 0..BLOCK {
                        sum[lane] = multiply_add(f32::from_bits(x[lane]), y, sum[lane]);
                    }
                }
                let (end, mut result) = (end.load_at(byte), [0; BLOCK]);
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
    stride: isize,
    prefetch_distance: usize,
}

impl Words<'_> {
    /// Returns whether there is a word for each lane of this grid, and blocks are contiguous.
    #[inline(always)]
    pub(crate) fn is_contiguous(&self, grid: Grid) -> bool {
        let contiguous = grid.blocks == 1 || self.strides[0] == size_of::<[u32; BLOCK]>() as isize;
        self.grid == grid && !self.broadcast && contiguous
    }

    #[inline(always)]
    fn row(&self, row: isize) -> Row {
        let [stride, across] = self.strides;
        Row {
            first: self.first.wrapping_offset(row * across),
            stride,
            prefetch_distance: self.prefetch_distance,
        }
    }
}

impl Row {
    /// Returns the address of a block.
    #[inline(always)]
    fn address(self, block: isize) -> *mut u8 {
        self.first.wrapping_offset(block * self.stride)
    }

    /// Prefetches the words at the prefetch distance from a block.
    #[inline(always)]
    fn prefetch_block(self, block: isize) {
        prefetch(self.address(block).wrapping_add(self.prefetch_distance));
    }

    /// Prefetches the words at the prefetch distance from a byte of the row.
    #[inline(always)]
    fn prefetch_at(self, byte: usize) {
        if self.prefetch_distance != 0 {
            prefetch(self.first.wrapping_add(byte + self.prefetch_distance));
        }
    }

    /// # Safety
    /// A block of words at this byte of the row is in bounds.
    #[inline(always)]
    unsafe fn load_at(self, byte: usize) -> [u32; BLOCK] {
        // SAFETY: as the caller promises; `Plain::words` has checked the bounds.
        unsafe { self.first.wrapping_add(byte).cast::<[u32; BLOCK]>().read_unaligned() }
    }

    /// # Safety
    /// The block is in bounds, with a word for each lane.
    #[inline(always)]
    unsafe fn load_block(self, block: isize) -> [u32; BLOCK] {
        // SAFETY: as the caller promises; `Plain::words` has checked the bounds.
        unsafe { self.address(block).cast::<[u32; BLOCK]>().read_unaligned() }
    }
}
