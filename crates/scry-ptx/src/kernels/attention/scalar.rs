//! Loads, stores and conversions of elements, whose type is an argument of the emitting function.

use crate::typed::{Bf16, Bf16x2, F16, F16x2, Global, Ptr, Val, pack};
use crate::types::PtxType;

/// Loads an element that is not written while the kernel runs, `index` elements after a pointer.
pub(super) fn load_element<'k>(
    ty: PtxType,
    from: Ptr<'k, Global, u8>,
    index: Val<'k, u64>,
) -> Val<'k, f32> {
    match ty {
        PtxType::F32 => from.cast::<f32>().at_wide(index).load_constant(),
        PtxType::F16 => from.cast::<F16>().at_wide(index).load_constant().convert(""),
        _ => bf16_to_f32(from.cast::<u16>().at_wide(index).load_constant().convert("")),
    }
}

/// Converts the `bf16` in the low 16 bits of a word to `f32`.
fn bf16_to_f32(bits: Val<'_, u32>) -> Val<'_, f32> {
    (bits << 16).cast()
}

/// Stores an element, rounded to its type.
pub(super) fn store_element<'k>(
    ty: PtxType,
    to: Ptr<'k, Global, u8>,
    index: Val<'k, u64>,
    value: Val<'k, f32>,
) {
    match ty {
        PtxType::F32 => to.cast::<f32>().at_wide(index).store(value),
        PtxType::F16 => to.cast::<F16>().at_wide(index).store(value.convert::<F16>("rn")),
        _ => to.cast::<Bf16>().at_wide(index).store(value.convert::<Bf16>("rn")),
    }
}

/// Zero-extends to 64 bits.
pub(super) fn to_u64(count: Val<'_, u32>) -> Val<'_, u64> {
    count.convert("")
}

/// Rounds to a 16-bit float type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounding(PtxType);

impl Rounding {
    pub(super) fn new(element: PtxType) -> Self {
        Self(element)
    }

    /// Rounds two values and packs them in one word, the first in the low 16 bits.
    pub(super) fn pack<'k>(self, [low, high]: [Val<'k, f32>; 2]) -> Val<'k, u32> {
        match self.0 {
            PtxType::F16 => pack::<F16x2>(low, high).cast(),
            _ => pack::<Bf16x2>(low, high).cast(),
        }
    }

    /// Splits two values into `count` terms each, whose sums approximate the values. Word `i` packs
    /// the terms `i` of both values: the rounding errors that the words before it leave. `f16`
    /// supports one term only.
    pub(super) fn pack_terms<'k>(self, pair: [Val<'k, f32>; 2], count: u32) -> Vec<Val<'k, u32>> {
        let mut remainder = pair;
        let mut words = vec![self.pack(remainder)];
        for _ in 1..count {
            let last = words[words.len() - 1];
            remainder = [
                remainder[0] - bf16_to_f32(last),
                remainder[1] - (last & 0xffff_0000).cast::<f32>(),
            ];
            words.push(self.pack(remainder));
        }
        words
    }
}
