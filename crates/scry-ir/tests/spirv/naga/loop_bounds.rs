//! Which loops naga's writer bounds.

use rspirv::binary::Disassemble;
use scry_ir::{Program, SpirvOptions};

use crate::support::{CHECKED, corpus, load, parse, sources};

const UNCHECKED: SpirvOptions = SpirvOptions { checked: false, ..CHECKED };

fn text(program: &Program, options: &SpirvOptions) -> String {
    load(&program.to_spirv_with_naga(options).unwrap()).disassemble()
}

fn is_bounded(source: &str, options: &SpirvOptions) -> bool {
    text(&parse(source, source), options).contains("\"loop_bound\"")
}

#[test]
fn only_unproven_loops_are_bounded() {
    let kernel = |body: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
            @compute @workgroup_size(1) fn main() {{ {body} }}"
        )
    };
    let counted = kernel("for (var i = 0u; i < data[0]; i++) { data[i] = i; }");
    let endless = kernel("loop { data[0] += 1u; if data[1] == 1u { break; } }");
    assert!(!is_bounded(&counted, &CHECKED));
    assert!(is_bounded(&endless, &CHECKED));
    assert!(!is_bounded(&endless, &UNCHECKED));
    let linearised = SpirvOptions { linearised: true, ..CHECKED };
    assert!(!is_bounded(&counted, &linearised));
    assert!(is_bounded(&endless, &linearised));
}

#[test]
fn few_corpus_kernels_need_loop_bounds() {
    let bounded: Vec<_> = sources(&corpus(""))
        .into_iter()
        .filter(|(_, source)| is_bounded(source, &CHECKED))
        .map(|(name, _)| name)
        .collect();
    // A compare-exchange loop, and an interpreter loop.
    assert_eq!(bounded, ["histogram", "stack_machine"]);
}
