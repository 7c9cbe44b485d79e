//! Random numbers, and numbers that hostile kernels like.

/// A generator of pseudo-random numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % limit.max(1) as u64) as usize
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// A number at which arithmetic of indices goes wrong, or a small one.
    pub fn number(&mut self) -> u32 {
        let far = [0x7fff_ffff, 0x8000_0000, u32::MAX, u32::MAX - 3, 0x4000_0000, 0xfff0_0000];
        if self.one_in(3) { self.one_of(&far) } else { self.below(70) as u32 }
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}
