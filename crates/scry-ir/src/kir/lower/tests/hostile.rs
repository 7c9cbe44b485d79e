//! Tests with hostile kernels: no access may be out of bounds, before or after the passes, and the
//! passes change no result.

use scry_fuzz::hostile::{Rules, kernel};
use scry_fuzz::{Case, Features};
use scry_test_support::env_number;

use super::{lower_checked, optimise, verify};
use crate::kir::Kir;
use crate::kir::interpret::Interpreter;

/// Default number of kernels; `SCRY_FUZZ_SEEDS` overrides it.
const SEEDS: u64 = 300;

/// Executes a kernel and returns its buffers; an access out of bounds fails the test.
fn execute(kir: &Kir, case: &Case) -> Vec<Vec<u8>> {
    let mut interpreter = Interpreter::new(kir, case.buffers.clone());
    interpreter.run(case.groups).unwrap_or_else(|error| panic!("{error}"));
    interpreter.buffers
}

#[test]
fn passes_keep_accesses_in_bounds() {
    let first = env_number("SCRY_FUZZ_FIRST").unwrap_or(0);
    for seed in first..first + env_number("SCRY_FUZZ_SEEDS").unwrap_or(SEEDS) {
        // Every loop must terminate.
        let case = kernel(seed, Features::default(), Rules { endless: false }).case();
        eprintln!("seed {seed}:\n{}", case.source);
        let mut kir = lower_checked(&case.source);
        let expected = execute(&kir, &case);
        optimise(&mut kir);
        verify(&kir).unwrap_or_else(|error| panic!("{error}"));
        assert!(expected == execute(&kir, &case), "the passes change a result");
    }
}
