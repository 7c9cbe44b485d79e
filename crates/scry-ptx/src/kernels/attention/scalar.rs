//! Loads, stores and conversions of elements whose type is a compile-time parameter.

use crate::typed::{Bf16, Bf16x2, F16, F16x2, Global, Ptr, Val, pack};
use crate::types::PtxType;

/// Loads an element that is not written while the kernel runs, `index` elements after a pointer.
pub(super) fn read<'k>(
    ty: PtxType,
    from: Ptr<'k, Global, u8>,
    index: Val<'k, u64>,
) -> Val<'k, f32> {
    match ty {
        PtxType::F32 => from.cast::<f32>().at_wide(index).load_constant(),
        PtxType::F16 => from.cast::<F16>().at_wide(index).load_constant().convert(""),
        _ => widened(from.cast::<u16>().at_wide(index).load_constant().convert("")),
    }
}

/// Converts the `bf16` in the low half of a word to `f32`.
fn widened(bits: Val<'_, u32>) -> Val<'_, f32> {
    (bits << 16).cast()
}

/// Stores an element, rounded to its type.
pub(super) fn write<'k>(
    ty: PtxType,
    to: Ptr<'k, Global, u8>,
    index: Val<'k, u64>,
    number: Val<'k, f32>,
) {
    match ty {
        PtxType::F32 => to.cast::<f32>().at_wide(index).store(number),
        PtxType::F16 => to.cast::<F16>().at_wide(index).store(number.convert::<F16>("rn")),
        _ => to.cast::<Bf16>().at_wide(index).store(number.convert::<Bf16>("rn")),
    }
}

/// Zero-extends a count to 64 bits.
pub(super) fn wide(count: Val<'_, u32>) -> Val<'_, u64> {
    count.convert("")
}

/// Rounds to a 16-bit float type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounding(PtxType);

impl Rounding {
    pub(super) fn to(element: PtxType) -> Self {
        Self(element)
    }

    /// Rounds two values into one word, the first in the low half.
    pub(super) fn word<'k>(self, [low, high]: [Val<'k, f32>; 2]) -> Val<'k, u32> {
        match self.0 {
            PtxType::F16 => pack::<F16x2>(low, high).cast(),
            _ => pack::<Bf16x2>(low, high).cast(),
        }
    }

    /// Splits two values into `count` terms: each word holds the rounding errors of those before
    /// it. `f16` supports one term only.
    pub(super) fn words<'k>(self, pair: [Val<'k, f32>; 2], count: u32) -> Vec<Val<'k, u32>> {
        let mut rest = pair;
        let mut words = vec![self.word(rest)];
        for _ in 1..count {
            let last = words[words.len() - 1];
            rest = [rest[0] - widened(last), rest[1] - (last & 0xffff_0000).cast::<f32>()];
            words.push(self.word(rest));
        }
        words
    }
}
