//! Tests that the WGSL emitted for random kernels computes what their source computes.

use scry_fuzz::hostile::{self, Comparable, Rules};
use scry_fuzz::{Case, Features};
use scry_test_support::env_number;

use crate::support::{Launch, emitted_matches_source};

const SMALL: Features = Features { f16: true, f64: false, i64: false, i16: true };

/// Buffers are padded to words, as WebGPU requires of bindings: the emitted WGSL accesses 16-bit
/// elements in words, and would not see the last half of one.
fn launch_for(case: Case) -> Launch {
    let immediates = case.immediates.unwrap_or_default();
    let pad = |mut bytes: Vec<u8>| {
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    Launch {
        source: case.source,
        buffers: case.buffers.into_iter().map(pad).collect(),
        immediates,
        groups: case.groups,
        subgroup_size: 4,
    }
}

fn round_trip_random_kernels(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let case = scry_fuzz::kernel(seed, SMALL.for_seed(seed)).case();
        assert!(emitted_matches_source(&launch_for(case)), "seed {seed} does not end");
    }
}

#[test]
fn random_kernels_round_trip() {
    round_trip_random_kernels(0..150);
}

/// Checks the text of hostile kernels. They may race: only the results of those that do not are
/// compared.
fn round_trip_hostile_kernels(seeds: std::ops::Range<u64>) {
    let mut compared = 0;
    for seed in seeds.clone() {
        let kernel = hostile::kernel(seed, SMALL.for_seed(seed), Rules { endless: false });
        let case = kernel.case();
        if kernel.comparable() == Comparable::Everywhere {
            compared += u64::from(emitted_matches_source(&launch_for(case)));
        } else {
            let program = crate::support::parse(&case.source);
            crate::support::round_trip(&program, &case.source);
        }
    }
    assert!(compared * 12 > seeds.end - seeds.start, "{compared} of {seeds:?}");
}

#[test]
fn hostile_kernels_round_trip() {
    round_trip_hostile_kernels(0..60);
}

/// Checks `SCRY_FUZZ_SEEDS` kernels of each kind (default: 5000) from seed `SCRY_FUZZ_FIRST` on
/// (default: 0).
#[test]
#[ignore = "takes minutes"]
fn many_random_kernels_round_trip() {
    let first = env_number("SCRY_FUZZ_FIRST").unwrap_or(0);
    let seeds = first..first + env_number("SCRY_FUZZ_SEEDS").unwrap_or(5000);
    for seed in seeds.clone().step_by(100) {
        let batch = seed..seeds.end.min(seed + 100);
        round_trip_random_kernels(batch.clone());
        round_trip_hostile_kernels(batch);
        eprintln!("seeds below {} are done", seed + 100);
    }
}
