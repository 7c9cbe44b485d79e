//! Packing of elements of each type in 32-bit words.

use crate::typed::{Bf16x2, F16x2, Global, Ptr, Val, pack, unpack_bf16x2, unpack_f16x2};
use crate::types::PtxType;

/// The packing of elements in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    F32,
    F16,
    Bf16,
}

/// A pointer to elements of any format.
pub(super) type Elements<'k> = Ptr<'k, Global, u32>;

impl Format {
    /// Returns the format of a type; `None` if it is not supported.
    pub(super) fn from_type(element: PtxType) -> Option<Self> {
        match element {
            PtxType::F32 => Some(Self::F32),
            PtxType::F16 => Some(Self::F16),
            PtxType::Bf16 => Some(Self::Bf16),
            _ => None,
        }
    }

    /// Elements per word.
    pub(super) const fn per_word(self) -> u32 {
        match self {
            Self::F32 => 1,
            Self::F16 | Self::Bf16 => 2,
        }
    }

    /// Elements per vector of 16 bytes.
    pub(super) const fn per_vector(self) -> u32 {
        4 * self.per_word()
    }

    /// Returns a word in which all elements are `number`, which must be 0 or infinite.
    pub(super) fn fill_word(self, number: f32) -> u32 {
        let bits = number.to_bits();
        match self {
            Self::F32 => bits,
            Self::Bf16 => bits >> 16 | bits & 0xffff_0000,
            Self::F16 => {
                // The upper bits of an infinity, with a shorter exponent.
                let f16_bits = bits >> 16 & 0xfc00;
                f16_bits << 16 | f16_bits
            }
        }
    }

    /// Unpacks a word.
    pub(super) fn unpack(self, word: Val<'_, u32>) -> Vec<Val<'_, f32>> {
        match self {
            Self::F32 => vec![word.cast()],
            Self::F16 => unpack_f16x2(word).into(),
            Self::Bf16 => unpack_bf16x2(word).into(),
        }
    }

    /// Packs values into a word; 16-bit floats are rounded to nearest even.
    pub(super) fn pack<'k>(self, numbers: &[Val<'k, f32>]) -> Val<'k, u32> {
        let last = numbers[numbers.len() - 1];
        match self {
            Self::F32 => numbers[0].cast(),
            Self::F16 => pack::<F16x2>(numbers[0], last).cast(),
            Self::Bf16 => pack::<Bf16x2>(numbers[0], last).cast(),
        }
    }

    /// Returns the address of element `index`.
    pub(super) fn at<'k>(self, base: Elements<'k>, index: Val<'k, u32>) -> Elements<'k> {
        match self {
            Self::F32 => base.at(index),
            Self::F16 | Self::Bf16 => base.cast::<u16>().at(index).cast(),
        }
    }

    /// Returns the address of element `index`, with 64-bit arithmetic.
    pub(super) fn at_wide<'k>(self, base: Elements<'k>, index: Val<'k, u64>) -> Elements<'k> {
        match self {
            Self::F32 => base.at_wide(index),
            Self::F16 | Self::Bf16 => base.cast::<u16>().at_wide(index).cast(),
        }
    }

    /// Returns the bytes of this many elements.
    pub(super) const fn bytes(self, elements: u32) -> i64 {
        (elements * 4 / self.per_word()) as i64
    }

    /// Loads one element into the low bits of a word if `condition` is true; otherwise returns the
    /// element in the low bits of `fallback`.
    pub(super) fn load_one<'k>(
        self,
        at: Elements<'k>,
        condition: Option<Val<'k, bool>>,
        fallback: u32,
    ) -> Val<'k, u32> {
        if self == Self::F32 {
            let [word] = at.load_constant_if(condition, fallback);
            return word;
        }
        let [f16_bits] = at.cast::<u16>().load_constant_if(condition, fallback as u16);
        f16_bits.convert("")
    }

    /// Stores one element if `condition` is true.
    pub(super) fn store_one<'k>(
        self,
        at: Elements<'k>,
        condition: Option<Val<'k, bool>>,
        number: Val<'k, f32>,
    ) {
        let word = self.pack(&[number]);
        match self {
            Self::F32 => at.store_if(condition, [word]),
            _ => at.cast::<u16>().store_if(condition, [word.convert::<u16>("")]),
        }
    }
}
