//! Tests that every random kernel is valid WGSL, matches its interface, and can be lowered.

use scry_fuzz::{Features, kernel};
use scry_ir::Program;
use scry_ir::kir::KirOptions;

#[test]
fn every_kernel_is_valid() {
    let all = Features::ALL;
    for features in [Features::default(), all] {
        for seed in 0..100 {
            let case = kernel(seed, features).case();
            let program = Program::parse(&case.source).unwrap_or_else(|error| {
                panic!("seed {seed}: {error}\n{}\n{}", error.rendered, case.source)
            });
            let interface = program.interface();
            assert_eq!(interface.bindings.len(), case.buffers.len(), "{}", case.source);
            let written = interface.bindings.iter().any(|binding| binding.access.writes());
            assert!(written, "seed {seed} has no output: {}", case.source);
            assert_eq!(interface.immediates.is_some(), case.immediates.is_some());
            let kir = program.to_kir(&KirOptions { checked: seed % 2 == 0 });
            let kir = kir.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", case.source));
            assert_eq!(kir.buffers.len(), case.buffers.len(), "{}", case.source);
        }
    }
}

#[test]
fn workgroup_memory_is_at_most_32_kib() {
    // Of the last seed, an array of f64 matrices once had 32 KiB, beside other variables.
    for seed in (0..40).chain([5_000_163]) {
        let source = kernel(seed, Features::ALL.for_seed(seed)).case().source;
        let size = Program::parse(&source).unwrap().interface().workgroup_memory;
        assert!(size <= 32 << 10, "seed {seed} uses {size} bytes:\n{source}");
    }
}
