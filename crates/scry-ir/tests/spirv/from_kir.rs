//! Kernels as SPIR-V by way of the kernel IR: valid, and with the accesses that they need.

use rspirv::dr::Instruction;
use rspirv::spirv::{Capability, Decoration, Op, StorageClass};
use scry_ir::kir::{GroupOperation, Inst, Kir, KirOptions, Reduction, SubgroupOp};
use scry_ir::{Features, Program, ShaderErrorKind, SpirvOptions};
use scry_test_support::env_number;

use crate::support::{
    CHECKED, WORKED_AROUND, code, corpus, have_validator, load, parse, sources, validate,
};

fn module(source: &str) -> rspirv::dr::Module {
    let words = parse("kernel", source).to_spirv(&CHECKED).unwrap();
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
fn random_kernels_are_valid() {
    if !have_validator("random_kernels_are_valid") {
        return;
    }
    let features = scry_fuzz::Features::ALL;
    let seeds = env_number("SCRY_FUZZ_SEEDS").unwrap_or(60);
    for seed in 0..seeds {
        let source = scry_fuzz::kernel(seed, features.for_seed(seed)).case().source;
        let options = if seed % 2 == 0 { CHECKED } else { WORKED_AROUND };
        let options = SpirvOptions { polls: seed % 3 == 0, ..options };
        let words = parse("random", &source)
            .to_spirv(&options)
            .unwrap_or_else(|error| panic!("seed {seed}: {error:?}\n{source}"));
        validate(&words).unwrap_or_else(|message| panic!("seed {seed}: {message}\n{source}"));
    }
}

/// The features of which one must be enabled for a capability; `None` if every device has it.
fn features_with(capability: Capability) -> Option<Features> {
    Some(match capability {
        Capability::Shader => return None,
        Capability::Float16 => Features::F16,
        Capability::Float64 => Features::F64,
        Capability::Int16 => Features::I16,
        Capability::Int64 => Features::I64 | Features::I64_ATOMICS,
        Capability::Int64Atomics => Features::I64_ATOMICS,
        Capability::StorageBuffer16BitAccess => Features::F16 | Features::I16,
        Capability::AtomicFloat32AddEXT => Features::F32_ATOMICS,
        _ => Features::SUBGROUPS,
    })
}

/// Panics if a module needs a capability that a device with the kernel's features may lack.
fn check_capabilities(name: &str, program: &Program) {
    let enabled = program.interface().features;
    for capability in load(&program.to_spirv(&CHECKED).unwrap()).capabilities {
        let capability = capability.operands[0].unwrap_capability();
        let allowed = features_with(capability).is_none_or(|of| enabled.intersects(of));
        assert!(allowed, "{name} enables {enabled:?}, but needs {capability:?}");
    }
}

#[test]
fn capabilities_are_those_of_enabled_features() {
    for folder in ["", "bounds", "fuzz"] {
        for (name, source) in sources(&corpus(folder)) {
            check_capabilities(&name, &parse(&name, &source));
        }
    }
    for seed in 0..60 {
        let features = scry_fuzz::Features::ALL.for_seed(seed);
        let source = scry_fuzz::kernel(seed, features).case().source;
        check_capabilities(&format!("seed {seed}"), &parse("random", &source));
    }
}

#[test]
fn expanded_signs_do_not_subtract() {
    let source = "enable wgpu_int16;
        @group(0) @binding(0) var<storage, read_write> x: array<i32>;
        @group(0) @binding(1) var<storage, read_write> s: array<i16>;
        @group(0) @binding(2) var<storage, read_write> f: array<f32>;
        @compute @workgroup_size(1) fn main() {
            x[0] = -x[1]; x[2] = abs(x[3]); x[4] = 0i - x[5]; x[6] = sign(x[7]);
            s[0] = -s[1]; s[2] = s[3] - s[4]; f[0] = sign(f[1]);
        }";
    let program = parse("signs", source);
    let instructions = |options| {
        let module = load(&program.to_spirv(options).unwrap());
        let text = rspirv::binary::Disassemble::disassemble(&module);
        (count(&module, Op::ISub), text.contains("FSign"))
    };
    // Three subtractions are those of 1 from the length of each array.
    assert_eq!(instructions(&CHECKED), (3 + 5, true));
    assert_eq!(instructions(&WORKED_AROUND), (3, false));
}

#[test]
fn packing_needs_no_16_bit_types() {
    let pack = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
            let packed = pack2x16float(vec2f(x[i], x[i + 64u]));
            x[i] = unpack2x16float(packed ^ 0x8000u).x + quantizeToF16(x[i]);
        }";
    check_capabilities("pack", &parse("pack", pack));
    let emitted = parse("pack", &format!("enable f16;\n{pack}")).to_spirv(&CHECKED).unwrap();
    if have_validator("packing_needs_no_16_bit_types") {
        validate(&emitted).unwrap();
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
fn exits_of_outer_loops_pass_inner_ones() {
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

#[test]
fn unreachable_statements_are_dropped() {
    // The inner loop is unrolled, and returns in its first iteration.
    let returns = "var i = 0u;
        while i < 4u { i++; x[i] = 1u; for (var j = 0u; j < 3u; j++) { return; } x[3] = 1u; }
        x[4] = 2u;";
    let bodies = [
        format!("for (var k = 0u; k < x[6]; k++) {{ {returns} }}"),
        format!("var k = 0u; loop {{ {returns} k++; if k >= x[6] {{ break; }} }} x[5] = 1u;"),
        format!("loop {{ {returns} if x[1] > 2u {{ break; }} }} x[5] = 1u;"),
    ];
    for body in bodies {
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<u32, 8>;
             @compute @workgroup_size(1) fn main() {{ {body} }}"
        );
        let words = parse("unreachable", &source).to_spirv(&CHECKED).unwrap();
        // The loader rejects instructions outside of blocks.
        load(&words);
        if have_validator("unreachable_statements_are_dropped") {
            validate(&words).unwrap_or_else(|error| panic!("{error}\n{source}"));
        }
    }
}

/// Returns a kernel with every bit function of an integer type.
fn bits_of(ty: &str) -> String {
    let functions = [
        "countOneBits",
        "countLeadingZeros",
        "countTrailingZeros",
        "reverseBits",
        "firstLeadingBit",
        "firstTrailingBit",
    ];
    let stores = (0..).zip(functions).map(|(n, name)| format!("out[{n}] = {name}(x);"));
    format!(
        "enable wgpu_int16;
         @group(0) @binding(0) var<storage, read> src: array<{ty}>;
         @group(0) @binding(1) var<storage, read_write> out: array<{ty}>;
         @compute @workgroup_size(1) fn main() {{ let x = src[0]; {} }}",
        stores.collect::<String>()
    )
}

#[test]
fn bits_of_every_width_are_valid() {
    if !have_validator("bits_of_every_width_are_valid") {
        return;
    }
    for ty in ["i16", "u16", "i32", "u32", "i64", "u64"] {
        let words = parse(ty, &bits_of(ty)).to_spirv(&CHECKED).unwrap();
        validate(&words).unwrap_or_else(|message| panic!("{ty}: {message}"));
    }
}

#[test]
fn f64_functions_are_rejected_by_name() {
    for (expression, name) in
        [("exp(x)", "exp"), ("pow(x, x)", "pow"), ("atan2(x, x)", "atan2"), ("tanh(x)", "tanh")]
    {
        let program = parse(
            name,
            &format!(
                "@group(0) @binding(0) var<storage, read_write> out: array<f64>;
                 @compute @workgroup_size(1) fn main() {{ let x = out[1]; out[0] = {expression}; }}"
            ),
        );
        let error = program.to_spirv(&CHECKED).unwrap_err();
        assert_eq!(error.kind, ShaderErrorKind::UnsupportedFeatures(Features::F64));
        let wanted = format!("SPIR-V has no `{name}` of 64-bit floats (f64); help: ");
        assert!(error.message.starts_with(&wanted), "{error}");
    }
}

/// A kernel with a vote, whose operation is replaced by another reduction of bools.
fn reduction_of_bools(to: Reduction, over: GroupOperation) -> (Program, Kir) {
    let program = parse(
        "vote",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
             out[i] = u32(subgroupAll(out[i] > 7u));
         }",
    );
    let mut kir = program.to_kir(&KirOptions { checked: true }).unwrap();
    let mut votes = 0;
    for definition in &mut kir.values {
        if let Inst::Subgroup(SubgroupOp::Reduce { op, group, .. }) = &mut definition.inst {
            (*op, *group) = (to, over);
            votes += 1;
        }
    }
    assert_eq!(votes, 1);
    (program, kir)
}

#[test]
fn bool_scans_are_scans_of_words() {
    let checks = have_validator("bool_scans_are_scans_of_words");
    for group in
        [GroupOperation::Reduce, GroupOperation::InclusiveScan, GroupOperation::ExclusiveScan]
    {
        for (reduction, word) in [
            (Reduction::And, Op::GroupNonUniformBitwiseAnd),
            (Reduction::Or, Op::GroupNonUniformBitwiseOr),
            (Reduction::Xor, Op::GroupNonUniformBitwiseXor),
        ] {
            let (program, kir) = reduction_of_bools(reduction, group);
            let words = kir.to_spirv(program.interface(), &CHECKED).unwrap();
            let votes = group == GroupOperation::Reduce && reduction != Reduction::Xor;
            assert_eq!(count(&load(&words), word), usize::from(!votes), "{reduction:?} {group:?}");
            if checks {
                validate(&words).unwrap_or_else(|e| panic!("{reduction:?} {group:?}: {e}"));
            }
        }
    }
}

#[test]
fn early_exits_nest_following_statements() {
    let depth = |body: &str| {
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
             @compute @workgroup_size(1) fn main() {{ {body} }}"
        );
        parse("nested", &source).control_flow().unwrap().depth
    };
    let exits = |exit: &str| format!("if x[1] > 1u {{ x[0] = 1u; {exit} }} ").repeat(9);
    assert_eq!(depth(&exits("")), 1);
    assert_eq!(depth(&exits("return;")), 9);
    // A driver leaves the loop directly around an exit without conditions.
    assert_eq!(depth(&format!("loop {{ {} }}", exits("break;"))), 2);
    assert_eq!(depth(&format!("loop {{ {} }}", exits("return;"))), 10);
}

#[test]
fn lengths_of_16_bit_arrays_are_valid() {
    if !have_validator("lengths_of_16_bit_arrays_are_valid") {
        return;
    }
    for access in ["", "+ u32(a[0] + a[1])"] {
        let source = format!(
            "enable f16;
             @group(0) @binding(0) var<storage> a: array<f16>;
             @group(0) @binding(1) var<storage, read_write> out: array<u32>;
             @compute @workgroup_size(1) fn main() {{ out[0] = arrayLength(&a) {access}; }}"
        );
        let words = parse("lengths", &source).to_spirv(&CHECKED).unwrap();
        validate(&words).unwrap_or_else(|error| panic!("{error}\n{source}"));
    }
}
