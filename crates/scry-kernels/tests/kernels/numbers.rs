//! Element types, floats and integers, for tests that are generic over them.

use scry_gpu::{Buffer, Device, Element, bf16, f16};
use scry_test_support::{random_f32, succeed};

/// An element type of numbers.
pub trait Number: Element + PartialEq {
    /// A value that tests do not expect as a result.
    const POISON: Self;
    /// Half a unit in the last place, relative; 0 for integers, whose results are exact.
    const EPSILON: f64;
    /// Returns random values: floats between -1 and 1, integers of the whole range.
    fn random(seed: u64, count: usize) -> Vec<Self>;
    /// Converts exactly.
    fn wide(self) -> f64;
    /// Rounds floats to nearest, and converts integers that fit.
    fn round(value: f64) -> Self;
    /// Returns the sum: of integers modulo 2^32.
    fn sum(values: &[Self]) -> f64;
    /// Returns the sum of products: of integers modulo 2^32.
    fn dot(a: &[Self], b: &[Self]) -> f64;
    /// Returns whether results are the same number, or both NaN. Zeros have signs.
    fn is_same(self, other: Self) -> bool;
}

macro_rules! float {
    ($type:ty, $epsilon:expr, $round:expr) => {
        impl Number for $type {
            const POISON: Self = Self::NAN;
            const EPSILON: f64 = $epsilon;

            fn random(seed: u64, count: usize) -> Vec<Self> {
                random_f32(seed, count)
                    .into_iter()
                    .map(|x| <Self as Number>::round(x.into()))
                    .collect()
            }

            fn wide(self) -> f64 {
                self.into()
            }

            fn round(value: f64) -> Self {
                ($round)(value)
            }

            fn sum(values: &[Self]) -> f64 {
                values.iter().map(|x| x.wide()).sum()
            }

            fn dot(a: &[Self], b: &[Self]) -> f64 {
                a.iter().zip(b).map(|(a, b)| a.wide() * b.wide()).sum()
            }

            fn is_same(self, other: Self) -> bool {
                self.to_bits() == other.to_bits() || (self.is_nan() && other.is_nan())
            }
        }
    };
}

float!(f32, 6e-8, |value| value as f32);
float!(f16, 5e-4, f16::from_f64);
float!(bf16, 4e-3, bf16::from_f64);

macro_rules! integer {
    ($type:ty) => {
        impl Number for $type {
            const POISON: Self = 0x5ca1ab1e;
            const EPSILON: f64 = 0.0;

            fn random(seed: u64, count: usize) -> Vec<Self> {
                let bits = |x: f32| x.to_bits().wrapping_mul(0x9e37_79b1).rotate_left(13);
                let mixed = random_f32(seed, count).into_iter();
                mixed.map(|x| bits(x).wrapping_mul(0x85eb_ca6b) as Self).collect()
            }

            fn wide(self) -> f64 {
                self.into()
            }

            fn round(value: f64) -> Self {
                value as Self
            }

            fn sum(values: &[Self]) -> f64 {
                values.iter().fold(0, |sum: Self, x| sum.wrapping_add(*x)).into()
            }

            fn dot(a: &[Self], b: &[Self]) -> f64 {
                let products = a.iter().zip(b).map(|(a, b)| a.wrapping_mul(*b));
                products.fold(0, |sum: Self, x| sum.wrapping_add(x)).into()
            }

            fn is_same(self, other: Self) -> bool {
                self == other
            }
        }
    };
}

integer!(i32);
integer!(u32);

/// Creates a buffer of values that tests do not expect.
pub fn poisoned_numbers<T: Number>(gpu: &Device, count: usize) -> Buffer<T> {
    succeed(gpu.upload(&vec![T::POISON; count]))
}

/// Checks that a result is the expected one, within `tolerance` half units in the last place of
/// `scale`, which is at least the magnitude of the terms that it is computed from. Integers must be
/// equal.
#[track_caller]
pub fn assert_near<T: Number>(what: &str, tolerance: f64, scale: f64, result: T, expected: f64) {
    let rounded = T::round(expected);
    // Results are computed in f32 at best.
    let limit = (tolerance * <f32 as Number>::EPSILON + T::EPSILON) * scale + 1e-37;
    let is_close =
        result.is_same(rounded) || (T::EPSILON > 0.0 && (result.wide() - expected).abs() <= limit);
    assert!(is_close, "{what}: {}, expected {expected}", result.wide());
}
