//! Kernels as SPIR-V by way of the kernel IR: valid, and with the accesses that they need.

use rspirv::dr::Instruction;
use rspirv::spirv::{Decoration, Op, StorageClass};
use scry_ir::{NotEmitted, Program, SpirvOptions};

use crate::support::{
    CHECKED, code, corpus, every_option, have_validator, load, parse, sources, validate,
};

/// Kernels of the corpus that use something that is not covered.
const NOT_COVERED: [&str; 0] = [];

fn emit(program: &Program, options: &SpirvOptions) -> Result<Vec<u32>, NotEmitted> {
    program.to_spirv_from_kir(options)
}

fn module(source: &str) -> rspirv::dr::Module {
    let words = emit(&parse("kernel", source), &CHECKED).unwrap();
    load(&words)
}

fn count(module: &rspirv::dr::Module, op: Op) -> usize {
    code(module).filter(|instruction| instruction.class.opcode == op).count()
}

fn buffers(module: &rspirv::dr::Module) -> Vec<&Instruction> {
    let is_buffer = |instruction: &&Instruction| {
        instruction.class.opcode == Op::Variable
            && instruction.operands[0].unwrap_storage_class() == StorageClass::StorageBuffer
    };
    module.types_global_values.iter().filter(is_buffer).collect()
}

fn decorations(module: &rspirv::dr::Module, decoration: Decoration) -> usize {
    let is = |instruction: &&Instruction| {
        instruction.operands.contains(&rspirv::dr::Operand::Decoration(decoration))
    };
    module.annotations.iter().filter(is).count()
}

#[test]
fn every_corpus_kernel_is_valid() {
    if !have_validator("every_corpus_kernel_is_valid") {
        return;
    }
    let mut problems = String::new();
    for folder in ["", "bounds", "drivers", "fuzz"] {
        for (name, source) in sources(&corpus(folder)) {
            let program = parse(&name, &source);
            for options in every_option() {
                if options.workarounds != CHECKED.workarounds {
                    continue;
                }
                match emit(&program, &options) {
                    Ok(words) => {
                        if let Err(message) = validate(&words) {
                            problems += &format!("{name} {options:?}: {message}\n");
                            break;
                        }
                    }
                    Err(NotEmitted::NotCovered(_)) if NOT_COVERED.contains(&&*name) => break,
                    Err(error) => {
                        problems += &format!("{name}: {error:?}\n");
                        break;
                    }
                }
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn random_kernels_are_valid() {
    if !have_validator("random_kernels_are_valid") {
        return;
    }
    let features = scry_fuzz::Features::ALL;
    for seed in 0..60 {
        let source = scry_fuzz::kernel(seed, features.for_seed(seed)).case().source;
        let words = emit(&parse("random", &source), &CHECKED)
            .unwrap_or_else(|error| panic!("seed {seed}: {error:?}\n{source}"));
        validate(&words).unwrap_or_else(|message| panic!("seed {seed}: {message}\n{source}"));
    }
}

#[test]
fn aligned_vectors_are_one_access() {
    let module = module(
        "@group(0) @binding(0) var<storage, read> a: array<vec4<f32>>;
         @group(0) @binding(1) var<storage, read_write> b: array<vec4<f32>>;
         @compute @workgroup_size(64)
         fn main(@builtin(global_invocation_id) id: vec3<u32>) { b[id.x] = a[id.x]; }",
    );
    assert_eq!(buffers(&module).len(), 2);
    assert_eq!(decorations(&module, Decoration::Aliased), 0);
    assert_eq!(decorations(&module, Decoration::NonWritable), 1);
    assert_eq!(count(&module, Op::Store), 1);
    assert_eq!(count(&module, Op::CompositeConstruct), 1);
    assert_eq!(count(&module, Op::ArrayLength), 2);
}

#[test]
fn views_of_one_buffer_are_aliases() {
    let module = module(
        "struct Item { at: vec4<f32>, count: u32 }
         @group(0) @binding(0) var<storage, read_write> items: array<Item>;
         @compute @workgroup_size(64)
         fn main(@builtin(global_invocation_id) id: vec3<u32>) {
             items[id.x].count += 1u;
             items[id.x].at *= 2.0;
         }",
    );
    assert_eq!(buffers(&module).len(), 2);
    assert_eq!(decorations(&module, Decoration::Aliased), 2);
}

#[test]
fn counted_loops_are_unrolled() {
    let source = |bound: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
             @compute @workgroup_size(1) fn main() {{
                 for (var i = 1u; i < {bound}; i++) {{ x[i] += 1u; }}
             }}"
        )
    };
    assert_eq!(count(&module(&source("5u")), Op::LoopMerge), 0);
    assert_eq!(count(&module(&source("x[9]")), Op::LoopMerge), 1);
}

#[test]
fn outer_loops_are_left_by_way_of_inner_ones() {
    let module = module(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
         fn search() -> u32 {
             for (var i = 1u; i < x[0]; i++) {
                 for (var j = 0u; j < x[1]; j++) { if x[i + j] == 7u { return i; } }
             }
             return 9u;
         }
         @compute @workgroup_size(1) fn main() { x[2] = search(); x[3] = search(); }",
    );
    assert_eq!(count(&module, Op::LoopMerge), 4);
    // Each loop passes the return on.
    assert!(count(&module, Op::Switch) >= 2);
}
