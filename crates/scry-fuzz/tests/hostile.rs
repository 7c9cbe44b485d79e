//! Tests that every hostile kernel is valid WGSL, matches its interface, and can be lowered.

use scry_fuzz::hostile::{Comparable, Rules, kernel, shrink};
use scry_fuzz::{Case, Features};
use scry_ir::Program;
use scry_ir::kir::{KirOptions, verify};

/// Asserts that the kernel of a case is valid, and matches its buffers.
fn assert_accepted(case: &Case) {
    let Case { seed, source, .. } = case;
    let program = Program::parse(source)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}\n{source}", error.rendered));
    let interface = program.interface();
    assert_eq!(interface.bindings.len(), case.buffers.len(), "seed {seed}: {source}");
    for (binding, bytes) in interface.bindings.iter().zip(&case.buffers) {
        let (min_size, size) = (binding.layout.min_binding_size(), bytes.len());
        assert!(size as u64 >= min_size, "seed {seed}: {} has {size} of {min_size}", binding.name);
    }
    let kir = program.to_kir(&KirOptions { checked: true });
    let kir = kir.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{source}"));
    verify(&kir).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{kir}"));
}

#[test]
fn every_kernel_is_accepted() {
    for seed in 0..400 {
        let features = if seed % 2 == 0 { Features::ALL } else { Features::default() };
        assert_accepted(&kernel(seed, features, Rules::default()).case());
        assert_accepted(&kernel(seed, Features { i16: true, ..features }, Rules::default()).case());
    }
}

#[test]
fn kernels_of_every_kind_are_generated() {
    let kernels: Vec<_> =
        (0..200).map(|seed| kernel(seed, Features::default(), Rules::default())).collect();
    for kind in [Comparable::Nothing, Comparable::SameIr, Comparable::Everywhere] {
        let count = kernels.iter().filter(|kernel| kernel.comparable() == kind).count();
        assert!(count > 20, "{count} of {kind:?}");
    }
    assert!(kernels.iter().filter(|kernel| kernel.may_not_terminate()).count() > 10);
    let terminating = |seed| kernel(seed, Features::default(), Rules { endless: false });
    assert!((0..200).all(|seed| !terminating(seed).may_not_terminate()));
}

#[test]
fn shrunk_kernels_still_fail() {
    let is_kept = |kernel: &scry_fuzz::hostile::HostileKernel| {
        let case = kernel.case();
        let accepted = Program::parse(&case.source).is_ok();
        accepted && case.source.contains("reverseBits")
    };
    let generate = |seed| kernel(seed, Features::default(), Rules::default());
    let kernel = (0..200).map(generate).find(is_kept).expect("many kernels use it");
    let source = shrink(&kernel, 5000, is_kept).case().source;
    assert!(source.contains("reverseBits"));
    assert!(source.lines().count() < 25, "{source}");
}

#[test]
fn kernels_depend_on_seed_only() {
    for seed in 0..20 {
        let generate = || kernel(seed, Features::ALL, Rules::default());
        assert_eq!(generate(), generate());
        assert_eq!(generate().case(), generate().case());
        assert_ne!(
            generate().case().source,
            kernel(seed + 1, Features::ALL, Rules::default()).case().source
        );
    }
}
