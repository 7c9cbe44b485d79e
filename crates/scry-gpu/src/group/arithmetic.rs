//! Reductions of the ranks' elements, on the host.

use half::{bf16, f16};

use crate::api::dtype::DType;
use crate::api::reduce_op::ReduceOp;

/// A number that reductions combine.
trait Number: Copy {
    /// The type of intermediate results: exact for integers.
    type Accumulator: Copy;

    fn read(bytes: &[u8]) -> Self;
    fn write(self, bytes: &mut [u8]);
    fn widen(self) -> Self::Accumulator;
    fn narrow(value: Self::Accumulator) -> Self;
    fn combine(op: ReduceOp, a: Self::Accumulator, b: Self::Accumulator) -> Self::Accumulator;
    fn divide(sum: Self::Accumulator, ranks: usize) -> Self::Accumulator;
}

/// Reading and writing, which is the same for every type.
macro_rules! bytes_of_number {
    ($type:ty) => {
        fn read(bytes: &[u8]) -> Self {
            Self::from_ne_bytes(bytes.try_into().expect("chunks have the size of an element"))
        }

        fn write(self, bytes: &mut [u8]) {
            bytes.copy_from_slice(&self.to_ne_bytes());
        }
    };
}

/// Integers are computed in `i128`, which has the sum of 2^32 ranks; its low bits are those of the
/// wrapped sum and product.
macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            type Accumulator = i128;

            bytes_of_number!($type);

            fn widen(self) -> i128 {
                i128::from(self)
            }

            fn narrow(value: i128) -> Self {
                value as Self
            }

            fn combine(op: ReduceOp, a: i128, b: i128) -> i128 {
                match op {
                    ReduceOp::Sum | ReduceOp::Mean => a.wrapping_add(b),
                    ReduceOp::Prod => a.wrapping_mul(b),
                    ReduceOp::Min => a.min(b),
                    ReduceOp::Max => a.max(b),
                }
            }

            fn divide(sum: i128, ranks: usize) -> i128 {
                sum / ranks as i128
            }
        }
    )*};
}

integers!(u8, u32, i32, u64, i64);

macro_rules! floats {
    ($($type:ty, $accumulator:ty, $widen:expr, $narrow:expr;)*) => {$(
        impl Number for $type {
            type Accumulator = $accumulator;

            bytes_of_number!($type);

            fn widen(self) -> $accumulator {
                $widen(self)
            }

            fn narrow(value: $accumulator) -> Self {
                $narrow(value)
            }

            fn combine(op: ReduceOp, a: $accumulator, b: $accumulator) -> $accumulator {
                match op {
                    ReduceOp::Sum | ReduceOp::Mean => a + b,
                    ReduceOp::Prod => a * b,
                    _ if a.is_nan() => a,
                    _ if b.is_nan() => b,
                    ReduceOp::Min => if b < a { b } else { a },
                    ReduceOp::Max => if b > a { b } else { a },
                }
            }

            fn divide(sum: $accumulator, ranks: usize) -> $accumulator {
                sum / ranks as $accumulator
            }
        }
    )*};
}

floats! {
    f64, f64, f64::from, f64::from;
    f32, f32, f32::from, f32::from;
    f16, f32, f16::to_f32, f16::from_f32;
    bf16, f32, bf16::to_f32, bf16::from_f32;
}

/// Combines contributions of equal lengths, in their order, element by element.
pub(super) fn reduce(op: ReduceOp, dtype: DType, contributions: &[Vec<u8>]) -> Vec<u8> {
    match dtype {
        DType::U8 => fold::<u8>(op, contributions),
        DType::U32 => fold::<u32>(op, contributions),
        DType::I32 => fold::<i32>(op, contributions),
        DType::U64 => fold::<u64>(op, contributions),
        DType::I64 => fold::<i64>(op, contributions),
        DType::F16 => fold::<f16>(op, contributions),
        DType::BF16 => fold::<bf16>(op, contributions),
        DType::F32 => fold::<f32>(op, contributions),
        DType::F64 => fold::<f64>(op, contributions),
        DType::I8 | DType::I16 | DType::U16 => {
            unreachable!("calls with other types are rejected before they are made")
        }
    }
}

fn fold<T: Number>(op: ReduceOp, contributions: &[Vec<u8>]) -> Vec<u8> {
    let size = size_of::<T>();
    let mut result = vec![0; contributions[0].len()];
    for (index, out) in result.chunks_exact_mut(size).enumerate() {
        let at = index * size..(index + 1) * size;
        let values = contributions.iter().map(|bytes| T::read(&bytes[at.clone()]).widen());
        let combined = values.reduce(|a, b| T::combine(op, a, b)).expect("a group has ranks");
        let value = match op {
            ReduceOp::Mean => T::divide(combined, contributions.len()),
            _ => combined,
        };
        T::narrow(value).write(out);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reduces one element of each rank.
    fn one<T: Number + crate::Element>(op: ReduceOp, elements: &[T]) -> T {
        let bytes = |element: &T| {
            let mut bytes = vec![0; size_of::<T>()];
            element.write(&mut bytes);
            bytes
        };
        let contributions: Vec<Vec<u8>> = elements.iter().map(bytes).collect();
        T::read(&reduce(op, DType::of::<T>().expect("a scalar"), &contributions))
    }

    #[test]
    fn integers_wrap_around() {
        assert_eq!(one(ReduceOp::Sum, &[200u8, 100, 7]), 51);
        assert_eq!(one(ReduceOp::Prod, &[u64::MAX, u64::MAX, 3]), 3);
        assert_eq!(one(ReduceOp::Sum, &[i32::MAX, 1]), i32::MIN);
        assert_eq!(one(ReduceOp::Prod, &[i64::MIN, -1]), i64::MIN);
    }

    #[test]
    fn means_of_integers_are_exact() {
        assert_eq!(one(ReduceOp::Mean, &[255u8, 255, 254]), 254);
        assert_eq!(one(ReduceOp::Mean, &[-7i32, 0]), -3);
        assert_eq!(one(ReduceOp::Mean, &[u64::MAX, u64::MAX]), u64::MAX);
    }

    #[test]
    fn nan_wins_minimum_and_maximum() {
        for op in [ReduceOp::Min, ReduceOp::Max] {
            for values in [[f32::NAN, 1.0, 2.0], [1.0, f32::NAN, 2.0], [1.0, 2.0, f32::NAN]] {
                assert!(one(op, &values).is_nan(), "{op} of {values:?}");
            }
        }
        assert_eq!(one(ReduceOp::Min, &[2.0f64, -1.0, 3.0]), -1.0);
        assert_eq!(one(ReduceOp::Max, &[2.0f64, -1.0, 3.0]), 3.0);
    }

    /// In `f16`, 2048 + 1 is 2048: the sum would stay there.
    #[test]
    fn short_floats_are_rounded_once() {
        let values = [2048.0, 1.0, 1.0].map(f16::from_f32);
        assert_eq!(one(ReduceOp::Sum, &values), f16::from_f32(2050.0));
        let values = [256.0, 1.0, 1.0].map(bf16::from_f32);
        assert_eq!(one(ReduceOp::Sum, &values), bf16::from_f32(258.0));
    }

    /// (1e8 + -1e8) + 1 is 1, 1e8 + (-1e8 + 1) is 0.
    #[test]
    fn floats_are_combined_in_rank_order() {
        assert_eq!(one(ReduceOp::Sum, &[1e8f32, -1e8, 1.0]), 1.0);
        assert_eq!(one(ReduceOp::Sum, &[1.0f32, 1e8, -1e8]), 0.0);
        assert_eq!(one(ReduceOp::Mean, &[1.0f32, 2.0, 6.0]), 3.0);
    }
}
