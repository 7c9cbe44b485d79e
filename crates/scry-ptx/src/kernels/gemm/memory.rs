//! Loads and stores `f16`, `bf16` and `f32` elements, converting from and to `f32` registers.

use crate::typed::{Bf16, F16, Global, Ptr, Val};
use crate::types::PtxType;

/// Loads an element; `constant` promises that it is not written while the kernel runs.
pub(crate) fn load_element<'k>(
    at: Ptr<'k, Global, u8>,
    element: PtxType,
    constant: bool,
) -> Val<'k, f32> {
    match element {
        PtxType::F16 => load::<F16>(at, constant).convert(""),
        PtxType::Bf16 => {
            let bits: Val<'_, u32> = load::<u16>(at, constant).convert("");
            (bits << 16).cast()
        }
        PtxType::F32 => load::<f32>(at, constant),
        other => unreachable!("matrices hold no {}", other.name()),
    }
}

/// Loads an element that is not written while the kernel runs, under a predicate; 0 otherwise.
pub(crate) fn load_element_if<'k>(
    at: Ptr<'k, Global, u8>,
    element: PtxType,
    condition: Val<'k, bool>,
) -> Val<'k, f32> {
    if element == PtxType::F32 {
        let [value] = at.cast::<f32>().load_constant_if(Some(condition), 0.0);
        return value;
    }
    let [bits] = at.cast::<u16>().load_constant_if(Some(condition), 0);
    match element {
        PtxType::F16 => bits.cast::<F16>().convert(""),
        PtxType::Bf16 => (bits.convert::<u32>("") << 16).cast(),
        other => unreachable!("no 16-bit float: {}", other.name()),
    }
}

fn load<'k, T: crate::typed::Element>(at: Ptr<'k, Global, u8>, constant: bool) -> Val<'k, T> {
    match constant {
        true => at.cast::<T>().load_constant(),
        false => at.cast::<T>().load(),
    }
}

/// Stores an element, rounded to nearest even.
pub(crate) fn store_element(at: Ptr<'_, Global, u8>, element: PtxType, value: Val<'_, f32>) {
    match element {
        PtxType::F16 => at.cast::<F16>().store(value.convert::<F16>("rn")),
        PtxType::Bf16 => at.cast::<Bf16>().store(value.convert::<Bf16>("rn")),
        PtxType::F32 => at.cast::<f32>().store(value),
        other => unreachable!("matrices hold no {}", other.name()),
    }
}

/// Zero-extends to 64 bits.
pub(crate) fn to_u64(value: Val<'_, u32>) -> Val<'_, u64> {
    value.convert("")
}
