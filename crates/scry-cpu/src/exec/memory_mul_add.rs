//! Multiply-adds with memory operands, and with results stored directly.

use std::cmp::Ordering;

use super::frame::{Frame, Lanes};
use super::indices::{ALL_BLOCKS_LOG2, Rows, strided_rows};
use super::memory::{ArrayStart, element_offset};
use crate::code::{Access, Address, MemoryMulAdd, MemorySpace, Operand};
use crate::lanes::{Args, BLOCK, Bits, IsaLevel, Src};
use crate::strided::{Grid, Plain, Words, map_lanes};

/// Words of a register, or of memory with a constant stride from lane to lane.
pub(super) enum StridedWords<'a> {
    Lanes(Src),
    /// `unit` is the number of bytes of a unit of offsets and strides.
    Memory {
        memory: Plain<'a>,
        unit: u64,
        at: &'a Address,
        rows: Rows,
        start: ArrayStart,
    },
}

impl Frame<'_> {
    /// Computes as many contiguous blocks as possible in one pass, and the others through
    /// registers.
    pub(super) fn memory_mul_add(&mut self, mul_add: &MemoryMulAdd) {
        let lanes = self.lanes;
        // Results in memory that other threads may access are stored from the result's register.
        let direct = mul_add.store.as_ref().filter(|store| lanes.dense && self.is_plain(store));
        let end = self.mul_add_contiguous(mul_add, direct);
        if let Some(store) = mul_add.store.as_ref().filter(|_| direct.is_none()) {
            self.lanes.end = end;
            self.store(store);
        }
        self.lanes = Lanes { first: end, ..lanes };
        if end < lanes.end {
            self.mul_add_by_registers(mul_add);
        }
        self.lanes = lanes;
    }

    /// Returns whether the accessed memory, or a prefix of it, may be accessed non-atomically.
    pub(super) fn is_plain(&self, access: &Access) -> bool {
        match access.address.space {
            MemorySpace::Binding(binding) => !self.regions[binding as usize].plain().is_empty(),
            MemorySpace::Shared(_) | MemorySpace::Local { .. } => true,
        }
    }

    /// Loads each operand to its register, computes the result in its register, and stores it.
    fn mul_add_by_registers(&self, mul_add: &MemoryMulAdd) {
        let source = |operand: &Operand| match operand {
            Operand::Lanes(source) => *source,
            Operand::Memory(access) => {
                self.load(access);
                Src { start: access.to[0], step: 1 }
            }
        };
        let [a, b, c] = [0, 1, 2].map(|nth| source(&mul_add.operands[nth]));
        let args = Args { d: mul_add.d, a, b, c };
        mul_add.op.lanes(self.isa, self.files(), self.blocks(), &args);
        if let Some(store) = &mul_add.store {
            self.store(store);
        }
    }

    /// Computes blocks up to the first one that is not contiguous. Results go to the target of
    /// `store`, or without one to their register. Returns the first block that was not computed.
    fn mul_add_contiguous(&self, mul_add: &MemoryMulAdd, store: Option<&Access>) -> usize {
        match self.isa {
            IsaLevel::Base => self.mul_add_with(mul_add, store, |a, b, c| a * b + c),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` is only constructed if the CPU has the features.
            IsaLevel::Avx2 => unsafe { avx2::mul_add(self, mul_add, store) },
        }
    }

    #[inline(always)]
    fn mul_add_with(
        &self,
        mul_add: &MemoryMulAdd,
        store: Option<&Access>,
        f: impl Fn(f32, f32, f32) -> f32,
    ) -> usize {
        let target = match store {
            None => Some(StridedWords::Lanes(Src { start: mul_add.d, step: 1 })),
            Some(access) => self.strided_words(access),
        };
        let operands = &mul_add.operands;
        let source = |nth: usize| self.operand_words(&operands[nth]);
        let (Some(a), Some(b), Some(c), Some(d)) = (source(0), source(1), source(2), target) else {
            return self.lanes.first;
        };
        // The operands are swapped so that a uniform one comes first.
        let (a, b) = if b.is_broadcast() { (&b, &a) } else { (&a, &b) };
        if b.is_broadcast() || c.is_broadcast() || d.is_broadcast() {
            return self.lanes.first;
        }
        let common = CommonStrides::new(&[a, b, &c, &d]);
        let product_sign = u32::from(mul_add.negated[0]) << 31;
        let addend_sign = u32::from(mul_add.negated[1]) << 31;
        let compute = |[a, b, c]: [u32; 3]| {
            let product = f32::from_bits(a ^ product_sign);
            f(product, f32::from_bits(b), f32::from_bits(c ^ addend_sign)).to_bits()
        };
        let mut block = self.lanes.first;
        while block < self.lanes.end {
            let grid = common.grid(block, self.lanes.end);
            let words = |source| self.words(source, block, common.blocks, grid);
            let (Some(a), Some(b), Some(c), Some(d)) = (words(a), words(b), words(&c), words(&d))
            else {
                break;
            };
            map_lanes([a, b, c], d, compute);
            block += grid.rows * grid.blocks;
        }
        block
    }

    #[inline(always)]
    pub(super) fn operand_words<'a>(&'a self, operand: &'a Operand) -> Option<StridedWords<'a>> {
        match operand {
            Operand::Lanes(source) => Some(StridedWords::Lanes(*source)),
            Operand::Memory(access) => self.strided_words(access),
        }
    }

    /// Returns an access as strided words, if its stride is 0 or one word, and it is not to local
    /// memory.
    pub(super) fn strided_words<'a>(&'a self, access: &'a Access) -> Option<StridedWords<'a>> {
        let rows = strided_rows(&self.pattern(&access.address.index))?;
        let (memory, unit, start) = match access.address.space {
            MemorySpace::Binding(binding) => {
                (self.regions[binding as usize].plain(), 1, ArrayStart::BINDING)
            }
            MemorySpace::Shared(start) => {
                let memory = Plain::from_blocks(&self.scratch.shared.b32);
                (memory, size_of::<u32>() as u64, self.shared_start::<u32>(start))
            }
            MemorySpace::Local { .. } => return None,
        };
        let step = u64::from(rows.step) * u64::from(access.address.stride) * unit;
        let supported = step == 0 || step == size_of::<u32>() as u64;
        supported.then_some(StridedWords::Memory { memory, unit, at: &access.address, rows, start })
    }

    /// Returns the words of a grid of blocks, if they are in bounds. `row_log2` is log2 of the
    /// number of blocks of a whole row.
    #[inline(always)]
    pub(super) fn words<'a>(
        &'a self,
        source: &StridedWords<'a>,
        block: usize,
        row_log2: u32,
        grid: Grid,
    ) -> Option<Words<'a>> {
        const BYTES: u64 = (size_of::<u32>() * BLOCK) as u64;
        match source {
            StridedWords::Lanes(register) => {
                let registers = Plain::from_blocks(u32::file(self.files()));
                let stride = i64::from(register.step) * BYTES as i64;
                let strides = [stride, if grid.rows == 1 { 0 } else { stride << row_log2 }];
                registers.words(register.at(block) as u64 * BYTES, strides, grid, false)
            }
            StridedWords::Memory { memory, unit, at, rows, start } => {
                let [(row_blocks, along), (_, across)] = rows.levels();
                let across = match grid.rows {
                    1 => 0,
                    _ if row_blocks > row_log2 => along << row_log2,
                    _ => across,
                };
                let first = rows.checked_grid_origin(block, [along, across], grid)?;
                let byte = (start.at(block) + element_offset(at, first)) * unit;
                let bytes =
                    |step: u32| i64::from(step as i32) * i64::from(at.stride) * *unit as i64;
                let between = if grid.rows == 1 { 0 } else { start.row_stride(row_log2) * unit };
                let strides = [bytes(along), bytes(across) + between as i64];
                let words = memory.words(byte, strides, grid, rows.step == 0)?;
                Some(if *unit == 1 { words.with_prefetch() } else { words })
            }
        }
    }
}

/// The largest rows and grids of blocks that have constant strides in all operands, as log2 of
/// their numbers of blocks.
#[derive(Clone, Copy)]
pub(super) struct CommonStrides {
    /// A row: blocks at a constant stride.
    pub(super) blocks: u32,
    /// A grid: rows at a constant stride.
    rows: u32,
}

impl CommonStrides {
    #[inline(always)]
    pub(super) fn new(operands: &[&StridedWords<'_>]) -> Self {
        let (mut blocks, mut rows) = (ALL_BLOCKS_LOG2, ALL_BLOCKS_LOG2);
        for operand in operands {
            blocks = blocks.min(operand.levels()[0]);
        }
        for operand in operands {
            // An operand with longer rows continues with the same stride after a common row.
            let [own, own_rows] = operand.levels();
            rows = rows.min(if own > blocks { own } else { own_rows });
        }
        Self { blocks, rows }
    }

    /// Returns the largest grid that starts at a block: whole rows, or else the remainder of one
    /// row.
    #[inline(always)]
    pub(super) fn grid(self, block: usize, end: usize) -> Grid {
        let remaining = |log2: u32| ((((block >> log2) + 1) << log2).min(end)) - block;
        let rows = remaining(self.rows) >> self.blocks;
        if block.trailing_zeros() < self.blocks || rows < 2 {
            return Grid { rows: 1, blocks: remaining(self.blocks) };
        }
        Grid { rows, blocks: 1 << self.blocks }
    }
}

impl StridedWords<'_> {
    /// Returns whether all lanes of a block have the same word.
    #[inline(always)]
    pub(super) fn is_broadcast(&self) -> bool {
        matches!(self, Self::Memory { rows, .. } if rows.step == 0)
    }

    /// Returns log2 of the number of blocks at a constant stride, and of the number of blocks in
    /// rows at a constant stride.
    #[inline(always)]
    fn levels(&self) -> [u32; 2] {
        match self {
            Self::Lanes(_) => [ALL_BLOCKS_LOG2; 2],
            Self::Memory { rows, start, .. } => {
                let [(blocks, _), (rows, _)] = rows.levels();
                // Rows that are whole workgroups have the stride of the workgroups' memories.
                match blocks.cmp(&start.group_log2) {
                    Ordering::Less => [blocks, rows.min(start.group_log2)],
                    Ordering::Equal => [blocks, rows],
                    Ordering::Greater => [start.group_log2, blocks],
                }
            }
        }
    }
}

/// [`Frame::mul_add_with`], compiled for AVX2. Callers must check that the CPU supports it.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Access, Frame, MemoryMulAdd};

    // SAFETY: the caller has checked that the CPU has the features.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn mul_add(
        frame: &Frame<'_>,
        mul_add: &MemoryMulAdd,
        store: Option<&Access>,
    ) -> usize {
        frame.mul_add_with(mul_add, store, f32::mul_add)
    }
}
