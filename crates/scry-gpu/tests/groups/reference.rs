//! Element types of collectives, and reductions of them on the host.

use std::fmt::Debug;
use std::ops::Mul as _;

use scry_gpu::{Element, ReduceOp, bf16, f16};

/// An element type of collectives.
pub trait Number: Element + Debug + PartialEq {
    /// Returns an element for a small number.
    fn small(value: u8) -> Self;

    /// The relative error of a rounding; 0 for exact types.
    const ROUNDING: f64;

    fn to_f64(self) -> f64;

    /// Reduces the elements of all ranks, in order of rank.
    fn reduce(op: ReduceOp, elements: &[Self]) -> Self;
}

macro_rules! numbers {
    ($(
        $type:ty, $rounding:expr, $wide:ty, $multiply:expr, $to_wide:expr, $to_narrow:expr;
    )*) => {$(
        impl Number for $type {
            const ROUNDING: f64 = $rounding;

            fn to_f64(self) -> f64 {
                let wide: $wide = $to_wide(&self);
                wide as f64
            }

            fn small(value: u8) -> Self {
                $to_narrow(value.into())
            }

            fn reduce(op: ReduceOp, elements: &[Self]) -> Self {
                let wide: Vec<$wide> = elements.iter().map($to_wide).collect();
                let (first, rest) = wide.split_first().expect("a group has ranks");
                let mut result = *first;
                for value in rest {
                    match op {
                        ReduceOp::Sum | ReduceOp::Mean => result += value,
                        ReduceOp::Prod => result = $multiply(result, *value),
                        ReduceOp::Min => result = if *value < result { *value } else { result },
                        ReduceOp::Max => result = if *value > result { *value } else { result },
                    }
                }
                if op == ReduceOp::Mean {
                    result /= elements.len() as $wide;
                }
                $to_narrow(result)
            }
        }
    )*};
}

numbers! {
    u8, 0.0, i128, i128::wrapping_mul, |it: &u8| i128::from(*it), |it: i128| it as u8;
    u32, 0.0, i128, i128::wrapping_mul, |it: &u32| i128::from(*it), |it: i128| it as u32;
    i32, 0.0, i128, i128::wrapping_mul, |it: &i32| i128::from(*it), |it: i128| it as i32;
    u64, 0.0, i128, i128::wrapping_mul, |it: &u64| i128::from(*it), |it: i128| it as u64;
    i64, 0.0, i128, i128::wrapping_mul, |it: &i64| i128::from(*it), |it: i128| it as i64;
    f16, 1.0 / 2048.0, f32, f32::mul, |it: &f16| it.to_f32(), f16::from_f32;
    bf16, 1.0 / 256.0, f32, f32::mul, |it: &bf16| it.to_f32(), bf16::from_f32;
    f32, f32::EPSILON as f64, f32, f32::mul, |it: &f32| *it, |it: f32| it;
    f64, f64::EPSILON, f64, f64::mul, |it: &f64| *it, |it: f64| it;
}

/// Returns `len` elements of a rank: the same in every process.
pub fn elements<T: Number>(seed: u64, rank: usize, len: usize) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (rank as u64 + 1);
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        T::small((state >> 33) as u8 % 10)
    };
    (0..len).map(|_| next()).collect()
}

/// Reduces the elements of all ranks at each index.
pub fn reduced<T: Number>(op: ReduceOp, ranks: &[Vec<T>]) -> Vec<T> {
    let at = |index: usize| ranks.iter().map(|elements| elements[index]).collect::<Vec<T>>();
    (0..ranks[0].len()).map(|index| T::reduce(op, &at(index))).collect()
}
