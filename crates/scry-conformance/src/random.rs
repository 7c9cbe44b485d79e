//! Deterministic pseudo-random inputs.

/// Pseudo-random words from a seed.
pub struct Words(pub u32);

impl Iterator for Words {
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

/// Returns `n` numbers between -1 and 1 without zeros, the same for the same seed (splitmix64).
pub fn random_f32(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    // An odd 24-bit integer: exact in f32, and its distance from the middle is odd.
    (0..n).map(|_| ((next() >> 40) | 1) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// Returns all pairs of words.
pub fn all_pairs(words: &[u32]) -> Vec<[u32; 2]> {
    let pair = |x: &u32| words.iter().map(|y| [*x, *y]).collect::<Vec<_>>();
    words.iter().flat_map(pair).collect()
}
