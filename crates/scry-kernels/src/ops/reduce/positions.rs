//! Positions of the smallest and the largest elements, on the CPU device.

use half::{bf16, f16};
use scry_gpu::{DType, Element, HostArguments, PreparedLaunch, Result};

use super::{Reduce, Reduction};
use crate::host::{self, MIN_PART};
use crate::operation::{Operation, Preparation};

/// Elements that are compared side by side.
const LANES: usize = 8;

/// Prepares the search.
pub(super) fn prepare(it: &Reduce, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let is_largest = it.reduction == Reduction::ArgMax;
    // The smallest number is the largest one of the negated, or complemented.
    let find = match (it.dtype, is_largest) {
        (DType::F16, true) => positions::<f16, _>(f16::to_f32),
        (DType::F16, false) => positions::<f16, _>(|x| -x.to_f32()),
        (DType::BF16, true) => positions::<bf16, _>(bf16::to_f32),
        (DType::BF16, false) => positions::<bf16, _>(|x| -x.to_f32()),
        (DType::I32, true) => positions::<i32, _>(|x| x),
        (DType::I32, false) => positions::<i32, _>(|x: i32| !x),
        (DType::U32, true) => positions::<u32, _>(|x| x),
        (DType::U32, false) => positions::<u32, _>(|x: u32| !x),
        (_, true) => positions::<f32, _>(|x| x),
        (_, false) => positions::<f32, _>(|x: f32| -x),
    };
    let (rows, columns) = (it.results() as usize, it.length() as usize);
    preparation.host("positions", it.arguments(), move |arguments| find(arguments, rows, columns))
}

/// A function that finds the positions in rows.
type Find = Box<dyn Fn(&mut HostArguments<'_>, usize, usize) + Send + Sync>;

/// Returns the function for elements of a type, compared by a key. The result of NaN is NaN.
fn positions<T: Element + Sync, K: PartialOrd + Copy>(
    key: impl Fn(T) -> K + Copy + Send + Sync + 'static,
) -> Find {
    Box::new(move |arguments, rows, columns| {
        let (x, out) = (arguments.read::<T>(0), arguments.write::<u32>(1));
        host::for_each_part(&mut out[..rows], MIN_PART.div_ceil(columns), |first, out| {
            for (row, out) in x[first * columns..].chunks_exact(columns).zip(out) {
                *out = position(row, key) as u32;
            }
        });
    })
}

/// Returns the position of the first NaN or, if there is none, of the first of the largest.
#[expect(clippy::eq_op, reason = "only NaN differs from itself")]
fn position<T: Copy, K: PartialOrd + Copy>(row: &[T], key: impl Fn(T) -> K + Copy) -> usize {
    let mut largest = [key(row[0]); LANES];
    let mut nans = [0; LANES];
    let (vectors, rest) = row.as_chunks::<LANES>();
    for vector in vectors {
        for lane in 0..LANES {
            let key = key(vector[lane]);
            largest[lane] = if key > largest[lane] { key } else { largest[lane] };
            nans[lane] |= u32::from(key != key);
        }
    }
    for (lane, x) in rest.iter().enumerate() {
        let key = key(*x);
        largest[lane] = if key > largest[lane] { key } else { largest[lane] };
        nans[lane] |= u32::from(key != key);
    }
    let is_nan = |x: &T| key(*x) != key(*x);
    if nans.contains(&1) {
        return row.iter().position(is_nan).unwrap_or(0);
    }
    // By halves, since each step waits for the one before.
    for half in [4, 2, 1] {
        for lane in 0..half {
            let other = largest[lane + half];
            largest[lane] = if other > largest[lane] { other } else { largest[lane] };
        }
    }
    row.iter().position(|x| key(*x) == largest[0]).unwrap_or(0)
}
