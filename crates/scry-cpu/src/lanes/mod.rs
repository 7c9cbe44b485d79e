//! Lane registers: vectors of the invocations of a lockstep group.
//!
//! A lane register has one value per invocation, in blocks of [`BLOCK`] lanes. Whole blocks are
//! loaded, computed and stored, which compiles to vector instructions; cells allow an operation to
//! write a register that it reads.

mod op;

use std::cell::Cell;

pub(crate) use op::{
    Args, IsaLevel, LaneOp, Src, best_one, best_two, one, plain_one, plain_two, rare_one, rare_two,
    three, three_by_isa, two,
};

/// Number of lanes of a block.
pub(crate) const BLOCK: usize = 16;

/// A block of lanes of one width.
pub(crate) type Block<B> = Cell<[B; BLOCK]>;

/// The register files, one for each width of a lane.
#[derive(Debug, Default)]
pub(crate) struct Files {
    bytes: Vec<Block<u8>>,
    halves: Vec<Block<u16>>,
    words: Vec<Block<u32>>,
    doubles: Vec<Block<u64>>,
}

/// Sizes of the register files, or positions in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub bytes: usize,
    pub halves: usize,
    pub words: usize,
    pub doubles: usize,
}

impl Sizes {
    /// Size in bytes of register files with these numbers of blocks.
    pub(crate) fn bytes(self) -> usize {
        (self.bytes + 2 * self.halves + 4 * self.words + 8 * self.doubles) * BLOCK
    }
}

impl Files {
    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> usize {
        let (halves, words) = (self.halves.len(), self.words.len());
        Sizes { bytes: self.bytes.len(), halves, words, doubles: self.doubles.len() }.bytes()
    }

    /// Makes the files at least this large, in blocks.
    pub(crate) fn grow(&mut self, sizes: Sizes) {
        fn grow<B: Bits>(file: &mut Vec<Block<B>>, size: usize) {
            if file.len() < size {
                file.resize(size, Cell::new([B::ZERO; BLOCK]));
            }
        }
        grow(&mut self.bytes, sizes.bytes);
        grow(&mut self.halves, sizes.halves);
        grow(&mut self.words, sizes.words);
        grow(&mut self.doubles, sizes.doubles);
    }

    /// A block of lanes of this size, as words; zeros if the size is 0.
    #[inline(never)]
    pub(crate) fn words_of(&self, size: u32, block: usize) -> [u64; BLOCK] {
        fn widened<B: Bits>(block: &Block<B>) -> [u64; BLOCK] {
            let (lanes, mut words) = (block.get(), [0; BLOCK]);
            for lane in 0..BLOCK {
                words[lane] = lanes[lane].widen();
            }
            words
        }
        match size {
            0 => [0; BLOCK],
            1 => widened(&self.bytes[block]),
            2 => widened(&self.halves[block]),
            4 => widened(&self.words[block]),
            _ => widened(&self.doubles[block]),
        }
    }

    /// One lane of this size.
    #[inline(never)]
    pub(crate) fn word(&self, size: u32, block: usize, lane: usize) -> u64 {
        match size {
            1 => self.bytes[block].get()[lane].into(),
            2 => self.halves[block].get()[lane].into(),
            4 => self.words[block].get()[lane].into(),
            _ => self.doubles[block].get()[lane],
        }
    }

    /// Writes one lane of this size.
    #[inline(never)]
    pub(crate) fn set_word(&self, size: u32, block: usize, lane: usize, word: u64) {
        fn set<B: Bits>(block: &Block<B>, lane: usize, value: B) {
            let lanes: &Cell<[B]> = block;
            lanes.as_slice_of_cells()[lane].set(value);
        }
        match size {
            1 => set(&self.bytes[block], lane, word as u8),
            2 => set(&self.halves[block], lane, word as u16),
            4 => set(&self.words[block], lane, word as u32),
            _ => set(&self.doubles[block], lane, word),
        }
    }

    /// Writes a block of lanes of this size.
    #[inline(never)]
    pub(crate) fn set_words(&self, size: u32, block: usize, words: &[u64; BLOCK]) {
        fn cut<B: Bits>(block: &Block<B>, words: &[u64; BLOCK]) {
            let mut lanes = [B::ZERO; BLOCK];
            for lane in 0..BLOCK {
                lanes[lane] = B::cut(words[lane]);
            }
            block.set(lanes);
        }
        match size {
            1 => cut(&self.bytes[block], words),
            2 => cut(&self.halves[block], words),
            4 => cut(&self.words[block], words),
            _ => cut(&self.doubles[block], words),
        }
    }
}

/// The bits of a lane, of one width.
pub(crate) trait Bits: Copy + Default + PartialEq + Send + Sync + 'static {
    /// No bit set.
    const ZERO: Self;

    /// The file of this width.
    fn file(files: &Files) -> &[Block<Self>];

    /// The low bits of a word.
    fn cut(word: u64) -> Self;

    /// The bits, zero-extended to a word.
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
            fn cut(word: u64) -> Self {
                word as Self
            }

            #[inline(always)]
            fn widen(self) -> u64 {
                self as u64
            }
        }
    )*};
}

bits!(u8: bytes, u16: halves, u32: words, u64: doubles);

/// The type of a lane in operations.
pub(crate) trait Lane: Copy + 'static {
    /// Its bits, as registers hold them.
    type Bits: Bits;

    /// Their bytes.
    const SIZE: u32 = size_of::<Self::Bits>() as u32;

    /// The value of these bits.
    fn of(bits: Self::Bits) -> Self;

    /// The bits of this value.
    fn bits(self) -> Self::Bits;
}

/// An `f16`, which is converted to `f32` for arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct F16(pub u16);

/// Implements [`Lane`]: the type, its bits in registers, and the conversions from and to them.
macro_rules! lane {
    ($lane:ty, $bits:ty, |$from:ident| $of:expr, |$value:ident| $to:expr) => {
        impl Lane for $lane {
            type Bits = $bits;

            #[inline(always)]
            fn of($from: $bits) -> Self {
                $of
            }

            #[inline(always)]
            fn bits(self) -> $bits {
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
