//! Initial values of variables are stored by statements if several vectors are adjacent, and only
//! then.

use rspirv::dr::{Instruction, Module};
use rspirv::spirv::Op;

use crate::support::{WORKED_AROUND, code, have_validator, id, load, parse, validate};

fn module(globals: &str, body: &str) -> Module {
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
        struct Columns {{ first: u32, all: array<mat2x3f, 2> }}
        {globals}
        fn other(i: u32) -> f32 {{ var own: array<vec2f, 3>; own[i].y = 1.0; return own[1].y; }}
        @compute @workgroup_size(4)
        fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"
    );
    let words = parse(body, &source).to_spirv_with_naga(&WORKED_AROUND).unwrap();
    if have_validator("initial") {
        validate(&words).unwrap_or_else(|e| panic!("{globals}, {body}: {e}"));
    }
    load(&words)
}

fn is_variable(module: &Module, id: Option<u32>) -> bool {
    let globals = module.types_global_values.iter();
    let mut all = globals.chain(code(module)).filter(|i| i.class.opcode == Op::Variable);
    all.any(|i| i.result_id == id)
}

/// Returns the stores to whole variables.
fn stores(module: &Module) -> Vec<&Instruction> {
    let stores = code(module).filter(|i| i.class.opcode == Op::Store);
    stores.filter(|i| is_variable(module, id(&i.operands[0]))).collect()
}

/// Returns the instruction that computes the value of a store.
fn stored(module: &Module, store: &Instruction) -> Op {
    let value = id(&store.operands[1]);
    let all = module.types_global_values.iter().chain(code(module));
    all.into_iter().find(|i| i.result_id == value).unwrap().class.opcode
}

const ROUND: [&str; 4] = ["array<vec2f, 4>", "mat3x3f", "array<array<vec4f, 2>, 3>", "Columns"];

#[test]
fn adjacent_vectors_are_zeroed() {
    for ty in ROUND {
        let private = (format!("var<private> own: {ty};"), "let at = &own;".to_string());
        let local = (String::new(), format!("var own: {ty}; let at = &own;"));
        for (globals, body) in [private, local] {
            let copied = format!("{body} let copy = *at; data[i] = f32(i); *at = copy;");
            let module = module(&globals, &copied);
            let stores = stores(&module);
            assert_eq!(stores.len(), 2, "{globals}, {copied}");
            assert_eq!(stored(&module, stores[0]), Op::ConstantNull, "{globals}, {copied}");
        }
    }
}

#[test]
fn constants_are_stored_instead_of_zeros() {
    let twos = "array<vec2f, 2>(vec2f(2.0), vec2f(3.0, 4.0))";
    let private = format!("var<private> own: array<vec2f, 2> = {twos};");
    let local = format!("var own = {twos};");
    for (globals, before) in [(private.as_str(), ""), ("", local.as_str())] {
        let module = module(globals, &format!("{before} data[i] = own[i].y; own[1].y = 1.0;"));
        let stores = stores(&module);
        assert_eq!(stores.len(), 1, "{globals}");
        assert_eq!(stored(&module, stores[0]), Op::ConstantComposite, "{globals}");
    }
}

#[test]
fn functions_store_initial_values_of_locals() {
    let module = module("", "data[i] = other(i);");
    assert_eq!(stores(&module).len(), 1);
}

#[test]
fn other_variables_have_an_initialiser_only() {
    let globals = "var<private> own: array<f32, 4>; var<private> unused: array<vec4f, 4>;
        var<workgroup> shared_: array<vec4f, 4>;";
    let module = module(globals, "var v: vec4f; v[i] = own[i]; own[1] = 2.0; data[i] = v[3 - i];");
    assert_eq!(stores(&module).len(), 0);
}
