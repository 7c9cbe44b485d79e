//! A pseudo-random number generator with the same results on every platform and in every version.

/// A stream of random numbers (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, which must not be 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        // The upper half of a product of 32-bit numbers: close enough to uniform for small `n`.
        (((self.next() >> 32) * n as u64) >> 32) as usize
    }

    /// Returns a number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// Returns true with probability `1 / n`.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Returns one of several values; the slice must not be empty.
    pub(crate) fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())].clone()
    }

    /// Returns an integer of `bits` bits, from 1 to 64, often near zero or a limit of its type.
    pub(crate) fn integer(&mut self, bits: u32) -> u64 {
        let mask = u64::MAX >> (64 - bits);
        let value = match self.below(6) {
            0 => self.next() % 8,
            1 => (self.next() % 8).wrapping_neg(),
            2 => 1u64 << self.below(bits as usize),
            3 => (1u64 << (bits - 1)).wrapping_sub(self.next() % 3),
            4 => self.next() % 1000,
            _ => self.next(),
        };
        value & mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_cover_their_range() {
        let mut random = Random::new(1);
        let numbers: Vec<usize> = (0..1000).map(|_| random.between(3, 6)).collect();
        assert_eq!(numbers.iter().min(), Some(&3));
        assert_eq!(numbers.iter().max(), Some(&6));
        assert!((0..1000).all(|_| random.integer(32) <= u64::from(u32::MAX)));
    }

    #[test]
    fn numbers_are_those_of_splitmix64() {
        assert_eq!(Random::new(0).next(), 0xe220_a839_7b1d_cdaf);
    }
}
