//! Random kernels.

use scry_fuzz::hostile::{self, Comparable, Rules};
use scry_fuzz::{Case, Features};

use crate::support::{Launch, computes_the_same};

const F16: Features = Features { f16: true, f64: false, i64: false, i16: false };

fn launch(case: Case) -> Launch {
    let immediates = case.immediates.unwrap_or_default();
    Launch {
        source: case.source,
        buffers: case.buffers,
        immediates,
        groups: case.groups,
        subgroup_size: 4,
    }
}

fn random_kernels_compute_the_same_for(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let case = scry_fuzz::kernel(seed, F16.for_seed(seed)).case();
        assert!(computes_the_same(&launch(case)), "seed {seed} does not end");
    }
}

#[test]
fn random_kernels_compute_the_same() {
    random_kernels_compute_the_same_for(0..150);
}

/// Hostile kernels may race, so that only some can be compared; the text of all is valid.
fn hostile_kernels_compute_the_same_for(seeds: std::ops::Range<u64>) {
    let mut compared = 0;
    for seed in seeds.clone() {
        let kernel = hostile::kernel(seed, F16.for_seed(seed), Rules { endless: false });
        let case = kernel.case();
        if kernel.comparable() == Comparable::Everywhere {
            compared += u64::from(computes_the_same(&launch(case)));
        } else {
            let program = crate::support::parsed(&case.source);
            crate::support::again(&program, &case.source);
        }
    }
    assert!(compared * 10 > seeds.end - seeds.start, "{compared} of {seeds:?}");
}

#[test]
fn hostile_kernels_compute_the_same() {
    hostile_kernels_compute_the_same_for(0..60);
}

/// `SCRY_FUZZ_SEEDS` kernels of each kind, 5000 if it is not set.
#[test]
#[ignore = "takes minutes"]
fn many_random_kernels_compute_the_same() {
    let count = std::env::var("SCRY_FUZZ_SEEDS").map_or(5000, |count| count.parse().unwrap());
    random_kernels_compute_the_same_for(0..count);
    hostile_kernels_compute_the_same_for(0..count);
}
