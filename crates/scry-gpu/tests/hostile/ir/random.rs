//! Random numbers, among them numbers at which index arithmetic overflows.

/// A generator of pseudo-random numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    /// Returns a number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % limit.max(1) as u64) as usize
    }

    /// Returns true with a probability of 1 in `n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Returns a number at which index arithmetic may overflow, or a small one.
    pub fn number(&mut self) -> u32 {
        let extreme = [0x7fff_ffff, 0x8000_0000, u32::MAX, u32::MAX - 3, 0x4000_0000, 0xfff0_0000];
        if self.one_in(3) { self.one_of(&extreme) } else { self.below(70) as u32 }
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}
