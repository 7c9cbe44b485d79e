//! Bools in workgroup memory: no variable of the SPIR-V contains `OpTypeBool`.

use std::collections::HashMap;

use rspirv::spirv::{Op, StorageClass};
use scry_ir::ShaderErrorKind;

use crate::support::{
    WORKED_AROUND, code, every_option, have_validator, id, load, parse, validate,
};

/// A kernel with bools of every shape.
fn kernel(body: &str) -> String {
    format!(
        "struct Inner {{ deep: array<vec2<bool>, 3>, n: u32 }}
        struct Mixed {{ x: f32, yes: bool, v: vec3<bool>, inner: Inner, m: vec3<f32> }}
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        var<workgroup> one: bool;
        var<workgroup> vector: vec4<bool>;
        var<workgroup> shelf: array<bool, 64>;
        var<workgroup> mixed: array<Mixed, 4>;
        var<workgroup> other: array<Mixed, 4>;
        var<private> own: Mixed;
        fn helper(i: u32) -> bool {{ return shelf[i] && one; }}
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"
    )
}

const BODIES: [&str; 9] = [
    "shelf[i] = i % 2u == 0u; workgroupBarrier(); out[i] = u32(shelf[63u - i]);",
    "one = out[i] > 3u; if one { out[i] = u32(helper(i)); }",
    "vector[i % 4u] = true; vector.x = false; vector = vec4(one); out[i] = u32(all(vector.zyx));",
    "let p = &mixed[i % 4u]; (*p).yes = (*p).inner.deep[i % 3u].y; out[i] = (*p).inner.n;",
    "mixed[1] = mixed[i % 4u]; other = mixed; own = other[0]; mixed[2].inner = own.inner;",
    "mixed = array<Mixed, 4>(); shelf = array<bool, 64>(); other[i % 4u] = Mixed();",
    "let all = shelf; var copy = all; out[i] = u32(copy[i]) + select(1u, 2u, all[3]);",
    "if workgroupUniformLoad(&one) { workgroupBarrier(); out[i] = 1u; }
    let m = workgroupUniformLoad(&mixed[2]); if m.inner.deep[1].x { workgroupBarrier(); }",
    "loop { if shelf[i] { break; } switch out[i] { case 1u: { one = !one; } default: {} }
        continuing { shelf[i] = helper(i); break if any(mixed[0].v); } }
    out[0] = u32(mixed[3].v[i % 3u]) + 1u << (u32(one) + 3u);
    out[1] = u32(mix(1.5f, f32(i), 3.0));",
];

/// Returns the ids of all types that contain `OpTypeBool`, also through pointers.
fn truth_types(module: &rspirv::dr::Module) -> HashMap<u32, bool> {
    let mut holds = HashMap::new();
    for instruction in &module.types_global_values {
        let Some(result) = instruction.result_id else { continue };
        let mut made_of = instruction.operands.iter().filter_map(id);
        let is = match instruction.class.opcode {
            Op::TypeBool => true,
            Op::TypeVector | Op::TypeArray | Op::TypeStruct | Op::TypePointer => {
                made_of.any(|part| holds.get(&part) == Some(&true))
            }
            _ => false,
        };
        holds.insert(result, is);
    }
    holds
}

/// Counts workgroup variables, and those of them that contain bools.
fn variables(words: &[u32]) -> (usize, usize) {
    let module = load(words);
    let holds = truth_types(&module);
    let is_workgroup = |i: &&rspirv::dr::Instruction| {
        i.class.opcode == Op::Variable
            && i.operands[0].unwrap_storage_class() == StorageClass::Workgroup
    };
    let variables: Vec<_> = module.types_global_values.iter().filter(is_workgroup).collect();
    let holding = variables.iter().filter(|i| holds[&i.result_type.unwrap()]);
    (variables.len(), holding.count())
}

#[test]
fn workgroup_variables_contain_no_bools() {
    let can_validate = have_validator("workgroup_variables_contain_no_bools");
    for body in BODIES {
        let program = parse(body, &kernel(body));
        for options in every_option() {
            if options.workarounds.is_empty() {
                continue;
            }
            let words =
                program.to_spirv_with_naga(&options).unwrap_or_else(|e| panic!("{body}: {e}"));
            let (all, holding) = variables(&words);
            assert!(all > 0 && holding == 0, "{body}: {holding} of {all}");
            if let Some(message) = can_validate.then(|| validate(&words)).and_then(Result::err) {
                panic!("{body} {options:?}: {message}");
            }
        }
    }
}

#[test]
fn zero_array_is_stored_at_once() {
    let program = parse("zeros", &kernel("shelf = array<bool, 64>(); out[i] = u32(shelf[i]);"));
    let module = load(&program.to_spirv_with_naga(&WORKED_AROUND).unwrap());
    let composed = code(&module).filter(|i| i.class.opcode == Op::CompositeConstruct).count();
    assert_eq!(composed, 0);
}

#[test]
fn too_large_bool_arrays_are_rejected() {
    let source = "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
        var<workgroup> a: array<array<bool, 1024>, 1024>;
        var<workgroup> b: array<array<bool, 1024>, 1024>;
        @compute @workgroup_size(1) fn main() { a = b; out[0] = u32(a[1][2]); }";
    let error = parse("large", source).to_spirv_with_naga(&WORKED_AROUND).unwrap_err();
    assert_eq!(error.kind, ShaderErrorKind::TooComplex);
    assert!(error.message.contains("in a loop"), "{error}");
}
