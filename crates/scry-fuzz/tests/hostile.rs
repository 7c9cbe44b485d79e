//! Every hostile kernel is valid WGSL, matches its interface, and can be lowered.

use scry_fuzz::hostile::{Comparable, Rules, kernel, shrink};
use scry_fuzz::{Case, Features};
use scry_ir::Program;
use scry_ir::kir::{KirOptions, verify};

/// Accepts the kernel of a case.
fn check(case: &Case) {
    let Case { seed, source, .. } = case;
    let program = Program::parse(source)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}\n{source}", error.rendered));
    let interface = program.interface();
    assert_eq!(interface.bindings.len(), case.buffers.len(), "seed {seed}: {source}");
    for (binding, bytes) in interface.bindings.iter().zip(&case.buffers) {
        let (least, given) = (binding.layout.min_binding_size(), bytes.len());
        assert!(given as u64 >= least, "seed {seed}: {} has {given} of {least}", binding.name);
    }
    let kir = program.to_kir(&KirOptions { checked: true });
    let kir = kir.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{source}"));
    verify(&kir).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{kir}"));
}

#[test]
fn every_kernel_is_accepted() {
    for seed in 0..400 {
        let features = if seed % 2 == 0 { Features::ALL } else { Features::default() };
        check(&kernel(seed, features, Rules::default()).case());
        check(&kernel(seed, Features { i16: true, ..features }, Rules::default()).case());
    }
}

#[test]
fn all_kinds_of_kernels_are_drawn() {
    let drawn: Vec<_> =
        (0..200).map(|seed| kernel(seed, Features::default(), Rules::default())).collect();
    for kind in [Comparable::Nothing, Comparable::SameIr, Comparable::Everywhere] {
        let count = drawn.iter().filter(|kernel| kernel.comparable() == kind).count();
        assert!(count > 20, "{count} of {kind:?}");
    }
    assert!(drawn.iter().filter(|kernel| kernel.may_not_terminate()).count() > 10);
    let tame = |seed| kernel(seed, Features::default(), Rules { endless: false });
    assert!((0..200).all(|seed| !tame(seed).may_not_terminate()));
}

#[test]
fn shrunk_kernels_still_fail() {
    let is_kept = |kernel: &scry_fuzz::hostile::HostileKernel| {
        let case = kernel.case();
        let accepted = Program::parse(&case.source).is_ok();
        accepted && case.source.contains("reverseBits")
    };
    let drawn = |seed| kernel(seed, Features::default(), Rules::default());
    let whole = (0..200).map(drawn).find(is_kept).expect("it is drawn often");
    let source = shrink(&whole, 5000, is_kept).case().source;
    assert!(source.contains("reverseBits"));
    assert!(source.lines().count() < 25, "{source}");
}

#[test]
fn a_seed_decides_everything() {
    for seed in 0..20 {
        let drawn = || kernel(seed, Features::ALL, Rules::default());
        assert_eq!(drawn(), drawn());
        assert_eq!(drawn().case(), drawn().case());
        assert_ne!(
            drawn().case().source,
            kernel(seed + 1, Features::ALL, Rules::default()).case().source
        );
    }
}
