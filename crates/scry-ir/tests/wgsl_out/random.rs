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
    assert!(compared * 12 > seeds.end - seeds.start, "{compared} of {seeds:?}");
}

#[test]
fn hostile_kernels_compute_the_same() {
    hostile_kernels_compute_the_same_for(0..60);
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// `SCRY_FUZZ_SEEDS` kernels of each kind from seed `SCRY_FUZZ_FIRST` on; 5000 from 0 on if they
/// are not set.
#[test]
#[ignore = "takes minutes"]
fn many_random_kernels_compute_the_same() {
    let first = number("SCRY_FUZZ_FIRST", 0);
    let seeds = first..first + number("SCRY_FUZZ_SEEDS", 5000);
    for seed in seeds.clone().step_by(100) {
        let some = seed..seeds.end.min(seed + 100);
        random_kernels_compute_the_same_for(some.clone());
        hostile_kernels_compute_the_same_for(some);
        eprintln!("seeds below {} are done", seed + 100);
    }
}
