//! Element types of the kernels, and random numbers.

use scry_gpu::{GemmElement, bf16, f16};

/// An element type of the kernels.
pub trait Element: GemmElement + Send + Sync {
    /// The type's name in tables and in requests to PyTorch.
    const NAME: &'static str;
    /// Maximum error: per term of a matrix product, relative to the largest element of a row in row
    /// operations, and absolute in attention.
    const MAX_ERROR: f64;
    /// Rounds to the nearest.
    fn round_from(number: f32) -> Self;
    /// Converts to `f64`.
    fn widen(self) -> f64;
}

impl Element for f32 {
    const NAME: &'static str = "f32";
    const MAX_ERROR: f64 = 1e-5;

    fn round_from(number: f32) -> Self {
        number
    }

    fn widen(self) -> f64 {
        self.into()
    }
}

impl Element for f16 {
    const NAME: &'static str = "f16";
    const MAX_ERROR: f64 = 1e-2;

    fn round_from(number: f32) -> Self {
        Self::from_f32(number)
    }

    fn widen(self) -> f64 {
        self.to_f64()
    }
}

impl Element for bf16 {
    const NAME: &'static str = "bf16";
    const MAX_ERROR: f64 = 1e-2;

    fn round_from(number: f32) -> Self {
        Self::from_f32(number)
    }

    fn widen(self) -> f64 {
        self.to_f64()
    }
}

/// A random number generator (splitmix64), with its state, at first the seed.
pub struct Rng(pub u64);

impl Rng {
    /// Returns the next random bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 1 to `max`, uniform in its logarithm.
    pub fn log_uniform(&mut self, max: usize) -> usize {
        let exponent = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        ((max as f64 + 1.0).powf(exponent) as usize).clamp(1, max)
    }

    /// Returns a number from 1 to `max`, uniformly distributed.
    pub fn uniform(&mut self, max: usize) -> usize {
        (self.next() % max as u64) as usize + 1
    }

    /// Returns `count` elements between -1 and 1, none of them zero.
    pub fn elements<T: Element>(&mut self, count: usize) -> Vec<T> {
        let one = |bits: u64| ((bits >> 40) | 1) as f32 / (1 << 23) as f32 - 1.0;
        (0..count).map(|_| T::round_from(one(self.next()))).collect()
    }
}
