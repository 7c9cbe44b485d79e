//! Element types, and random numbers.

use scry_gpu::{GemmElement, bf16, f16};

/// An element of any of the types of the kernels.
pub trait Number: GemmElement + Send + Sync {
    /// As tables and PyTorch's side name it.
    const NAME: &'static str;
    /// Largest error allowed, relative to the sum of absolute products.
    const BOUND: f64;
    /// Rounds to the nearest.
    fn of(number: f32) -> Self;
    /// Converts to `f64`.
    fn wide(self) -> f64;
}

impl Number for f32 {
    const NAME: &'static str = "f32";
    const BOUND: f64 = 1e-5;

    fn of(number: f32) -> Self {
        number
    }

    fn wide(self) -> f64 {
        self.into()
    }
}

impl Number for f16 {
    const NAME: &'static str = "f16";
    const BOUND: f64 = 1e-2;

    fn of(number: f32) -> Self {
        Self::from_f32(number)
    }

    fn wide(self) -> f64 {
        self.to_f64()
    }
}

impl Number for bf16 {
    const NAME: &'static str = "bf16";
    const BOUND: f64 = 1e-2;

    fn of(number: f32) -> Self {
        Self::from_f32(number)
    }

    fn wide(self) -> f64 {
        self.to_f64()
    }
}

/// Numbers that follow from a seed (splitmix64).
pub struct Draw(pub u64);

impl Draw {
    /// The next one.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 1 to `most`: each order of magnitude is as likely as the others.
    pub fn size(&mut self, most: usize) -> usize {
        let part = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        ((most as f64 + 1.0).powf(part) as usize).clamp(1, most)
    }

    /// A number from 1 to `most`, each as likely as the others.
    pub fn uniform(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize + 1
    }

    /// `count` elements between -1 and 1, none of them zero.
    pub fn elements<T: Number>(&mut self, count: usize) -> Vec<T> {
        let one = |bits: u64| ((bits >> 40) | 1) as f32 / (1 << 23) as f32 - 1.0;
        (0..count).map(|_| T::of(one(self.next()))).collect()
    }
}
