//! Tests that random kernels are valid in the kernel IR, and well defined on the reference
//! interpreter.

use scry_fuzz::{Case, Features};
use scry_ir::Program;
use scry_ir::kir::interpret::Interpreter;
use scry_ir::kir::{Kir, KirOptions, verify};

fn case(seed: u64) -> Case {
    scry_fuzz::kernel(seed, Features::ALL.for_seed(seed)).case()
}

fn lower(Case { seed, source, .. }: &Case, checked: bool) -> Kir {
    let program = Program::parse(source).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{source}"));
    program.to_kir(&KirOptions { checked }).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{source}"))
}

#[test]
fn random_kernels_pass_verifier() {
    for seed in 0..100 {
        let kir = lower(&case(seed), seed % 2 == 0);
        verify(&kir).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{kir}"));
    }
}

/// Returns the buffers after a launch. Accesses out of bounds, divergent barriers and endless loops
/// are errors of the interpreter.
fn execute(case: &Case, checked: bool) -> Vec<Vec<u8>> {
    let kir = lower(case, checked);
    let mut interpreter = Interpreter::new(&kir, case.buffers.clone());
    if let Some(immediates) = &case.immediates {
        interpreter.immediates.clone_from(immediates);
    }
    interpreter
        .run(case.groups)
        .unwrap_or_else(|e| panic!("seed {}: {e}\n{}", case.seed, case.source));
    interpreter.buffers
}

#[test]
fn random_kernels_are_well_defined() {
    let mut written = 0;
    for seed in 0..100 {
        let case = case(seed);
        let unchecked = execute(&case, false);
        assert!(unchecked == execute(&case, true), "seed {seed}: {}", case.source);
        written += u32::from(unchecked != case.buffers);
    }
    assert!(written > 80, "{written} of 100 kernels change a buffer");
}
