//! Variants for the CPU device of what depends on all earlier elements: loops of one thread.
//!
//! A kernel splits such work into chunks and reads them twice, first for their sums. One pass of a
//! single thread is faster than a few threads with two.

use std::num::Wrapping;
use std::ops::AddAssign;

use half::{bf16, f16};
use scry_gpu::{DType, Element, HostArguments, NativeBinding, PreparedLaunch, Result};

use super::sort;
use crate::operation::Preparation;

/// An element that is summed in a wider type.
pub(super) trait Summed: Element {
    type Sum: Copy + Default + AddAssign + Send;

    fn widen(self) -> Self::Sum;
    fn narrow(sum: Self::Sum) -> Self;
}

macro_rules! summed {
    ($($element:ty: $sum:ty, $widen:expr, $narrow:expr;)*) => {$(
        impl Summed for $element {
            type Sum = $sum;

            fn widen(self) -> $sum {
                $widen(self)
            }

            fn narrow(sum: $sum) -> Self {
                $narrow(sum)
            }
        }
    )*};
}

summed! {
    f32: f64, f64::from, |sum| sum as f32;
    f16: f64, f64::from, |sum| f16::from_f32(rounded_to_odd(sum));
    bf16: f64, f64::from, |sum| bf16::from_f32(rounded_to_odd(sum));
    i32: Wrapping<i32>, Wrapping, |sum: Wrapping<i32>| sum.0;
    u32: Wrapping<u32>, Wrapping, |sum: Wrapping<u32>| sum.0;
}

/// Returns a number as `f32`, rounded so that rounding it again, to 16 bits, is as rounding once:
/// of the two neighbours of an inexact one, that with an odd last bit.
fn rounded_to_odd(number: f64) -> f32 {
    let nearest = number as f32;
    let is_exact = f64::from(nearest) == number || number.is_nan();
    if is_exact || nearest.to_bits() % 2 == 1 {
        return nearest;
    }
    // The other neighbour.
    match f64::from(nearest) < number {
        true => nearest.next_up(),
        false => nearest.next_down(),
    }
}

/// Prepares the prefix sums of rows, of which each one leaves out its own element if they are
/// exclusive.
pub(super) fn scan(
    preparation: &Preparation<'_>,
    (declared, dtype): (Vec<NativeBinding>, DType),
    is_exclusive: bool,
    sizes: [u64; 2],
) -> Result<Vec<PreparedLaunch>> {
    let scan = match dtype {
        DType::F16 => scan_rows::<f16>,
        DType::BF16 => scan_rows::<bf16>,
        DType::I32 => scan_rows::<i32>,
        DType::U32 => scan_rows::<u32>,
        _ => scan_rows::<f32>,
    };
    let sizes = sizes.map(|size| size as usize);
    preparation.host("scan", declared, move |arguments| scan(arguments, is_exclusive, sizes))
}

fn scan_rows<T: Summed>(
    arguments: &mut HostArguments<'_>,
    is_exclusive: bool,
    [rows, columns]: [usize; 2],
) {
    let (x, y) = (arguments.read::<T>(0), arguments.write::<T>(1));
    for (x, y) in x.chunks_exact(columns).zip(y.chunks_exact_mut(columns)).take(rows) {
        let mut sum = T::Sum::default();
        for (x, y) in x.iter().zip(y) {
            let before = sum;
            sum += x.widen();
            *y = T::narrow(if is_exclusive { before } else { sum });
        }
    }
}

/// Elements whose flags are tested at once.
const FLAGS: usize = 64;

/// Prepares a compaction.
pub(super) fn compact(
    preparation: &Preparation<'_>,
    (declared, dtype): (Vec<NativeBinding>, DType),
    len: u64,
) -> Result<Vec<PreparedLaunch>> {
    let compact = match dtype {
        DType::F16 => compact_elements::<f16>,
        DType::BF16 => compact_elements::<bf16>,
        DType::I32 => compact_elements::<i32>,
        DType::U32 => compact_elements::<u32>,
        _ => compact_elements::<f32>,
    };
    let len = len as usize;
    preparation.host("compact", declared, move |arguments| compact(arguments, len))
}

fn compact_elements<T: Element + Default>(arguments: &mut HostArguments<'_>, len: usize) {
    let (x, flags) = (arguments.read::<T>(0), arguments.read::<u32>(1));
    let (y, count) = (arguments.write::<T>(2), arguments.write::<u32>(3));
    let mut selected = 0;
    // An empty buffer is bound as one of some elements.
    for (x, flags) in x[..len].chunks(FLAGS).zip(flags[..len].chunks(FLAGS)) {
        // Each element is stored, and kept if its flag is set: random flags would mislead branches.
        let mut kept = [T::default(); FLAGS];
        let mut number = 0;
        for (x, flag) in x.iter().zip(flags) {
            kept[number] = *x;
            number += usize::from(*flag != 0);
        }
        y[selected..selected + number].copy_from_slice(&kept[..number]);
        selected += number;
    }
    count[0] = selected as u32;
}

/// Indices of a chunk of sums, as in the WGSL sources: sums are the same on every device.
const CHUNK: usize = 64;

/// Prepares additions of `count` rows to those of a table of rows × columns.
pub(super) fn scatter_add(
    preparation: &Preparation<'_>,
    (declared, dtype): (Vec<NativeBinding>, DType),
    [rows, columns, count]: [u64; 3],
) -> Result<Vec<PreparedLaunch>> {
    let sizes = [rows, columns, count].map(|size| size as usize);
    let add = match dtype {
        DType::F32 => add_rows::<f32>,
        // Sums of integers with and without signs have the same bits.
        _ => add_rows::<u32>,
    };
    preparation.host("scatter_add", declared, move |arguments| add(arguments, sizes))
}

/// An element that is added without a wider type.
trait Added: Element + Default {
    fn plus(self, other: Self) -> Self;
}

impl Added for f32 {
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

impl Added for u32 {
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}

fn add_rows<T: Added>(arguments: &mut HostArguments<'_>, [rows, columns, count]: [usize; 3]) {
    let (x, y) = (arguments.read::<T>(0), arguments.write::<T>(2));
    // As unsigned integers, negative indices are beyond all rows.
    let targets = arguments.read::<u32>(1)[..count].iter().map(|index| (*index).min(rows as u32));
    let sorted = sort::host::sort_entries(targets.zip(0..).collect());
    let (mut sum, mut continued) = (vec![T::default(); columns], vec![T::default(); columns]);
    let mut at = 0;
    for equal in sorted.chunk_by(|a, b| a.0 == b.0) {
        let (target, first) = (equal[0].0 as usize, equal.len().min(CHUNK - at % CHUNK));
        at += equal.len();
        if target == rows {
            break;
        }
        let y = &mut y[target * columns..][..columns];
        let rows_of = |part: &[(u32, u32)], sum: &mut [T]| {
            sum.fill(T::default());
            for (_, source) in part {
                add(sum, &x[*source as usize * columns..][..columns]);
            }
        };
        rows_of(&equal[..first], &mut sum);
        add(y, &sum);
        // The sums of the chunks after the first one are added to each other before.
        if equal.len() > first {
            continued.fill(T::default());
            for part in equal[first..].chunks(CHUNK) {
                rows_of(part, &mut sum);
                add(&mut continued, &sum);
            }
            add(y, &continued);
        }
    }
}

/// Adds numbers to sums.
fn add<T: Added>(sums: &mut [T], numbers: &[T]) {
    sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum = sum.plus(*number));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounding to `f32` first would make a tie of each, and round it down.
    #[test]
    fn sums_are_rounded_once() {
        let sum = 1.0 + 2f64.powi(-8) + 2f64.powi(-30);
        assert_eq!(<bf16 as Summed>::narrow(sum).to_f32(), 1.007_812_5);
        let sum = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(<f16 as Summed>::narrow(sum).to_f32(), 1.000_976_6);
        let sum = -1.0 - 2f64.powi(-11) - 2f64.powi(-40);
        assert_eq!(<f16 as Summed>::narrow(sum).to_f32(), -1.000_976_6);
        assert_eq!(<f16 as Summed>::narrow(f64::INFINITY), f16::INFINITY);
        assert!(<bf16 as Summed>::narrow(f64::NAN).is_nan());
        assert_eq!(<f16 as Summed>::narrow(0.1).to_bits(), f16::from_f64(0.1).to_bits());
    }
}
