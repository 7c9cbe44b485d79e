//! Sums on the CPU device.

use std::ops::{AddAssign, Mul, Range};

use scry_gpu::{DType, HostArguments, PreparedLaunch, Result};

use super::{Reduce, Reduction};
use crate::host::{self, MIN_PART};
use crate::operation::{Operation, Preparation};
use crate::ops::cpu::Summed;

/// Sums of a row that are added side by side.
const LANES: usize = 16;

/// Products that are computed before they are added.
const PRODUCTS: usize = 256;

/// How rows are summed.
#[derive(Clone, Copy)]
struct Shape {
    rows: usize,
    columns: usize,
    /// Whether sums are divided by the number of elements.
    is_mean: bool,
}

/// Prepares sums and means of rows, of `f32`, `i32` or `u32`, or inner products.
pub(super) fn prepare(it: &Reduce, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let is_mean = it.reduction == Reduction::Mean;
    let shape = Shape { rows: it.results() as usize, columns: it.length() as usize, is_mean };
    let compute = match (it.dtype, it.has_factors) {
        (DType::F32, false) => sums::<f32>,
        (DType::F32, true) => inner_product::<f32>,
        // Sums of integers with and without signs have the same bits.
        (_, false) => sums::<u32>,
        (_, true) => inner_product::<u32>,
    };
    preparation.host("sums", it.arguments(), move |arguments| compute(arguments, shape))
}

/// An element of rows that are summed here.
trait Number: Summed + Sync + Default {
    /// Returns the product, in the type of elements.
    fn times(self, other: Self) -> Self;

    /// Divides a sum.
    fn mean(sum: Self::Sum, count: usize) -> Self;
}

impl Number for f32 {
    fn times(self, other: Self) -> Self {
        self.mul(other)
    }

    fn mean(sum: f64, count: usize) -> Self {
        (sum / count as f64) as f32
    }
}

impl Number for u32 {
    fn times(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }

    /// Not reached: means are of floats.
    fn mean(sum: Self::Sum, count: usize) -> Self {
        sum.0 / count as u32
    }
}

fn sums<T: Number>(arguments: &mut HostArguments<'_>, shape: Shape) {
    let Shape { rows, columns, .. } = shape;
    // An empty buffer is bound as one of some elements.
    let x = &arguments.read::<T>(0)[..rows * columns];
    let out = &mut arguments.write::<T>(1)[..rows];
    if let [out] = out {
        *out = shape.finish(sum_of_parts(columns, |part| sum(&x[part])));
        return;
    }
    host::for_each_part(out, MIN_PART.div_ceil(columns.max(1)), |first, out| {
        for (row, out) in (first..).zip(out) {
            *out = shape.finish(sum(&x[row * columns..][..columns]));
        }
    });
}

fn inner_product<T: Number>(arguments: &mut HostArguments<'_>, shape: Shape) {
    let [a, b] = [0, 1].map(|binding| arguments.read::<T>(binding));
    let sum = sum_of_parts(shape.columns, |part| {
        let mut products = [T::default(); PRODUCTS];
        let mut total = T::Sum::default();
        for (a, b) in a[part.clone()].chunks(PRODUCTS).zip(b[part].chunks(PRODUCTS)) {
            let products = &mut products[..a.len()];
            let factors = a.iter().zip(b);
            products.iter_mut().zip(factors).for_each(|(product, (a, b))| *product = a.times(*b));
            total += sum(products);
        }
        total
    });
    arguments.write::<T>(2)[0] = shape.finish(sum);
}

impl Shape {
    /// Returns the result of a row from its sum.
    fn finish<T: Number>(&self, sum: T::Sum) -> T {
        if self.is_mean { T::mean(sum, self.columns) } else { T::narrow(sum) }
    }
}

/// Returns the sum of the sums of parts of a row, in their order.
fn sum_of_parts<S: Copy + Default + AddAssign + Send>(
    len: usize,
    sum: impl Fn(Range<usize>) -> S + Send + Sync,
) -> S {
    let mut sums = vec![S::default(); len.div_ceil(MIN_PART)];
    host::for_each_part(&mut sums, 1, |nth, out| {
        let start = nth * MIN_PART;
        out.fill_with(|| sum(start..(start + MIN_PART).min(len)));
    });
    sums.into_iter().fold(S::default(), |mut all, sum| {
        all += sum;
        all
    })
}

/// Returns the sum of numbers.
fn sum<T: Number>(numbers: &[T]) -> T::Sum {
    let (vectors, rest) = numbers.as_chunks::<LANES>();
    let mut sums = [T::Sum::default(); LANES];
    for vector in vectors {
        for (sum, number) in sums.iter_mut().zip(vector) {
            *sum += number.widen();
        }
    }
    let mut total = T::Sum::default();
    sums.into_iter().for_each(|sum| total += sum);
    rest.iter().for_each(|number| total += number.widen());
    total
}
