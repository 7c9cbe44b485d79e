//! Sorts of the CPU device: a radix sort in Rust.

use scry_gpu::{DType, HostArguments, NativeBinding, PreparedLaunch, Result, Scalar};

use super::{Sort, Sorted};
use crate::operation::Preparation;

/// A code, by which keys are sorted, and what moves with it.
type Entry = (u32, u32);

/// Prepares the sort.
pub(super) fn prepare(it: &Sort, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let words = it.words(preparation)?;
    let mut declared = vec![match it.sorted {
        Sorted::Positions => NativeBinding::read("keys", Scalar::U32),
        _ => NativeBinding::read_write("keys", Scalar::U32),
    }];
    if it.sorted != Sorted::Keys {
        declared.push(NativeBinding::read_write("values", Scalar::U32));
    }
    let (sorted, dtype) = (it.sorted, it.dtype);
    let preparation = Preparation { buffers: &words, ..*preparation };
    preparation.host("sort", declared, move |arguments| sort(arguments, sorted, dtype))
}

fn sort(arguments: &mut HostArguments<'_>, sorted: Sorted, dtype: DType) {
    let encode = |bits: &u32| encode(*bits, dtype);
    match sorted {
        Sorted::Keys => {
            let keys = arguments.write::<u32>(0);
            let mut codes: Vec<u32> = keys.iter().map(encode).collect();
            codes.sort_unstable();
            keys.iter_mut().zip(codes).for_each(|(key, code)| *key = decode(code, dtype));
        }
        Sorted::Pairs(_) => {
            let (keys, values) = (arguments.write::<u32>(0), arguments.write::<u32>(1));
            let entries = keys.iter().map(encode).zip(values.iter().copied()).collect();
            let targets = keys.iter_mut().zip(values);
            for ((key, value), entry) in targets.zip(sort_entries(entries)) {
                (*key, *value) = (decode(entry.0, dtype), entry.1);
            }
        }
        Sorted::Positions => {
            let entries = arguments.read::<u32>(0).iter().map(encode).zip(0..).collect();
            let positions = arguments.write::<u32>(1).iter_mut();
            positions.zip(sort_entries(entries)).for_each(|(to, entry)| *to = entry.1);
        }
    }
}

/// Sorts stably by code, by eight bits at a time.
pub(in crate::ops) fn sort_entries(mut entries: Vec<Entry>) -> Vec<Entry> {
    let mut sorted = vec![(0, 0); entries.len()];
    for shift in [0, 8, 16, 24] {
        let digit = |entry: &Entry| (entry.0 >> shift) as usize & 255;
        let mut starts = [0usize; 256];
        entries.iter().for_each(|entry| starts[digit(entry)] += 1);
        if starts.contains(&entries.len()) {
            // All digits are equal.
            continue;
        }
        let mut start = 0;
        for count in &mut starts {
            (*count, start) = (start, start + *count);
        }
        for entry in &entries {
            let to = &mut starts[digit(entry)];
            sorted[*to] = *entry;
            *to += 1;
        }
        std::mem::swap(&mut entries, &mut sorted);
    }
    entries
}

/// What is below -∞ in the order of bits: NaN with the sign bit, which is last.
const NEGATIVE_NAN: u32 = 0x007f_ffff;

/// Returns what keys are sorted by, as unsigned integers.
fn encode(bits: u32, dtype: DType) -> u32 {
    const SIGN: u32 = 1 << 31;
    match dtype {
        DType::F32 if bits < SIGN => (bits | SIGN) - NEGATIVE_NAN,
        DType::F32 => (!bits).wrapping_sub(NEGATIVE_NAN),
        DType::I32 => bits ^ SIGN,
        _ => bits,
    }
}

fn decode(code: u32, dtype: DType) -> u32 {
    const SIGN: u32 = 1 << 31;
    let ordinal = code.wrapping_add(NEGATIVE_NAN);
    match dtype {
        DType::F32 if ordinal < SIGN => !ordinal,
        DType::F32 => ordinal ^ SIGN,
        DType::I32 => code ^ SIGN,
        _ => code,
    }
}
