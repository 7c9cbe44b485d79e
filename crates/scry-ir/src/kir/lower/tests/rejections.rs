//! Tests of kernels that the lowering rejects, and of the messages.

use super::{KirOptions, kernel};
use crate::{Program, ShaderError, ShaderErrorKind};

/// Returns the error of lowering a kernel.
fn lowering_error(source: &str) -> ShaderError {
    let program = Program::parse(source).unwrap_or_else(|error| panic!("{error}"));
    let result = program.to_kir(&KirOptions { checked: true });
    result.map(|kir| kir.values.len()).expect_err("the kernel is rejected")
}

/// Asserts that lowering a kernel with these statements is a validation error that contains `text`.
fn assert_invalid(statements: &str, text: &str) {
    let source = format!(
        "enable f16; enable wgpu_cooperative_matrix;
        @group(0) @binding(0) var<storage, read_write> m: array<f32>;
        @group(0) @binding(1) var<storage, read_write> h: array<f16>;
        @group(0) @binding(2) var<storage, read_write> v: array<vec4<f32>>;
        var<workgroup> shared_one: coop_mat8x8<f32, C>;
        @compute @workgroup_size(64) fn main() {{ {statements} }}"
    );
    let error = lowering_error(&source);
    assert!(error.message.contains(text), "{error}");
    assert_eq!(error.kind, ShaderErrorKind::Validation);
}

#[test]
fn mismatched_cooperative_matrices_are_rejected() {
    let product = |a: &str, b: &str, c: &str| {
        format!(
            "let d = coopMultiplyAdd(coopLoad<coop_mat{a}, A>>(&m[0]),
                coopLoad<coop_mat{b}, B>>(&h[0]), coopLoad<coop_mat{c}, C>>(&m[0]));
            coopStore(d, &m[0]);"
        )
    };
    let sizes = product("8x8<f32", "8x8<f16", "16x16<f32");
    assert_invalid(&sizes, "must have the same size");
    let types = product("8x8<f32", "8x8<f16", "8x8<f32");
    assert_invalid(&types, "(f32, f16, f32)");
}

#[test]
fn cooperative_matrices_need_shared_arrays() {
    let load =
        |pointer: &str| format!("coopStore(coopLoad<coop_mat8x8<f32, C>>({pointer}), &m[0]);");
    assert_invalid(&load("&v[1]"), "&array[index]");
    let own = format!("var own: array<f32, 64>; own[0] = 1.0; {}", load("&own[0]"));
    assert_invalid(&own, "&array[index]");
    assert_invalid("shared_one = coopLoad<coop_mat8x8<f32, C>>(&m[0]);", "workgroup memory");
}

#[test]
fn too_large_kernels_are_rejected() {
    // Each assignment copies 250 scalars; each function inlines the one before twice.
    let copies = "a = b; b = c; c = a;".repeat(30);
    let mut functions = format!(
        "var<private> a: array<u32, 250>; var<private> b: array<u32, 250>;
        var<private> c: array<u32, 250>; fn f0() {{ {copies} }}"
    );
    for n in 1..8 {
        functions += &format!("fn f{n}() {{ f{}(); f{}(); }}", n - 1, n - 1);
    }
    let error = lowering_error(&kernel(&functions, "f7();"));
    assert_eq!(error.kind, ShaderErrorKind::TooComplex);
    assert!(error.message.contains("2000000 instructions"), "{error}");
}

#[test]
fn deep_nesting_through_calls_is_rejected() {
    let mut functions = "fn f0() { out[0] += 1u; }".to_owned();
    for n in 1..600 {
        functions +=
            &format!("fn f{n}(){{ if data[0] > {n}u {{ if data[1] > 2u {{ f{}(); }} }} }}", n - 1);
    }
    let error = lowering_error(&kernel(&functions, "f599();"));
    assert_eq!(error.kind, ShaderErrorKind::TooComplex);
    assert!(error.message.contains("nested more than 1000 deep"), "{error}");
}

#[test]
fn call_depth_is_limited() {
    let chain = |depth| {
        let mut functions = "fn f0() { out[0] += 1u; }".to_owned();
        for n in 1..depth {
            functions += &format!("fn f{n}(){{ f{}(); }}", n - 1);
        }
        kernel(&functions, &format!("f{}();", depth - 1))
    };
    let program = Program::parse(&chain(4000)).unwrap_or_else(|error| panic!("{error}"));
    assert!(program.to_kir(&KirOptions { checked: true }).is_ok());
    let error = lowering_error(&chain(4001));
    assert_eq!(error.kind, ShaderErrorKind::TooComplex);
    assert!(error.message.contains("calls are nested more than 4000 deep"), "{error}");
}

#[test]
fn too_many_members_are_rejected() {
    let mut types = "struct S0 { a: u32, b: u32 }".to_owned();
    for n in 1..18 {
        types += &format!("struct S{n} {{ a: S{}, b: S{} }}", n - 1, n - 1);
    }
    let declarations = format!("{types} var<private> huge: S17;");
    let body = format!("huge{} = 1u;", ".a".repeat(18));
    let error = lowering_error(&kernel(&declarations, &body));
    assert_eq!(error.kind, ShaderErrorKind::TooComplex);
    assert!(error.message.contains("65536 members"), "{error}");
}
