//! A quick hasher for instructions and other keys, which are a few small numbers each.
//!
//! Every number is multiplied in, and both halves of the product count. The factor is another one
//! in each process, so that no kernel can be made to collide.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

/// Makes hashers of one factor.
#[derive(Clone, Copy)]
pub(crate) struct Factor(u64);

impl Factor {
    /// The factor of this process.
    pub fn new() -> Self {
        static FACTOR: OnceLock<u64> = OnceLock::new();
        Self(*FACTOR.get_or_init(|| RandomState::new().hash_one(0) | 1))
    }
}

impl BuildHasher for Factor {
    type Hasher = Product;

    fn build_hasher(&self) -> Product {
        Product { factor: self.0, product: self.0 }
    }
}

/// A hash in the making.
pub(crate) struct Product {
    factor: u64,
    product: u64,
}

impl Hasher for Product {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.product.rotate_left(23) ^ number) * u128::from(self.factor);
        self.product = product as u64 ^ (product >> 64) as u64;
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.product
    }
}
