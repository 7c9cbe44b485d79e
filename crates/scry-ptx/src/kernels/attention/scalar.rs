//! Numbers of a type that is known when the kernel is written.

use crate::typed::{Bf16, Bf16x2, F16, F16x2, Global, Ptr, Val, pack};
use crate::types::PtxType;

/// Reads a number that is not written while the kernel runs, `index` elements behind a pointer.
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

/// A bfloat16 in the low half of a word as f32.
fn widened(bits: Val<'_, u32>) -> Val<'_, f32> {
    (bits << 16).cast()
}

/// Writes a number, rounded to the type.
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

/// A count as a 64-bit number.
pub(super) fn wide(count: Val<'_, u32>) -> Val<'_, u64> {
    count.convert("")
}

/// To which halves numbers are rounded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounding(PtxType);

impl Rounding {
    pub(super) fn to(element: PtxType) -> Self {
        Self(element)
    }

    /// Two numbers in one word, the first in the low half.
    pub(super) fn word<'k>(self, [low, high]: [Val<'k, f32>; 2]) -> Val<'k, u32> {
        match self.0 {
            PtxType::F16 => pack::<F16x2>(low, high).cast(),
            _ => pack::<Bf16x2>(low, high).cast(),
        }
    }

    /// Two numbers, what is left of them, and so on: words whose sum is closer with each one. Only
    /// the first one may be of f16.
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
