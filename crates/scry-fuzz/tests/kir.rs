//! Random kernels obey the rules of the kernel IR.

use scry_fuzz::Features;
use scry_ir::Program;
use scry_ir::kir::{KirOptions, verify};

/// Checks the kernel of a seed.
fn check(seed: u64, checked: bool) {
    let all = Features::ALL;
    let source = scry_fuzz::kernel(seed, all.for_seed(seed)).case().source;
    let program = Program::parse(&source).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{source}"));
    let kir = program
        .to_kir(&KirOptions { checked })
        .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{source}"));
    verify(&kir).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{kir}"));
}

#[test]
fn random_kernels_obey_the_rules() {
    for seed in 0..100 {
        check(seed, seed % 2 == 0);
    }
}
