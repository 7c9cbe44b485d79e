//! Helpers shared by tests: the available devices, random data, the repository's path.

mod devices;
#[path = "../../examples/shared/root.rs"]
mod root;

pub use devices::devices;
pub use root::root;

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
    // Odd 24-bit integers are exact in f32, and none is the midpoint 2^23, which would become 0.
    (0..n).map(|_| ((next() >> 40) | 1) as f32 / (1 << 23) as f32 - 1.0).collect()
}
