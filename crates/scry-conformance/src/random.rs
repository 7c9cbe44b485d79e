//! Deterministic pseudo-random inputs.

/// An endless sequence of pseudo-random words from a seed.
pub struct RandomWords(pub u32);

impl Iterator for RandomWords {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        // A Weyl sequence (golden-ratio increment), mixed by a 32-bit finaliser.
        self.0 = self.0.wrapping_add(0x9e37_79b9);
        let mut word = self.0;
        word = (word ^ (word >> 16)).wrapping_mul(0x21f0_aaad);
        word = (word ^ (word >> 15)).wrapping_mul(0x735a_2d97);
        Some(word ^ (word >> 15))
    }
}

/// Returns `n` numbers between -1 and 1, none of them zero, by splitmix64 from a seed.
pub fn random_f32(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    // An odd 24-bit integer is exact in f32, and is not 2^23, which would become zero.
    (0..n).map(|_| ((next() >> 40) | 1) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// Returns all ordered pairs of words, equal ones included.
pub fn all_pairs(words: &[u32]) -> Vec<[u32; 2]> {
    let pair = |x: &u32| words.iter().map(|y| [*x, *y]).collect::<Vec<_>>();
    words.iter().flat_map(pair).collect()
}
