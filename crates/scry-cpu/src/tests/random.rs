//! Tests of random kernels, compared with the reference interpreter.

use super::random_kernels::{WORDS_PER_INVOCATION, kernel};
use super::support::{TestLaunch, bytes, noise};

/// Asserts that the kernels of these seeds, of about `statements` statements each, compute the
/// results of the reference interpreter.
fn assert_agrees(seeds: std::ops::Range<u64>, statements: u32) {
    for seed in seeds {
        let kir = kernel(seed, statements);
        let groups = [[1, 1, 1], [2, 1, 1], [3, 2, 1], [1, 2, 2]][seed as usize % 4];
        let invocations = kir.workgroup_size.iter().chain(&groups).product::<u32>();
        let size = (invocations * WORDS_PER_INVOCATION) as usize;
        TestLaunch::new(groups, &[bytes(&noise(37)), bytes(&vec![7; size])]).assert_agrees(&kir);
    }
}

#[test]
fn small_random_kernels() {
    assert_agrees(0..600, 12);
}

#[test]
fn large_random_kernels() {
    assert_agrees(1_000_000..1_000_300, 70);
}

#[test]
fn miri_random_kernels() {
    for seed in 2_000_000..2_000_002 {
        let kir = kernel(seed, 6);
        let size = 2 * kir.workgroup_size.iter().product::<u32>() * WORDS_PER_INVOCATION;
        let buffers = [bytes(&noise(37)), bytes(&vec![7; size as usize])];
        let launch = TestLaunch::new([2, 1, 1], &buffers);
        assert_eq!(launch.run_split(&kir, 2), launch.interpret(&kir));
    }
}
