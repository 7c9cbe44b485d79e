//! Lane registers: vectors over the invocations that are executed in lockstep.
//!
//! A lane register has one value per invocation, in blocks of [`BLOCK`] lanes. Whole blocks are
//! loaded, computed and stored, which compiles to vector instructions. Blocks are cells, so that an
//! operation can write a register that it also reads.

mod op;

use std::cell::Cell;

pub(crate) use op::{
    Args, IsaLevel, LaneOp, Src, binary_for_baseline, binary_for_best_isa, binary_for_each_isa,
    binary_lane_by_lane, ternary, ternary_by_isa, unary_for_baseline, unary_for_best_isa,
    unary_for_each_isa, unary_lane_by_lane,
};

/// Number of lanes of a block.
pub(crate) const BLOCK: usize = 16;

/// A block of lanes of one width.
pub(crate) type Block<B> = Cell<[B; BLOCK]>;

/// The register files, one for each width of a lane in bits.
#[derive(Debug, Default)]
pub(crate) struct Files {
    b8: Vec<Block<u8>>,
    b16: Vec<Block<u16>>,
    b32: Vec<Block<u32>>,
    b64: Vec<Block<u64>>,
}

/// A number for each width of a lane in bits: blocks of a register file, or elements of workgroup
/// memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub b8: usize,
    pub b16: usize,
    pub b32: usize,
    pub b64: usize,
}

impl Sizes {
    /// Returns the size in bytes of register files with these numbers of blocks.
    pub(crate) fn bytes(self) -> usize {
        (self.b8 + 2 * self.b16 + 4 * self.b32 + 8 * self.b64) * BLOCK
    }
}

impl Files {
    /// Returns the size of all files in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let (b8, b16) = (self.b8.len(), self.b16.len());
        Sizes { b8, b16, b32: self.b32.len(), b64: self.b64.len() }.bytes()
    }

    /// Grows the files to at least these numbers of blocks.
    pub(crate) fn grow(&mut self, sizes: Sizes) {
        fn grow<B: Bits>(file: &mut Vec<Block<B>>, size: usize) {
            if file.len() < size {
                file.resize(size, Cell::new([B::ZERO; BLOCK]));
            }
        }
        grow(&mut self.b8, sizes.b8);
        grow(&mut self.b16, sizes.b16);
        grow(&mut self.b32, sizes.b32);
        grow(&mut self.b64, sizes.b64);
    }

    /// Returns a block of lanes of `size` bytes, zero-extended; zeros if `size` is 0.
    #[inline(never)]
    pub(crate) fn widened_block(&self, size: u32, block: usize) -> [u64; BLOCK] {
        fn widen<B: Bits>(block: &Block<B>) -> [u64; BLOCK] {
            let (lanes, mut widened) = (block.get(), [0; BLOCK]);
            for lane in 0..BLOCK {
                widened[lane] = lanes[lane].widen();
            }
            widened
        }
        match size {
            0 => [0; BLOCK],
            1 => widen(&self.b8[block]),
            2 => widen(&self.b16[block]),
            4 => widen(&self.b32[block]),
            _ => widen(&self.b64[block]),
        }
    }

    /// Returns one lane of `size` bytes, zero-extended.
    #[inline(never)]
    pub(crate) fn lane(&self, size: u32, block: usize, lane: usize) -> u64 {
        match size {
            1 => self.b8[block].get()[lane].into(),
            2 => self.b16[block].get()[lane].into(),
            4 => self.b32[block].get()[lane].into(),
            _ => self.b64[block].get()[lane],
        }
    }

    /// Writes the low bits of `bits` to one lane of `size` bytes.
    #[inline(never)]
    pub(crate) fn set_lane(&self, size: u32, block: usize, lane: usize, bits: u64) {
        fn set<B: Bits>(block: &Block<B>, lane: usize, value: B) {
            let lanes: &Cell<[B]> = block;
            lanes.as_slice_of_cells()[lane].set(value);
        }
        match size {
            1 => set(&self.b8[block], lane, bits as u8),
            2 => set(&self.b16[block], lane, bits as u16),
            4 => set(&self.b32[block], lane, bits as u32),
            _ => set(&self.b64[block], lane, bits),
        }
    }

    /// Writes the low bits of `values` to a block of lanes of `size` bytes.
    #[inline(never)]
    pub(crate) fn set_block(&self, size: u32, block: usize, values: &[u64; BLOCK]) {
        fn set<B: Bits>(block: &Block<B>, values: &[u64; BLOCK]) {
            let mut lanes = [B::ZERO; BLOCK];
            for lane in 0..BLOCK {
                lanes[lane] = B::truncate(values[lane]);
            }
            block.set(lanes);
        }
        match size {
            1 => set(&self.b8[block], values),
            2 => set(&self.b16[block], values),
            4 => set(&self.b32[block], values),
            _ => set(&self.b64[block], values),
        }
    }
}

/// The bits of a lane, of one width.
pub(crate) trait Bits: Copy + Default + PartialEq + Send + Sync + 'static {
    /// All bits clear.
    const ZERO: Self;

    /// Returns the register file of this width.
    fn file(files: &Files) -> &[Block<Self>];

    /// Returns the low bits of `bits`.
    fn truncate(bits: u64) -> Self;

    /// Returns the bits, zero-extended.
    fn widen(self) -> u64;
}

macro_rules! bits {
    ($($bits:ty: $file:ident),*) => {$(
        impl Bits for $bits {
            const ZERO: Self = 0;

            #[inline(always)]
            fn file(files: &Files) -> &[Block<Self>] {
                &files.$file
            }

            #[inline(always)]
            fn truncate(bits: u64) -> Self {
                bits as Self
            }

            #[inline(always)]
            fn widen(self) -> u64 {
                self as u64
            }
        }
    )*};
}

bits!(u8: b8, u16: b16, u32: b32, u64: b64);

/// The type of a lane in operations.
pub(crate) trait Lane: Copy + 'static {
    /// The bits of a value, as they are in registers.
    type Bits: Bits;

    /// Size of the bits in bytes.
    const SIZE: u32 = size_of::<Self::Bits>() as u32;

    /// Converts bits to the value.
    fn from_bits(bits: Self::Bits) -> Self;

    /// Converts the value to bits.
    fn to_bits(self) -> Self::Bits;
}

/// An `f16`, which is converted to `f32` for arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct F16(pub u16);

/// Implements [`Lane`]: the type, its bits in registers, and the conversions from and to them.
macro_rules! lane {
    ($lane:ty, $bits:ty, |$from:ident| $lane_value:expr, |$value:ident| $to:expr) => {
        impl Lane for $lane {
            type Bits = $bits;

            #[inline(always)]
            fn from_bits($from: $bits) -> Self {
                $lane_value
            }

            #[inline(always)]
            fn to_bits(self) -> $bits {
                let $value = self;
                $to
            }
        }
    };
}

lane!(bool, u8, |bits| bits != 0, |value| value.into());
lane!(u16, u16, |bits| bits, |value| value);
lane!(i16, u16, |bits| bits as i16, |value| value as u16);
lane!(F16, u16, |bits| F16(bits), |value| value.0);
lane!(u32, u32, |bits| bits, |value| value);
lane!(i32, u32, |bits| bits as i32, |value| value as u32);
lane!(f32, u32, |bits| f32::from_bits(bits), |value| value.to_bits());
lane!(u64, u64, |bits| bits, |value| value);
lane!(i64, u64, |bits| bits as i64, |value| value as u64);
lane!(f64, u64, |bits| f64::from_bits(bits), |value| value.to_bits());
